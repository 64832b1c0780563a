import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from situs.errors import GraphError
from situs.graph import (
    Graph,
    OpSpec,
    build_graph,
    graph_from_json,
    graph_to_json,
    stats,
    topological_order,
)
from situs.testing.strategies import graphs


def diamond() -> Graph:
    def op(name: str, sources: list[int]) -> OpSpec:
        return OpSpec(name, "Add", [(s, 0) for s in sources], [(2, 2)], ["f32"], [16])

    # Listed backwards: d reads b and c, which read a.
    return build_graph("diamond", [op("d", [1, 2]), op("b", [3]), op("c", [3]), op("a", [])])


def test_ops_come_out_in_topological_order() -> None:
    graph = diamond()
    assert graph.op_names == ("a", "b", "c", "d")
    assert graph.consumer_offsets.tolist() == [0, 2, 3, 4, 4]
    assert graph.consumer_ops.tolist() == [1, 2, 3, 3]
    assert graph.edge_producer.tolist() == [0, 0, 1, 2]
    offsets, tensors = graph.inputs
    assert [tensors[offsets[i] : offsets[i + 1]].tolist() for i in range(4)] == [
        [],
        [0],
        [0],
        [1, 2],
    ]


def test_stats_of_a_diamond() -> None:
    s = stats(diamond())
    assert (s.ops, s.edges, s.depth, s.width, s.activation_bytes) == (4, 4, 3, 2, 64)


@given(graphs(colocation=True))
def test_json_round_trip_is_equal(graph: Graph) -> None:
    again = graph_from_json(graph_to_json(graph))
    assert again == graph
    assert again.fingerprint == graph.fingerprint


@given(graphs(), st.text(max_size=5))
def test_fingerprint_ignores_names_and_flop(graph: Graph, prefix: str) -> None:
    renamed = replace(
        graph,
        name=prefix,
        op_names=tuple(f"{prefix}{i}" for i in range(graph.num_ops)),
        op_flop=graph.op_flop + 1,
    )
    assert renamed.fingerprint == graph.fingerprint


@given(graphs(min_ops=2))
def test_fingerprint_sees_structure_types_and_sizes(graph: Graph) -> None:
    changes = [
        replace(graph, op_types=("Changed", *graph.op_types[1:])),
        replace(graph, tensor_bytes=graph.tensor_bytes + 1),
        replace(
            graph,
            constant_bytes=np.append(graph.constant_bytes, 3)[: len(graph.constant_bytes)] + 1,
        )
        if len(graph.constant_bytes)
        else replace(graph, is_output=~graph.is_output),
    ]
    for changed in changes:
        assert changed.fingerprint != graph.fingerprint


@given(graphs(max_ops=12))
def test_derived_views_agree_with_the_edges(graph: Graph) -> None:
    edges = set(zip(graph.edge_tensor.tolist(), graph.consumer_ops.tolist(), strict=True))
    offsets, tensors = graph.inputs
    back = {(t, op) for op in range(graph.num_ops) for t in tensors[offsets[op] : offsets[op + 1]]}
    assert back == edges
    offsets, constants = graph.op_constants
    by_op = [
        int(graph.constant_bytes[constants[offsets[i] : offsets[i + 1]]].sum())
        for i in range(graph.num_ops)
    ]
    assert graph.op_constant_bytes.tolist() == by_op


def test_arrays_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        diamond().tensor_bytes[0] = 1


def test_units_follow_colocation_and_are_dense() -> None:
    graph = replace(diamond(), colocation=np.array([-1, 7, -1, 7]))
    assert graph.units.tolist() == [0, 1, 2, 1]


def test_a_cycle_is_refused() -> None:
    with pytest.raises(GraphError, match="cycle"):
        topological_order(2, [(0, 1), (1, 0)])


def test_a_deep_chain_needs_no_recursion() -> None:
    n = 20_000
    assert topological_order(n, [(i + 1, i) for i in range(n - 1)]) == list(range(n))[::-1]


@pytest.mark.parametrize(
    "change",
    [
        {"op_names": ["a", "a", "c", "d"]},
        {"op_types": ["Add"]},
        {"consumer_ops": [1, 2, 3, 9]},
        {"consumer_ops": [1, 2, 3, 1]},
        {"consumer_offsets": [0, 2, 1, 4, 4]},
        {"tensor_producer": [3, 2, 1, 0]},
        {"tensor_bytes": [-1, 0, 0, 0]},
        {"tensor_bytes": "many"},
        {"tensor_shape": [1, 2]},
        {"schema": "other"},
        {"is_input": None},
    ],
)
def test_json_that_is_no_graph_is_refused(change: dict[str, object]) -> None:
    document = json.loads(graph_to_json(diamond())) | change
    with pytest.raises(GraphError) as caught:
        graph_from_json(json.dumps(document))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "null", "[" * 100_000, '{"schema": "situs-graph/1"}']
)
def test_text_that_is_no_graph_is_refused(text: str) -> None:
    with pytest.raises(GraphError):
        graph_from_json(text)


def test_a_changed_file_is_noticed() -> None:
    document = json.loads(graph_to_json(diamond()))
    document["op_types"][0] = "Relu"
    with pytest.raises(GraphError, match="changed"):
        graph_from_json(json.dumps(document))


@given(graph=graphs(), seed=st.integers(0, 2**32 - 1))
def test_cut_is_each_tensor_once_per_part_that_reads_it_from_outside(
    graph: Graph, seed: int
) -> None:
    part = np.random.default_rng(seed).integers(0, 3, graph.num_ops).astype(np.int32)
    expected = set()
    for t in range(graph.num_tensors):
        for k in range(graph.consumer_offsets[t], graph.consumer_offsets[t + 1]):
            reader = part[graph.consumer_ops[k]]
            if reader != part[graph.tensor_producer[t]]:
                expected.add((t, int(reader)))
    tensors, parts = graph.cut(part)
    assert list(zip(tensors.tolist(), parts.tolist(), strict=True)) == sorted(expected)
