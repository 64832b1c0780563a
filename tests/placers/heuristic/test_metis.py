"""METIS as a placer: its contract, a cut that is known, limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situs.core import Dataflow, Never, Problem, violation
from situs.errors import ParameterError
from situs.placers import Placer, get_placer
from situs.simulate import SimulatedObjective
from situs.testing.placer_suite import PlacerSuite
from situs.testing.problems import tiny
from situs.testing.strategies import problems


class TestMetis(PlacerSuite):
    def placer(self) -> Placer:
        return get_placer("metis")


def test_two_chains_are_cut_apart() -> None:
    # Two chains of 8 s that nothing joins: any other cut has a transfer, or is out of balance.
    chains = {f"{c}{k}": [f"{c}{k - 1}"] if k else [] for c in "ab" for k in range(8)}
    problem = tiny(chains, dict.fromkeys(chains, (1.0, 1.0)), 5.0, model=Dataflow())
    result = get_placer("metis{imbalances=30}")(
        problem, SimulatedObjective(problem), Never(), np.random.default_rng(0)
    )
    assert result.seconds == 8.0


@given(problem=problems(max_ops=7, devices=st.integers(1, 3), colocation=True))
@settings(max_examples=25, deadline=None)
def test_hard_limits_are_kept(problem: Problem) -> None:
    result = get_placer("metis")(
        problem, SimulatedObjective(problem), Never(), np.random.default_rng(0)
    )
    if result.placement is not None:
        assert violation(problem, result.placement.assignment) is None


@pytest.mark.parametrize("imbalances", ["0", "x", "30+"])
def test_bad_parameters(imbalances: str) -> None:
    with pytest.raises(ParameterError, match="imbalances"):
        get_placer(f"metis{{imbalances={imbalances}}}")
