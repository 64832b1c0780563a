import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from placers.learned.networks import layered
from situs.core import Limits, Problem
from situs.placers.learned.nodes import coarsen
from situs.testing.problems import chain3, diamond4, tiny
from situs.testing.strategies import problems


def digraph(count: int, source: np.ndarray, target: np.ndarray) -> nx.DiGraph:
    graph = nx.DiGraph(zip(source.tolist(), target.tolist(), strict=True))
    graph.add_nodes_from(range(count))
    return graph


@given(problems(max_ops=12, devices=st.integers(1, 3)))
def test_never_cyclic_and_covers_every_op(problem: Problem) -> None:
    nodes = coarsen(problem)
    assert nodes.node.shape == (problem.num_ops,)
    assert set(nodes.node.tolist()) == set(range(nodes.num_nodes))
    assert nx.is_directed_acyclic_graph(digraph(nodes.num_nodes, nodes.source, nodes.target))
    assert nodes.allowed.any(axis=1).all()
    for op in range(problem.num_ops):
        assert (nodes.allowed[nodes.node[op]] <= problem.allowed[op]).all()


@given(problems(max_ops=12, unsupported=False))
def test_merges_exactly_the_only_child_of_an_only_parent(problem: Problem) -> None:
    graph, nodes = problem.graph, coarsen(problem)
    plain = digraph(problem.num_ops, graph.edge_producer, graph.consumer_ops)
    chains = nx.Graph(
        [(u, v) for u, v in plain.edges if plain.out_degree(u) == plain.in_degree(v) == 1]
    )
    chains.add_nodes_from(range(problem.num_ops))
    expected = {frozenset(c) for c in nx.connected_components(chains)}
    found = {frozenset(np.flatnonzero(nodes.node == k).tolist()) for k in range(nodes.num_nodes)}
    assert found == expected


@given(problems(max_ops=12, colocation=True))
def test_ops_that_must_share_a_device_share_a_node(problem: Problem) -> None:
    nodes = coarsen(problem)
    for unit in range(problem.num_units):
        assert len(set(nodes.node[problem.units == unit].tolist())) == 1


def test_known_graphs() -> None:
    assert coarsen(chain3()).num_nodes == 1
    assert coarsen(diamond4()).num_nodes == 4
    # in | two branches of three | join, twelve times
    assert coarsen(layered(12)).num_nodes == 1 + 12 * 3


def test_pins_to_different_devices_are_not_merged() -> None:
    chain = chain3()
    pinned = Limits(pinned=np.array([0, -1, 1], dtype=np.int32))
    nodes = coarsen(Problem(chain.graph, chain.cluster, chain.costs, chain.model, pinned))
    assert nodes.num_nodes == 2
    assert nodes.node[0] != nodes.node[2]


def test_constants_are_no_nodes() -> None:
    with_constants = tiny(
        {"a": [], "b": ["a"], "c": ["a"]},
        dict.fromkeys("abc", (1.0, 1.0)),
        constants={"a": 8, "b": 8, "c": 8},
    )
    assert coarsen(with_constants).num_nodes == 3
