import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from simulate import reference
from situs.core import Dataflow, Limits, Pipeline, Problem, Sequential
from situs.errors import PlacementError, ProblemError
from situs.simulate import evaluate, timeline, trace_events
from situs.testing.problems import chain3, fork_join, tiny
from situs.testing.strategies import assignments, execution_models, problems


@st.composite
def placed(draw: st.DrawFn) -> tuple[Problem, np.ndarray]:
    models = execution_models().filter(lambda model: not isinstance(model, Pipeline))
    problem = draw(
        problems(max_ops=9, devices=st.integers(1, 3), model=models, colocation=True, streams=True)
    )
    return problem, draw(assignments(problem))


@settings(max_examples=120, deadline=None)
@given(placed())
def test_a_timeline_is_a_schedule(case: tuple[Problem, np.ndarray]) -> None:
    problem, a = case
    line = timeline(problem, a)
    assert line.seconds == pytest.approx(evaluate(problem, a[None])[0], rel=1e-12)
    costs, graph = problem.costs, problem.graph
    assert line.end_s - line.start_s == pytest.approx(costs.seconds[np.arange(len(a)), a])
    assert len(line.tensor) == len(reference.moves_of(problem, a.tolist(), _per_edge(problem)))
    for t, d, start, end in zip(
        line.tensor, line.target, line.transfer_start_s, line.transfer_end_s, strict=True
    ):
        producer = graph.tensor_producer[t]
        assert start >= line.end_s[producer]
        assert end - start == pytest.approx(costs.transfer_s(t, a[producer], d))
    for t in range(graph.num_tensors):
        for v in reference.readers_of(problem, t):
            arrivals = [line.end_s[graph.tensor_producer[t]]]
            if a[v] != a[graph.tensor_producer[t]]:
                here = (line.tensor == t) & (line.target == a[v])
                arrivals = (line.transfer_end_s[here] + costs.boundary_s[a[v]]).tolist()
            assert any(line.start_s[v] >= arrival for arrival in arrivals)


@settings(max_examples=120, deadline=None)
@given(placed())
def test_a_critical_path_leads_without_gap_from_zero_to_the_end(
    case: tuple[Problem, np.ndarray],
) -> None:
    problem, a = case
    line = timeline(problem, a)
    path = line.critical_path.tolist()
    assert line.start_s[path[0]] == 0 or isinstance(problem.model, Sequential)
    assert line.end_s[path[-1]] == line.seconds
    for before, after in pairwise(path):
        # A transfer, or several in a queue, stands between an op and one on another device.
        assert line.end_s[before] <= line.start_s[after]
        if a[before] == a[after] and before not in _producers(problem, after):
            assert line.end_s[before] == line.start_s[after] or isinstance(
                problem.model, Sequential
            )


@settings(max_examples=120, deadline=None)
@given(placed())
def test_trace_rows_are_monotone_and_do_not_overlap(case: tuple[Problem, np.ndarray]) -> None:
    problem, a = case
    line = timeline(problem, a)
    events = json.loads(json.dumps(trace_events(line), allow_nan=False))
    spans = [event for event in events if event["ph"] == "X"]
    assert len(spans) == problem.num_ops + len(line.tensor)
    assert [event["ts"] for event in spans] == sorted(event["ts"] for event in spans)
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    assert {(event["pid"], event["tid"]) for event in spans} <= named
    for row in named:
        mine = [event for event in spans if (event["pid"], event["tid"]) == row]
        for one, two in pairwise(mine):
            assert one["ts"] + one["dur"] <= two["ts"] * (1 + 1e-12)
    for d, device in enumerate(problem.cluster.devices):
        rows = {e["tid"] for e in spans if e["pid"] == 1 and a[e["args"]["op"]] == d}
        # Ops of no duration may start beside others at the instant at which a stream is free.
        assume(all(event["dur"] > 0 for event in spans))
        assert len(rows) <= device.streams


def _per_edge(problem: Problem) -> bool:
    return isinstance(problem.model, Dataflow) and problem.model.charge == "edge"


def _producers(problem: Problem, op: int) -> set[int]:
    inputs = reference.inputs_of(problem, op)
    return {int(problem.graph.tensor_producer[t]) for t in inputs}


def test_by_hand() -> None:
    line = timeline(fork_join(), np.array([0, 0, 1, 1], dtype=np.int32))
    assert line.start_s.tolist() == [0, 1, 1.5, 5.5]
    assert line.transfer_start_s.tolist() == [1, 5]
    assert line.critical_path.tolist() == [0, 1, 3]
    assert line.seconds == 6.5


def test_a_queue_on_a_link_is_part_of_the_critical_path() -> None:
    ops = {"a": [], "b": [], "c": ["a", "b"]}
    problem = tiny(ops, {"a": (1, 1), "b": (1, 1), "c": (1, 1)}, 5.0, model=Dataflow())
    line = timeline(problem, np.array([0, 0, 1], dtype=np.int32))
    assert line.seconds == 1 + 5 + 5 + 1
    assert line.critical_path.tolist() == [0, 2]


def test_refusals() -> None:
    with pytest.raises(ProblemError, match="no timeline"):
        timeline(chain3(Pipeline()), np.zeros(3, dtype=np.int32))
    pinned = Problem(
        chain3().graph,
        chain3().cluster,
        chain3().costs,
        limits=Limits(pinned=np.array([1, -1, -1])),
    )
    with pytest.raises(PlacementError, match="may not run on D0"):
        timeline(pinned, np.zeros(3, dtype=np.int32))
