import itertools

import numpy as np
import pytest
from hypothesis import given, settings

from situs.core import Never, Problem
from situs.errors import Status
from situs.placers import Placer, get_placer
from situs.simulate import SimulatedObjective, evaluate
from situs.testing.placer_suite import PlacerSuite
from situs.testing.strategies import problems


class TestMinCut(PlacerSuite):
    def placer(self) -> Placer:
        return get_placer("mincut")


def solve(problem: Problem) -> tuple[Status, float, float]:
    result = get_placer("mincut")(
        problem, SimulatedObjective(problem), Never(), np.random.default_rng(0)
    )
    return result.status, result.seconds, result.bound_s


def brute_force(problem: Problem) -> float:
    choices = itertools.product(range(problem.num_devices), repeat=problem.num_units)
    units = np.array(list(choices), dtype=np.int32)
    return float(evaluate(problem, units[:, problem.units]).min())


@settings(max_examples=200, deadline=None)
@given(problems(max_ops=7, colocation=True))
def test_two_devices_are_proven(problem: Problem) -> None:
    status, seconds, bound_s = solve(problem)
    assert status is Status.OPTIMAL
    assert seconds == bound_s == pytest.approx(brute_force(problem), rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(problems(max_ops=6, devices=3, colocation=True, unsupported=False))
def test_more_devices_are_between_the_optimum_and_every_single_device(problem: Problem) -> None:
    status, seconds, bound_s = solve(problem)
    assert status is Status.OK
    assert bound_s == 0.0
    assert seconds >= brute_force(problem) * (1 - 1e-12)
    singles = [float(evaluate(problem, a[None])[0]) for _, a in problem.uniform()]
    assert seconds <= min(singles) * (1 + 1e-12)


def test_expansion_often_finds_the_optimum_of_three_devices() -> None:
    rng = np.random.default_rng(0)
    found = 0
    from situs.testing.problems import tiny

    for _ in range(30):
        names = [f"n{i}" for i in range(6)]
        ops = {name: names[max(0, i - 2) : i] for i, name in enumerate(names)}
        seconds = {name: tuple(rng.integers(1, 9, 3).astype(float)) for name in names}
        problem = tiny(ops, seconds, transfer_s=1.0)
        found += solve(problem)[1] <= brute_force(problem) * (1 + 1e-12)
    assert found >= 24
