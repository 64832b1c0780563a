import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situs.core import Dataflow, Pipeline, Problem, Sequential
from situs.errors import PlacementError
from situs.simulate import Evaluator, evaluate
from situs.testing.problems import chain3, memory_tight
from situs.testing.strategies import problems, random_rows

MODELS = [
    Sequential(),
    *(
        Dataflow(dispatch, links, charge)
        for dispatch in ("priority", "fifo")
        for links in ("shared", "unlimited")
        for charge in ("tensor", "edge")
    ),
    Pipeline(),
]


@settings(max_examples=150, deadline=None)
@given(
    problems(
        max_ops=14,
        devices=st.integers(1, 4),
        model=st.sampled_from(MODELS),
        colocation=True,
        streams=True,
    ),
    st.integers(0, 2**32),
)
def test_moves_and_undo_equal_evaluation(problem: Problem, seed: int) -> None:
    rng = np.random.default_rng(seed)
    start = random_rows(problem, seed, 2)[0]
    evaluator = Evaluator(problem, start)
    current, path = start.copy(), []
    for _ in range(25):
        if path and rng.random() < 0.3:
            current = path.pop()
            seconds = evaluator.undo()
        else:
            path.append(current.copy())
            ops = np.flatnonzero(problem.units == rng.integers(problem.num_units))
            if rng.random() < 0.2:
                ops = rng.integers(0, problem.num_ops, 2)
            device = int(rng.integers(problem.num_devices))
            current = current.copy()
            current[ops] = device
            seconds = evaluator.move(int(ops[0]) if len(ops) == 1 else ops, device)
        np.testing.assert_array_equal(evaluator.assignment, current)
        assert seconds == evaluator.seconds
        np.testing.assert_allclose(
            seconds, evaluate(problem, current[None])[0], rtol=1e-9, atol=1e-12
        )
    units = rng.integers(0, problem.num_units, 6)
    devices = rng.integers(0, problem.num_devices, 6)
    rows = np.stack([current] * 6)
    for row, u, d in zip(rows, units, devices, strict=True):
        row[problem.units == u] = d
    np.testing.assert_allclose(
        evaluator.scan(units, devices), evaluate(problem, rows), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_array_equal(evaluator.assignment, current)


def test_memory_limits_hold_after_moves() -> None:
    evaluator = Evaluator(memory_tight(), np.array([1, 1]))
    assert evaluator.seconds == 4
    assert evaluator.move(0, 0) == 4
    assert evaluator.move(1, 0) == np.inf
    assert evaluator.undo() == 4


def test_misuse_is_refused() -> None:
    evaluator = Evaluator(chain3(), np.zeros(3, dtype=np.int32))
    with pytest.raises(PlacementError, match="no move"):
        evaluator.undo()
    for ops, device in ((3, 0), (0, 2), (-1, 0)):
        with pytest.raises(PlacementError, match=r"0\.\."):
            evaluator.move(ops, device)
    with pytest.raises(PlacementError, match="units"):
        evaluator.scan([5], [0])
    assert evaluator.seconds == 6
