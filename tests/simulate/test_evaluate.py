import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulate import reference
from situs.core import Dataflow, ExecutionModel, Limits, Pipeline, Problem, Sequential, violation
from situs.errors import PlacementError, ProblemError
from situs.simulate import evaluate, memory_shortfall, peak_memory
from situs.testing.problems import chain3, diamond4, fork_join, memory_tight, tiny, two_islands
from situs.testing.strategies import execution_models, problems


def all_assignments(problem: Problem) -> np.ndarray:
    numbers = itertools.product(range(problem.num_devices), repeat=problem.num_ops)
    return np.array(list(numbers), dtype=np.int32)


@settings(max_examples=600, deadline=None)
@given(
    problems(
        max_ops=9,
        devices=st.integers(1, 3),
        model=execution_models(),
        colocation=True,
        streams=True,
        memory=True,
    ),
    st.integers(0, 2**32 - 1),
)
def test_equals_the_reference(problem: Problem, seed: int) -> None:
    rng = np.random.default_rng(seed)
    batch = rng.integers(0, problem.num_devices, (6, problem.num_ops), dtype=np.int32)
    batch[1:] = batch[1:, problem.units]
    expected = [reference.latency(problem, a) for a in batch]
    assert evaluate(problem, batch) == pytest.approx(expected, rel=1e-9)
    for a in batch:
        if violation(problem, a) is None and np.isfinite(reference.latency(problem, a)):
            assert peak_memory(problem, a).tolist() == reference.peak_memory(problem, a.tolist())


@pytest.mark.parametrize(
    ("make", "model", "best"),
    [
        (chain3, Sequential(), 5),
        (chain3, Dataflow(), 5),
        (chain3, Pipeline(), 2),
        (diamond4, Sequential(), 8),
        (diamond4, Dataflow(), 7),
        (diamond4, Pipeline(), 4),
        (fork_join, Sequential(), 10),
        (fork_join, Dataflow(), 6.5),
        (fork_join, Pipeline(), 5),
        (two_islands, Sequential(), 6),
        (two_islands, Dataflow(), 3),
        (two_islands, Pipeline(), 3),
        (memory_tight, Sequential(), 4),
        (memory_tight, Dataflow(), 4),
    ],
)
def test_optimum_by_hand(make: object, model: ExecutionModel, best: float) -> None:
    problem = make(model)  # type: ignore[operator]
    assert evaluate(problem, all_assignments(problem)).min() == best


@pytest.mark.parametrize("dispatch", ["priority", "fifo"])
def test_closed_forms(dispatch: str) -> None:
    model = Dataflow(dispatch)  # type: ignore[arg-type]
    chain = {f"x{i}": [f"x{i - 1}"] if i else [] for i in range(10)}
    alternating = tiny(chain, dict.fromkeys(chain, (1.0, 1.0)), 0.5, model=model)
    assert evaluate(alternating, np.array([[0, 1] * 5], dtype=np.int32)) == 10 + 9 * 0.5
    fork = {"a": [], **{f"b{i}": ["a"] for i in range(6)}}
    problem = tiny(fork, dict.fromkeys(fork, (1.0, 1.0)), 0.5, model=model)
    # One tensor feeds all: it is moved once; the other device's three begin 0.5 s later.
    assert evaluate(problem, np.array([[0, 0, 0, 0, 1, 1, 1]], dtype=np.int32)) == 1 + 0.5 + 3
    join = {**{f"b{i}": [] for i in range(4)}, "c": [f"b{i}" for i in range(4)]}
    problem = tiny(join, dict.fromkeys(join, (1.0, 1.0)), 2.0, model=model)
    # The link carries the four tensors one after another: 1 + 4 * 2, then c.
    assert evaluate(problem, np.array([[0, 0, 0, 0, 1]], dtype=np.int32)) == 1 + 4 * 2 + 1


def test_pipeline_staged_pays_out_once_and_in_per_destination() -> None:
    ops = {"a": [], "b": ["a"], "c": ["a"]}
    problem = tiny(ops, dict.fromkeys(ops, (1.0, 1.0, 1.0)), 10.0, model=Pipeline("staged"))
    # a on D1: 1 + one payment out; b, c on D2: 2 + one payment in; c on D0 pays nothing.
    values = evaluate(problem, np.array([[1, 2, 2], [1, 0, 0], [1, 2, 0]], dtype=np.int32))
    assert values.tolist() == [12, 11, 11]


def test_contiguous_refuses_to_come_back() -> None:
    problem = chain3(Pipeline(contiguous=True))
    values = evaluate(problem, np.array([[0, 1, 0], [0, 1, 1]], dtype=np.int32))
    assert values.tolist() == [np.inf, 5]


def test_memory_limit_says_who_and_how_much() -> None:
    problem = memory_tight()
    both = np.array([0, 0], dtype=np.int32)
    assert peak_memory(problem, both).tolist() == [122, 0]
    assert evaluate(problem, both[None])[0] == np.inf
    assert memory_shortfall(problem, both) == ("D0 is short of 22 B: it needs 122 B and has 100 B")
    assert memory_shortfall(problem, np.array([0, 1], dtype=np.int32)) is None


def test_a_freed_tensor_makes_room() -> None:
    chain = {f"x{i}": [f"x{i - 1}"] if i else [] for i in range(10)}
    for model, peak in ((Sequential(), 2), (Dataflow(), 2), (Pipeline(), 10)):
        problem = tiny(chain, dict.fromkeys(chain, (1.0,)), model=model)
        assert peak_memory(problem, np.zeros(10, dtype=np.int32)).tolist() == [peak]


def test_pins_and_units_are_hard() -> None:
    base = chain3()
    pinned = Limits(pinned=np.array([1, -1, -1]), together=np.array([-1, 0, 0]))
    problem = Problem(base.graph, base.cluster, base.costs, base.model, pinned)
    values = evaluate(problem, np.array([[0, 0, 0], [1, 0, 1], [1, 1, 1]], dtype=np.int32))
    assert values.tolist() == [np.inf, np.inf, 9]
    with pytest.raises(PlacementError, match="may not run on D0"):
        peak_memory(problem, np.array([0, 0, 0], dtype=np.int32))


@pytest.mark.parametrize("model", [Sequential(), Dataflow(), Pipeline()])
def test_threads_change_nothing(model: ExecutionModel) -> None:
    chain = {f"x{i}": [f"x{i - 1}"] if i else [] for i in range(50)}
    problem = tiny(chain, dict.fromkeys(chain, (1.0, 1.0)), model=model)
    batch = np.random.default_rng(0).integers(0, 2, (8001, 50), dtype=np.int32)
    assert np.array_equal(evaluate(problem, batch, threads=2), evaluate(problem, batch, threads=1))


@pytest.mark.parametrize("wrong", [np.zeros((1, 4)), np.zeros(3), np.array([[0, 2, 0]])])
def test_refuses_what_is_not_an_assignment(wrong: np.ndarray) -> None:
    with pytest.raises(ProblemError, match=r"shape|outside"):
        evaluate(chain3(), wrong.astype(np.int32))
