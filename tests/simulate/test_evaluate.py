import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situs.core import Dataflow, ExecutionModel, Pipeline, Problem, Sequential
from situs.errors import PlacementError
from situs.simulate import evaluate
from situs.simulate.ranks import upward_ranks
from situs.testing.problems import chain3, diamond4, fork_join, tiny, two_islands
from situs.testing.strategies import problems, random_rows

from . import reference

FLOWS = [
    Dataflow(dispatch, links, charge)
    for dispatch in ("priority", "fifo")
    for links in ("shared", "unlimited")
    for charge in ("tensor", "edge")
]
PIPELINES = [
    Pipeline(transfers, contiguous, backward)
    for transfers in ("link", "staged")
    for contiguous, backward in ((False, ()), (True, ()), (True, ("Add", "Relu")))
]


def value(problem: Problem, a: np.ndarray) -> float:
    if isinstance(problem.model, Sequential):
        return reference.sequential(problem, a)
    if isinstance(problem.model, Pipeline):
        return reference.pipeline(problem, a)
    return reference.dataflow(problem, a, upward_ranks(problem))


def agree(problem: Problem, rows: np.ndarray) -> None:
    expected = [value(problem, a) for a in rows]
    np.testing.assert_allclose(evaluate(problem, rows), expected, rtol=1e-9, atol=1e-12)


ANY_DEVICES = st.integers(1, 4)


@settings(max_examples=150, deadline=None)
@given(problems(max_ops=10, devices=ANY_DEVICES, colocation=True), st.integers(0, 2**32))
def test_sequential_equals_reference(problem: Problem, seed: int) -> None:
    agree(problem, random_rows(problem, seed, 4))


@settings(max_examples=300, deadline=None)
@given(
    problems(
        max_ops=10,
        devices=ANY_DEVICES,
        model=st.sampled_from(FLOWS),
        colocation=True,
        streams=True,
    ),
    st.integers(0, 2**32),
)
def test_dataflow_equals_reference(problem: Problem, seed: int) -> None:
    agree(problem, random_rows(problem, seed, 4))


@settings(max_examples=150, deadline=None)
@given(
    problems(
        max_ops=10,
        devices=ANY_DEVICES,
        model=st.sampled_from(PIPELINES),
        colocation=True,
        streams=True,
    ),
    st.integers(0, 2**32),
)
def test_pipeline_equals_reference(problem: Problem, seed: int) -> None:
    agree(problem, random_rows(problem, seed, 4))


def best(problem: Problem) -> float:
    rows = np.array(list(itertools.product(range(problem.num_devices), repeat=problem.num_ops)))
    return float(evaluate(problem, rows).min())


@pytest.mark.parametrize(
    ("make", "model", "expected"),
    [
        (chain3, Sequential(), 5),
        (chain3, Dataflow(), 5),
        (diamond4, Sequential(), 8),
        (diamond4, Dataflow(), 7),
        (diamond4, Pipeline(), 4),
        (fork_join, Sequential(), 10),
        (fork_join, Dataflow(), 6.5),
        (fork_join, Pipeline(), 5),
        (two_islands, Sequential(), 6),
        (two_islands, Dataflow(), 3),
        (two_islands, Pipeline(), 3),
    ],
)
def test_optima_solved_by_hand(make, model: ExecutionModel, expected: float) -> None:
    assert best(make(model)) == expected


def test_diamond_with_cheap_transfers() -> None:
    assert best(diamond4(Dataflow(), 0.25)) == 6.25


@pytest.mark.parametrize("model", FLOWS)
@pytest.mark.parametrize("length", [1, 5, 40])
def test_chain_has_a_closed_form(model: Dataflow, length: int) -> None:
    # On a chain nothing overlaps: every op and every crossing adds up.
    ops = {f"op{i}": [f"op{i - 1}"] if i else [] for i in range(length)}
    problem = tiny(ops, dict.fromkeys(ops, (2.0, 3.0)), 0.5, model=model)
    a = np.arange(length) % 2
    expected = sum(3.0 if d else 2.0 for d in a) + 0.5 * (length - 1)
    assert evaluate(problem, a[None])[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("branches", [1, 3, 7])
def test_fork_over_a_shared_link(branches: int) -> None:
    # One tensor a branch leaves at once; a shared link hands them over one by one.
    ops: dict[str, list[str]] = {f"s{i}": [] for i in range(branches)}
    ops |= {f"r{i}": [f"s{i}"] for i in range(branches)}
    seconds = {name: (0.0, 1.0) if name[0] == "s" else (9.0, 0.25) for name in ops}
    a = np.array([0] * branches + [1] * branches)
    shared = tiny(ops, seconds, 2.0, model=Dataflow())
    a = np.array([0 if name[0] == "s" else 1 for name in shared.graph.op_names])
    assert evaluate(shared, a[None])[0] == 2.0 * branches + 0.25
    unlimited = tiny(ops, seconds, 2.0, model=Dataflow(links="unlimited"))
    assert evaluate(unlimited, a[None])[0] == 2.0 + 0.25 * branches


def test_one_transfer_per_tensor_or_per_edge() -> None:
    ops = {"a": [], "b": ["a"], "c": ["a"], "d": ["a"]}
    seconds = dict.fromkeys("abcd", (1.0, 1.0))
    a = np.array([[0, 1, 1, 1]])
    assert evaluate(tiny(ops, seconds, 5.0, model=Dataflow()), a)[0] == 1 + 5 + 3
    # Each reader waits for its own copy: they arrive at 6, 11 and 16.
    assert evaluate(tiny(ops, seconds, 5.0, model=Dataflow(charge="edge")), a)[0] == 16 + 1


def test_faster_links_can_make_a_fixed_placement_slower() -> None:
    # Graham's anomaly under first-come dispatch: a faster link lets a short op overtake the one
    # that others wait for.
    ops = {"p": [], "short": ["p"], "long": [], "after": ["long"]}
    seconds = {"p": (0.0, 9.0), "short": (9.0, 4.0), "long": (9.0, 1.0), "after": (5.0, 9.0)}
    ops["wait"], seconds["wait"] = [], (9.0, 2.0)
    ops["long"] = ["wait"]
    model = Dataflow(dispatch="fifo", links="unlimited")
    seconds["after"] = (9.0, 5.0)
    slow, fast = (tiny(ops, seconds, s, model=model) for s in (2.5, 1.5))
    a = np.array([[0 if name == "p" else 1 for name in slow.graph.op_names]])
    assert evaluate(slow, a)[0] == 2 + 1 + 4 + 5
    assert evaluate(fast, a)[0] == 2 + 4 + 1 + 5


def test_threads_change_nothing() -> None:
    problem = fork_join(Dataflow())
    rows = np.random.default_rng(0).integers(0, 2, (30_000, 4))
    np.testing.assert_array_equal(
        evaluate(problem, rows, threads=3), evaluate(problem, rows, threads=1)
    )


def test_wrong_shapes_and_devices_are_refused() -> None:
    with pytest.raises(PlacementError, match="shape"):
        evaluate(chain3(), np.zeros((1, 4), dtype=np.int32))
    for device in (-1, 2):
        with pytest.raises(PlacementError, match=r"0\.\.1"):
            evaluate(chain3(), np.full((1, 3), device))
    assert len(evaluate(chain3(), np.zeros((0, 3), dtype=np.int32))) == 0
