import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from placers.learned.networks import layered
from situs.graph.arrays import Ints
from situs.placers.learned import _kernels as kernels
from situs.placers.learned.features import ALL, node_features
from situs.placers.learned.network import Edges, PlacementNetwork
from situs.placers.learned.nodes import coarsen


def literal_parse(n: int, edges: list[tuple[int, int]], score: list[float]) -> set[frozenset[int]]:
    """The words of the paper: seed with the best dominant edge, absorb until nothing changes."""
    best = [
        max(
            (e for e in range(len(edges)) if v in edges[e]),
            key=lambda e: (score[e], -e),
            default=-1,
        )
        for v in range(n)
    ]
    left, groups = set(range(n)), set()
    while left:
        open_edges = [best[v] for v in left if best[v] >= 0]
        if not open_edges:
            return groups | {frozenset([v]) for v in left}
        seed = max(open_edges, key=lambda e: (score[e], -e))
        group = set(edges[seed])
        while more := {v for v in left - group if best[v] >= 0 and set(edges[best[v]]) & group}:
            group |= more
        groups.add(frozenset(group))
        left -= group
    return groups


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 20), st.integers(0, 10**6), st.booleans())
def test_parsing_is_the_papers(n: int, seed: int, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    pairs = list(nx.gnp_random_graph(n, min(1.0, 3 / n), seed=seed).edges)
    # Scores that are equal must be broken alike: by the first edge.
    score = rng.integers(0, 3, len(pairs)).astype(float) if ties else rng.random(len(pairs))
    source = np.array([u for u, _ in pairs], dtype=np.int32)
    target = np.array([v for _, v in pairs], dtype=np.int32)
    label = kernels.parse(n, source, target, score, np.ones((n, 2), dtype=np.bool_))
    found = {frozenset(np.flatnonzero(label == k).tolist()) for k in range(label.max() + 1)}
    assert found == literal_parse(n, pairs, score.tolist())


def test_a_group_always_has_an_allowed_device() -> None:
    n = 30
    rng = np.random.default_rng(1)
    allowed = rng.random((n, 3)) < 0.5
    allowed[~allowed.any(axis=1), 0] = True
    source = np.arange(n - 1, dtype=np.int32)
    target = source + np.int32(1)
    label = kernels.parse(n, source, target, rng.random(n - 1), allowed.copy())
    for k in range(label.max() + 1):
        assert allowed[label == k].all(axis=0).any()


def build(
    seed: int, levels: int = 1, directed: bool = False
) -> tuple[PlacementNetwork, torch.Tensor, object]:
    problem = layered()
    nodes = coarsen(problem)
    features = torch.from_numpy(node_features(problem, nodes, ALL))
    torch.manual_seed(seed)
    network = PlacementNetwork(features.shape[1], 2, 16, 2, levels, directed, 0.2)
    return network, features, nodes


def test_number_of_groups_varies_and_is_neither_one_nor_all() -> None:
    counts: list[int] = []
    for seed in range(20):
        network, features, nodes = build(seed)
        counts.append(network(network.inward(features), nodes).partition.num_groups)
    assert len(set(counts)) > 3
    assert 1 < min(counts) <= max(counts) < features.shape[0]


def test_more_levels_make_fewer_groups_that_hold_the_finer_ones_whole() -> None:
    network, features, nodes = build(3, levels=3)
    partition = network(network.inward(features), nodes).partition
    sizes = [graph.num_nodes for graph in partition.graphs] + [partition.num_groups]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[1] > sizes[2]
    first = partition.labels[0]
    for k in range(int(first.max()) + 1):
        assert len(set(partition.group[first == k].tolist())) == 1


@pytest.mark.parametrize("levels", [1, 2])
def test_gradient_reaches_the_scorer_and_is_right(levels: int) -> None:
    network, features, nodes = build(0, levels)
    network = network.double()
    x = features.double()
    partition = network(network.inward(x), nodes).partition

    def value() -> torch.Tensor:
        decision = network(network.inward(x), nodes, None, partition)
        return decision.log_probs[:, 0].sum()

    weight = network.levels[0].scorer[0].weight
    (exact,) = torch.autograd.grad(value(), weight)
    assert exact.abs().max() > 0
    step = 1e-6
    for row, column in [(0, 0), (3, 5), (7, 2), (15, 15)]:
        with torch.no_grad():
            weight[row, column] += step
            above = value().item()
            weight[row, column] -= 2 * step
            below = value().item()
            weight[row, column] += step
        assert exact[row, column].item() == pytest.approx((above - below) / (2 * step), abs=1e-5)


def test_scores_are_symmetric() -> None:
    network, _, nodes = build(0)
    z = torch.randn(nodes.num_nodes, 16)
    there = Edges.of(nodes.num_nodes, nodes.source, nodes.target)
    back = Edges.of(nodes.num_nodes, nodes.target, nodes.source)
    assert torch.equal(network.levels[0].score(z, there), network.levels[0].score(z, back))


def _reversed(source: Ints, target: Ints) -> tuple[Ints, Ints]:
    order = np.lexsort((source, target))
    return target[order], source[order]


@pytest.mark.parametrize("directed", [False, True])
def test_only_the_directed_variant_sees_the_direction(directed: bool) -> None:
    network, features, nodes = build(0, directed=directed)
    x = network.inward(features)
    level = network.levels[0]
    there = level.embed(x, Edges.of(nodes.num_nodes, nodes.source, nodes.target), 0.0, None)
    turned = _reversed(nodes.source, nodes.target)
    back = level.embed(x, Edges.of(nodes.num_nodes, *turned), 0.0, None)
    assert torch.allclose(there, back, atol=1e-5) != directed
