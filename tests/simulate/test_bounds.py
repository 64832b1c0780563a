import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situs.core import Dataflow, ExecutionModel, Pipeline, Problem, Sequential
from situs.simulate import bound, evaluate
from situs.simulate.bounds import bounds
from situs.testing.problems import chain3, fork_join, tiny, two_islands
from situs.testing.strategies import problems

MODELS: list[ExecutionModel] = [
    Sequential(),
    Dataflow(),
    Dataflow("fifo", "unlimited", "edge"),
    Pipeline(),
    Pipeline("staged", contiguous=True),
]


def optimum(problem: Problem) -> float:
    units = list(itertools.product(range(problem.num_devices), repeat=problem.num_units))
    return float(evaluate(problem, np.array(units, dtype=np.int32)[:, problem.units]).min())


@settings(max_examples=100, deadline=None)
@given(
    problems(
        max_ops=6,
        devices=st.integers(1, 3),
        model=st.sampled_from(MODELS),
        colocation=True,
        streams=True,
    )
)
def test_no_bound_exceeds_the_optimum(problem: Problem) -> None:
    best = optimum(problem)
    for candidate in bounds(problem):
        assert 0 <= candidate.seconds <= best * (1 + 1e-9), candidate


@pytest.mark.parametrize(
    ("problem", "expected", "name"),
    [
        (chain3(), 5.0, "minimum cut"),
        (two_islands(Dataflow()), 3.0, None),
        (two_islands(Pipeline()), 3.0, None),
        (fork_join(Dataflow()), 6.0, None),  # a, then 8 s of work on two devices, then c
        (fork_join(Pipeline()), 5.0, "area"),
    ],
)
def test_known_bounds(problem: Problem, expected: float, name: str | None) -> None:
    found = bound(problem)
    assert found.seconds == pytest.approx(expected, rel=1e-9)
    assert name in (None, found.name)


def test_relaxation_of_three_devices_sees_transfers() -> None:
    # Each op is free on a device of its own: work alone proves nothing, the transfers do.
    ops = {"a": [], "b": ["a"], "c": ["b"]}
    seconds = {"a": (0.0, 5.0, 5.0), "b": (5.0, 0.0, 5.0), "c": (5.0, 5.0, 0.0)}
    problem = tiny(ops, seconds, 2.0)
    assert optimum(problem) == 4
    assert bound(problem).seconds == pytest.approx(4, rel=1e-9)
    assert bound(problem).name == "LP relaxation"
