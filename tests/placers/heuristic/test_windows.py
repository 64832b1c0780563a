import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from situs.core import Dataflow, MaxEvaluations, Problem, violation
from situs.costs import MODELLED, CostTable
from situs.graph import OpSpec, build_graph
from situs.placers import get_placer
from situs.placers.heuristic.windows import better_window, narrow_cuts, window
from situs.simulate import SimulatedObjective, bound, evaluate
from situs.testing.problems import fork_join
from situs.testing.strategies import assignments, clusters, execution_models, problems

DATAFLOW = problems(
    max_ops=8,
    devices=st.integers(1, 3),
    model=execution_models().filter(lambda model: isinstance(model, Dataflow)),
    colocation=True,
)


def diamonds(count: int) -> Problem:
    """``count`` forks and joins in a row, 6 ops each: 1 s in turn, or a few on another device."""
    specs: list[OpSpec] = []
    for k in range(count):
        fork = len(specs)
        before = [(fork - 1, 0)] if k else []
        names = [f"{kind}{k}" for kind in ("fork", "a", "b", "c", "d", "join")]
        sources = [before, *[[(fork, 0)]] * 4, [(fork + i, 0) for i in range(1, 5)]]
        specs += [
            OpSpec(name, "Op", source, [()], ["f32"], [4])
            for name, source in zip(names, sources, strict=True)
        ]
    graph = build_graph("diamonds", specs)
    away = 1.0 - np.eye(2)
    costs = CostTable(
        np.ones((graph.num_ops, 2)),
        np.ones(graph.num_tensors),
        0.25 * away,
        0.0 * away,
        np.zeros(2),
        MODELLED,
    )
    return Problem(graph, clusters(2), costs, Dataflow())


@given(data=st.data(), problem=DATAFLOW)
@settings(max_examples=100, deadline=None)
def test_a_window_of_everything_is_the_problem(data: st.DataObject, problem: Problem) -> None:
    assignment = data.draw(assignments(problem))
    everything = np.arange(problem.num_ops, dtype=np.int32)
    part = window(problem, everything, assignment)
    values = evaluate(part.problem, assignment[None]), evaluate(problem, assignment[None])
    assert values[0] == values[1]
    np.testing.assert_array_equal(part.splice(assignment, assignment), assignment)


@given(data=st.data(), problem=DATAFLOW)
@settings(max_examples=60, deadline=None)
def test_only_what_is_in_the_window_moves(data: st.DataObject, problem: Problem) -> None:
    assignment = data.draw(assignments(problem))
    chosen = np.flatnonzero(data.draw(st.lists(st.booleans(), min_size=8))[: problem.num_ops])
    moved = better_window(
        problem, chosen.astype(np.int32), assignment, 0.01, np.random.default_rng(0)
    )
    if moved is None:
        return
    assert violation(problem, moved) is None
    outside = np.setdiff1d(np.arange(problem.num_ops), chosen)
    np.testing.assert_array_equal(moved[outside], assignment[outside])


def test_a_window_is_walked_to_its_optimum() -> None:
    problem = fork_join()
    start = np.zeros(4, dtype=np.int32)
    moved = better_window(
        problem, np.arange(4, dtype=np.int32), start, 0.01, np.random.default_rng(0)
    )
    assert moved is not None
    assert evaluate(problem, moved[None])[0] == 6.5


def test_nothing_better_is_none() -> None:
    problem = fork_join()
    best = np.array([0, 0, 1, 1], dtype=np.int32)
    assert evaluate(problem, best[None])[0] == 6.5
    everything = np.arange(4, dtype=np.int32)
    assert better_window(problem, everything, best, 0.01, np.random.default_rng(0)) is None


def test_schedules_are_cut_where_one_tensor_is_alive() -> None:
    problem = diamonds(100)
    order = np.arange(problem.num_ops)
    parts = narrow_cuts(problem, order)
    np.testing.assert_array_equal(np.concatenate(parts), order)
    assert {problem.graph.op_names[part[-1]].rstrip("0123456789") for part in parts[:-1]} <= {
        "join",
        "fork",
    }
    assert all(64 <= len(part) <= 512 for part in parts[:-1])


def test_search_improves_large_graphs_by_windows() -> None:
    problem = diamonds(700)
    objective = SimulatedObjective(problem)
    rng = np.random.default_rng(0)
    one_device = float(evaluate(problem, np.zeros((1, problem.num_ops), dtype=np.int32))[0])
    assert one_device == problem.num_ops
    result = get_placer("search")(problem, objective, MaxEvaluations(400), rng)
    assert "windows" in result.detail
    assert result.placement is not None
    # Fork at 0 and two branches at home until 3, sent by 3.25; two away from 1.25 to 3.25, then the
    # join there, then the next diamond: 4.25 s each.
    assert result.seconds == 4.25 * 700
    assert bound(problem).seconds <= result.seconds
    assert result.seconds == evaluate(problem, result.placement.assignment[None])[0]
