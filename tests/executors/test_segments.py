import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situs.errors import CompileError
from situs.executors.segments import (
    SegmentCosts,
    Segments,
    finest_segments,
    makespan_s,
    merged_segments,
)
from situs.graph import Graph, OpSpec, build_graph
from situs.testing.strategies import graphs


def chain_of(sources: dict[str, list[str]]) -> Graph:
    names = list(sources)
    return build_graph(
        "g",
        [
            OpSpec(n, "Op", [(names.index(s), 0) for s in sources[n]], [(1,)], ["f32"], [4])
            for n in names
        ],
    )


def parts(graph: Graph, segments: Segments) -> set[frozenset[str]]:
    return {
        frozenset(graph.op_names[i] for i in np.flatnonzero(segments.of_op == k))
        for k in range(segments.count)
    }


def assert_acyclic(segments: Segments) -> None:
    left = {k: set(before) for k, before in enumerate(segments.predecessors)}
    while left:
        ready = [k for k, before in left.items() if not before & left.keys()]
        assert ready, "the segments form a cycle"
        for k in ready:
            del left[k]


cases = graphs(min_ops=2, max_ops=14).flatmap(
    lambda g: st.tuples(
        st.just(g), st.lists(st.integers(0, 2), min_size=g.num_ops, max_size=g.num_ops)
    )
)


@settings(max_examples=300, deadline=None)
@given(cases, st.booleans())
def test_segments_partition_by_device_and_are_acyclic(
    case: tuple[Graph, list[int]], merge: bool
) -> None:
    graph, devices = case
    assignment = np.array(devices, dtype=np.int32)
    segments = finest_segments(graph, assignment, graph.units)
    if merge:
        costs = SegmentCosts(np.ones(graph.num_ops), segment_s=0.25)
        segments = merged_segments(graph, segments, costs)
    inner = ~(graph.is_input | graph.is_output)
    assert ((segments.of_op >= 0) == inner).all()
    assert (segments.device[segments.of_op[inner]] == assignment[inner]).all()
    assert_acyclic(segments)


def test_the_finest_partition_lets_the_other_device_start_early() -> None:
    # a feeds b on the other device; c goes on at once; d joins them.
    graph = chain_of({"i": [], "a": ["i"], "b": ["a"], "c": ["a"], "d": ["b", "c"]})
    from dataclasses import replace

    graph = replace(graph, is_input=np.array([True, False, False, False, False]))
    assignment = np.array([0, 0, 1, 0, 0], dtype=np.int32)
    segments = finest_segments(graph, assignment, graph.units)
    assert parts(graph, segments) == {
        frozenset("a"),
        frozenset("b"),
        frozenset("c"),
        frozenset("d"),
    }
    # Where c is short, waiting costs nothing and c joins a.
    quick = SegmentCosts(np.array([0.0, 1.0, 1.0, 1e-6, 1.0]), segment_s=1e-3, handover_s=0.0)
    merged = merged_segments(graph, segments, quick)
    assert merged.count == 3
    # Where c is as long as b, it must stay out of a and run beside b.
    slow = SegmentCosts(np.ones(5), segment_s=1e-3, handover_s=0.0)
    kept = merged_segments(graph, segments, slow)
    assert makespan_s(kept, np.bincount(kept.of_op[1:]) * 1.0, slow) == pytest.approx(3.003)


def test_towers_are_one_segment_each() -> None:
    graph = chain_of({"a1": [], "a2": ["a1"], "b1": [], "b2": ["b1"], "join": ["a2", "b2"]})
    device = {"a1": 0, "a2": 0, "b1": 1, "b2": 1, "join": 0}
    assignment = np.array([device[name] for name in graph.op_names], dtype=np.int32)
    segments = finest_segments(graph, assignment, graph.units)
    assert parts(graph, segments) == {
        frozenset({"a1", "a2"}),
        frozenset({"b1", "b2"}),
        frozenset({"join"}),
    }


def test_a_unit_with_a_path_through_another_device_is_refused() -> None:
    graph = chain_of({"read": [], "middle": ["read"], "assign": ["middle"]})
    units = np.array([0, 1, 0], dtype=np.int32)
    with pytest.raises(CompileError, match="place them together"):
        finest_segments(graph, np.array([0, 1, 0], dtype=np.int32), units)
    together = finest_segments(graph, np.array([1, 1, 1], dtype=np.int32), units)
    assert together.count == 1
