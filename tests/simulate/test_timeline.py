import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situs.core import Dataflow, Pipeline, Problem, Sequential
from situs.errors import PlacementError
from situs.simulate import evaluate, explain, peak_memory, timeline, trace_events, trace_json
from situs.testing.problems import chain3, fork_join, memory_tight
from situs.testing.strategies import problems, random_rows

MODELS = [Sequential(), Dataflow(), Dataflow("fifo", "unlimited"), Dataflow(charge="edge")]


@settings(max_examples=100, deadline=None)
@given(
    problems(
        max_ops=9,
        devices=st.integers(1, 3),
        model=st.sampled_from(MODELS),
        colocation=True,
        streams=True,
    ),
    st.integers(0, 2**32),
)
def test_schedule_is_possible_and_ends_at_the_latency(problem: Problem, seed: int) -> None:
    a = random_rows(problem, seed, 2)[0]
    plan = timeline(problem, a)
    graph, costs = problem.graph, problem.costs
    ops = np.arange(problem.num_ops)
    assert plan.seconds == evaluate(problem, a[None])[0]
    assert max(plan.end_s.max(), 0) == pytest.approx(plan.seconds, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(plan.end_s - plan.start_s, costs.seconds[ops, a], atol=1e-9)
    starts = plan.start_s + 1e-9
    for e in range(graph.num_edges):
        u, v = graph.edge_producer[e], graph.consumer_ops[e]
        assert starts[v] >= plan.end_s[u]
        if a[u] != a[v]:
            hits = np.flatnonzero((plan.tensor == graph.edge_tensor[e]) & (plan.target == a[v]))
            assert len(hits)
            ready = plan.received_s[hits] + costs.boundary_s[a[v]]
            assert (starts[v] >= ready).any()
            assert (plan.sent_s[hits] + 1e-9 >= plan.end_s[u]).all()
    for d, device in enumerate(problem.cluster.devices):
        busy = np.flatnonzero((a == d) & (plan.end_s - plan.start_s > 1e-9))
        changes = [(plan.start_s[i] + 1e-9, 1) for i in busy]
        changes = sorted(changes + [(plan.end_s[i], -1) for i in busy])
        assert max(np.cumsum([c for _, c in changes]), default=0) <= device.streams
    assert list(plan.start_s[list(plan.critical_path)]) == sorted(
        plan.start_s[list(plan.critical_path)]
    )
    assert plan.end_s[plan.critical_path[-1]] == plan.end_s.max()
    rows: dict[int, float] = {}
    events = [event for event in trace_events(problem, plan) if event["ph"] == "X"]
    assert [event["ts"] for event in events] == sorted(event["ts"] for event in events)
    for event in events:
        assert event["dur"] >= 0
        assert event["ts"] >= rows.get(event["tid"], 0.0) - 1e-6
        rows[event["tid"]] = event["ts"] + event["dur"]
    assert len(events) == problem.num_ops + len(plan.tensor)


def test_hand_made_timeline() -> None:
    plan = timeline(fork_join(), np.array([0, 0, 1, 1]))
    np.testing.assert_array_equal(plan.start_s, [0, 1, 1.5, 5.5])
    np.testing.assert_array_equal(plan.end_s, [1, 5, 5.5, 6.5])
    np.testing.assert_array_equal(plan.sent_s, [1, 5])
    assert plan.critical_path in ((0, 1, 3), (0, 2, 3))


def test_trace_says_simulated() -> None:
    problem = chain3()
    document = json.loads(trace_json(problem, timeline(problem, np.array([0, 1, 0]))))
    names = [e["args"]["name"] for e in document["traceEvents"] if e["name"] == "thread_name"]
    assert names == ["D0", "D0 -> D1", "D1", "D1 -> D0"]
    assert "simulated" in document["traceEvents"][0]["args"]["name"]
    assert document["otherData"] == {"seconds": 5.0, "simulated": True}


@pytest.mark.parametrize("model", [Sequential(), Dataflow(), Pipeline()])
def test_memory_limit_makes_infeasible_and_says_by_how_much(model) -> None:
    problem = memory_tight(model)
    rows = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    assert list(np.isinf(evaluate(problem, rows))) == [True, False, False, False]
    peak = peak_memory(problem, rows[0])
    assert peak[1] == 0
    text = explain(problem, rows[0])
    assert text is not None
    assert f"short of {peak[0] - 100:.0f} B" in text
    assert explain(problem, rows[1]) is None
    with pytest.raises(PlacementError, match="short of"):
        timeline(problem, rows[0])


def test_memory_by_hand() -> None:
    # Constants 60 each; a's tensor (1 B) is held with b's (1 B) while b runs.
    assert list(peak_memory(memory_tight(Sequential()), np.array([0, 0]))) == [122, 0]
    assert list(peak_memory(memory_tight(Sequential()), np.array([0, 1]))) == [61, 62]
    assert list(peak_memory(memory_tight(Dataflow()), np.array([0, 0]))) == [122, 0]
    assert list(peak_memory(memory_tight(Pipeline()), np.array([0, 1]))) == [61, 62]


@settings(max_examples=100, deadline=None)
@given(
    problems(max_ops=8, devices=2, model=st.sampled_from([*MODELS, Pipeline()])),
    st.integers(0, 2**32),
)
def test_memory_is_between_constants_and_everything(problem: Problem, seed: int) -> None:
    a = random_rows(problem, seed, 2)[0]
    peak = peak_memory(problem, a)
    graph = problem.graph
    for d in range(2):
        read = {
            c
            for c in range(len(graph.constant_bytes))
            for r in graph.reader_ops[graph.reader_offsets[c] : graph.reader_offsets[c + 1]]
            if a[r] == d
        }
        constants = sum(int(graph.constant_bytes[c]) for c in read)
        assert constants <= peak[d] <= constants + graph.tensor_bytes.sum()
