import networkx as nx
import numpy as np
import pytest

from placers.learned.networks import layered
from situs.errors import ParameterError
from situs.placers.learned import _kernels as kernels
from situs.placers.learned.features import (
    ALL,
    PAPER,
    feature_names,
    fractal_dimensions,
    node_features,
    position_code,
)
from situs.placers.learned.nodes import NodeGraph, coarsen


def nodes_of(graph: nx.Graph) -> NodeGraph:
    graph = nx.convert_node_labels_to_integers(graph)
    ends = np.array([sorted(e) for e in graph.edges], dtype=np.int32).reshape(-1, 2)
    n = graph.number_of_nodes()
    return NodeGraph(np.arange(n, dtype=np.int32), ends[:, 0], ends[:, 1], np.ones((n, 1), bool))


def slow_dimension(graph: nx.Graph, node: int) -> float:
    """The definition, by shortest paths and numpy's own least squares."""
    hops = nx.single_source_shortest_path_length(graph, node)
    radii = np.arange(1, max(hops.values()) + 1)
    if len(radii) < 2:
        return 0.0
    sizes = [sum(h <= r for h in hops.values()) for r in radii]
    return float(np.polyfit(np.log(radii), np.log(sizes), 1)[0])


@pytest.mark.parametrize("seed", range(5))
def test_fractal_dimension_is_its_definition(seed: int) -> None:
    graph = nx.gnp_random_graph(40, 0.06, seed=seed)
    expected = [slow_dimension(graph, v) for v in graph]
    assert fractal_dimensions(nodes_of(graph)) == pytest.approx(expected, abs=1e-9)


def test_fractal_dimension_of_known_graphs() -> None:
    path = fractal_dimensions(nodes_of(nx.path_graph(401)))
    assert path[200] == pytest.approx(1.0, abs=0.05)
    # Balls of an unbounded grid have 2 r^2 + 2 r + 1 nodes; the middle of 101 x 101 sees r <= 50.
    offsets, neighbours = _csr(nx.convert_node_labels_to_integers(nx.grid_2d_graph(101, 101)))
    middle = kernels.fractal_dimension(offsets, neighbours, 2 * 50 * 50)[101 * 50 + 50]
    assert middle == pytest.approx(2.0, abs=0.15)
    star = fractal_dimensions(nodes_of(nx.star_graph(20)))
    assert star[0] == 0.0
    # A leaf reaches the hub at r = 1 and all 21 at r = 2.
    assert star[1:] == pytest.approx(np.log(21 / 2) / np.log(2))


def _csr(graph: nx.Graph) -> tuple[np.ndarray, np.ndarray]:
    rows = [sorted(graph[v]) for v in graph]
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int32)
    return offsets, np.concatenate(rows).astype(np.int32)


def test_position_code_is_the_published_one() -> None:
    code = position_code(7, 4)
    assert code[5] == pytest.approx([np.sin(5), np.cos(5), np.sin(5 / 100), np.cos(5 / 100)])


def test_every_feature_can_be_left_out_and_changes_something() -> None:
    problem = layered(3)
    nodes = coarsen(problem)
    whole = node_features(problem, nodes, ALL)
    assert np.isfinite(whole).all()
    assert np.abs(whole).max() <= 25
    widths = {name: node_features(problem, nodes, (name,)).shape[1] for name in ALL}
    assert all(node_features(problem, nodes, (name,)).std() > 0 for name in ALL if name != "type")
    for name in ALL:
        left = feature_names(name, ALL)
        part = node_features(problem, nodes, left)
        assert part.shape == (nodes.num_nodes, whole.shape[1] - widths[name])


@pytest.mark.parametrize(
    ("text", "part"), [("colour", "features are"), ("+".join(PAPER), "leaves no")]
)
def test_wrong_switches_are_refused(text: str, part: str) -> None:
    with pytest.raises(ParameterError, match=part):
        feature_names(text, PAPER)
