import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situs.core import Dataflow, ExecutionModel, Limits, Pipeline, Problem, Sequential
from situs.errors import PlacementError, ProblemError
from situs.simulate import Evaluator, evaluate
from situs.testing.problems import chain3, tiny
from situs.testing.strategies import execution_models, problems

ANY = problems(
    max_ops=12,
    devices=st.integers(1, 3),
    model=execution_models(),
    colocation=True,
    streams=True,
    memory=True,
)


@settings(max_examples=100, deadline=None)
@given(
    ANY,
    st.integers(0, 2**32 - 1),
)
def test_equals_evaluate_through_moves_and_undos(problem: Problem, seed: int) -> None:
    rng = np.random.default_rng(seed)
    start = problem.unit_allowed.argmax(axis=1).astype(np.int32)[problem.units]
    walk(problem, start, rng, 25)


def walk(problem: Problem, start: np.ndarray, rng: np.random.Generator, steps: int) -> None:
    evaluator = Evaluator(problem, start)
    path = [start]
    assert evaluator.seconds == pytest.approx(evaluate(problem, start[None])[0], rel=1e-9)
    for _ in range(steps):
        if len(path) > 1 and rng.random() < 0.4:
            path.pop()
            seconds = evaluator.undo()
        else:
            ops = rng.integers(0, problem.num_ops, int(rng.integers(0, 4)))
            device = int(rng.integers(problem.num_devices))
            moved = path[-1].copy()
            moved[np.isin(problem.units, problem.units[ops])] = device
            path.append(moved)
            seconds = evaluator.move(int(ops[0]) if len(ops) == 1 else ops, device)
        assert np.array_equal(evaluator.assignment, path[-1])
        assert seconds == evaluator.seconds
        assert seconds == pytest.approx(evaluate(problem, path[-1][None])[0], rel=1e-9, abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(
    ANY,
    st.integers(0, 2**32 - 1),
)
def test_prices_and_walks_equal_evaluate(problem: Problem, seed: int) -> None:
    rng = np.random.default_rng(seed)
    start = problem.unit_allowed.argmax(axis=1).astype(np.int32)[problem.units]
    check_prices(problem, start, rng, 20)
    check_walk(problem, start, rng, 20)


def check_prices(problem: Problem, start: np.ndarray, rng: np.random.Generator, count: int) -> None:
    evaluator = Evaluator(problem, start)
    for _ in range(2):
        sizes = np.minimum(rng.integers(0, 4, count), problem.num_units)
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        units = np.concatenate([rng.permutation(problem.num_units)[:size] for size in sizes])
        devices = rng.integers(0, problem.num_devices, count)
        moved = np.repeat(evaluator.assignment[None], count, axis=0)
        for k in range(count):
            moved[k, np.isin(problem.units, units[offsets[k] : offsets[k + 1]])] = devices[k]
        right = evaluate(problem, moved)
        before = evaluator.seconds, evaluator.assignment
        priced = evaluator.price(units, devices, offsets)
        assert priced == pytest.approx(right, rel=1e-9, abs=1e-12)
        limits = right * rng.choice([0.5, 1.0, 2.0], count)
        limited = evaluator.price(units, devices, offsets, limits)
        kept = right <= limits
        assert limited[kept] == pytest.approx(right[kept], rel=1e-9, abs=1e-12)
        given_up = np.isinf(limited[~kept])
        assert limited[~kept][~given_up] == pytest.approx(right[~kept][~given_up], rel=1e-9)
        assert evaluator.seconds == before[0]
        assert np.array_equal(evaluator.assignment, before[1])
        evaluator.move(int(rng.integers(problem.num_ops)), int(rng.integers(problem.num_devices)))


def check_walk(problem: Problem, start: np.ndarray, rng: np.random.Generator, count: int) -> None:
    evaluator = Evaluator(problem, start)
    current, seconds = start, evaluator.seconds
    least, at = seconds, start
    for _ in range(2):
        sizes = np.minimum(rng.integers(1, 4, count), problem.num_units)
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        units = np.concatenate([rng.permutation(problem.num_units)[:size] for size in sizes])
        devices = rng.integers(0, problem.num_devices, count)
        # A value that meets its limit to the last digit may fall to either side.
        worse_s = rng.choice([0.013, 0.0], count) * rng.random(count) + 1e-9
        if not np.isfinite(seconds):
            with pytest.raises(ProblemError, match="begins at a feasible placement"):
                evaluator.walk(units, devices, offsets, worse_s)
            return
        least, at = seconds, current
        for k in range(count):
            moved = current.copy()
            moved[np.isin(problem.units, units[offsets[k] : offsets[k + 1]])] = devices[k]
            after = evaluate(problem, moved[None])[0]
            if np.isfinite(after) and after <= seconds + worse_s[k]:
                current, seconds = moved, after
                if seconds < least - 1e-12:
                    least, at = seconds, current
        best_s, best = evaluator.walk(units, devices, offsets, worse_s)
        assert np.array_equal(evaluator.assignment, current)
        assert evaluator.seconds == pytest.approx(seconds, rel=1e-9, abs=1e-12)
        assert best_s == pytest.approx(least, rel=1e-9, abs=1e-12)
        assert evaluate(problem, best[None])[0] == pytest.approx(
            evaluate(problem, at[None])[0], rel=1e-9, abs=1e-12
        )
        evaluator.move(int(rng.integers(problem.num_ops)), int(rng.integers(problem.num_devices)))
        evaluator.undo()


def random_problem(n: int, model: ExecutionModel) -> Problem:
    rng = np.random.default_rng(n)
    names = [f"x{i}" for i in range(n)]
    ops = {
        name: [names[j] for j in sorted(set(rng.integers(max(0, i - 12), i, 2).tolist()))]
        if i
        else []
        for i, name in enumerate(names)
    }
    return tiny(ops, {name: tuple(rng.random(3)) for name in names}, 0.1, model=model)


@pytest.mark.parametrize(
    "model", [Sequential(), Dataflow(), Dataflow("fifo", "unlimited", "edge"), Pipeline()]
)
def test_a_long_walk_on_a_large_graph_does_not_drift(model: ExecutionModel) -> None:
    problem = random_problem(300, model)
    walk(problem, np.zeros(300, dtype=np.int32), np.random.default_rng(1), 1500)


@pytest.mark.parametrize(
    "model", [Sequential(), Dataflow(), Dataflow("fifo", "unlimited", "edge"), Pipeline()]
)
def test_prices_and_walks_on_a_large_graph(model: ExecutionModel) -> None:
    problem, rng = random_problem(300, model), np.random.default_rng(2)
    check_prices(problem, rng.integers(0, 3, 300, dtype=np.int32), rng, 300)
    check_walk(problem, rng.integers(0, 3, 300, dtype=np.int32), rng, 500)


def test_a_unit_moves_whole() -> None:
    base = chain3()
    limits = Limits(together=np.array([0, -1, 0]))
    problem = Problem(base.graph, base.cluster, base.costs, base.model, limits)
    evaluator = Evaluator(problem, np.array([0, 0, 0], dtype=np.int32))
    assert evaluator.seconds == 6
    assert evaluator.move(2, 1) == 4 + 4 + 4 + 2
    assert evaluator.assignment.tolist() == [1, 0, 1]
    assert evaluator.undo() == 6


def test_an_infeasible_move_is_infinite_and_can_be_left() -> None:
    base = chain3()
    problem = Problem(
        base.graph, base.cluster, base.costs, base.model, Limits(pinned=np.array([0, -1, -1]))
    )
    evaluator = Evaluator(problem, np.array([0, 1, 0], dtype=np.int32))
    assert evaluator.move(0, 1) == np.inf
    assert evaluator.move(1, 0) == np.inf
    assert evaluator.move(0, 0) == 6


def test_refusals() -> None:
    evaluator = Evaluator(chain3(), np.zeros(3, dtype=np.int32))
    with pytest.raises(ProblemError, match="no move to undo"):
        evaluator.undo()
    with pytest.raises(ProblemError, match=r"outside 0\.\.1"):
        evaluator.move(0, 2)
    base = chain3()
    pinned = Problem(
        base.graph, base.cluster, base.costs, base.model, Limits(pinned=np.array([1, -1, -1]))
    )
    with pytest.raises(PlacementError, match="may not run on D0"):
        Evaluator(pinned, np.zeros(3, dtype=np.int32))
