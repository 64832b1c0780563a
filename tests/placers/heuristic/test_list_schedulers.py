"""List schedulers: their contract, hand-made answers, limits, and 100,000-op sanity."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situs.core import Never, Problem, violation
from situs.placers import Placer, get_placer
from situs.simulate import SimulatedObjective
from situs.testing.placer_suite import PlacerSuite
from situs.testing.strategies import problems

NAMES = ("heft", "peft", "cpop", "etf", "m-etf", "m-sct", "m-topo", "critical-path")


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


class _Suite(PlacerSuite):
    which = ""

    def placer(self) -> Placer:
        return get_placer(self.which)


for _name in NAMES:
    _class = f"Test_{_name}"
    globals()[_class] = type(_class, (_Suite,), {"which": _name})
del _Suite


def assignment_of(spec: str, problem: Problem) -> list[int] | None:
    result = get_placer(spec)(
        problem, SimulatedObjective(problem), Never(), np.random.default_rng(0)
    )
    return None if result.placement is None else result.placement.assignment.tolist()


@given(problem=problems(max_ops=7, devices=st.integers(1, 3), colocation=True))
@settings(max_examples=25, deadline=None)
def test_hard_limits_are_kept(problem: Problem) -> None:
    for spec in NAMES:
        result = get_placer(spec)(
            problem, SimulatedObjective(problem), Never(), np.random.default_rng(0)
        )
        if result.placement is not None:
            assert violation(problem, result.placement.assignment) is None
