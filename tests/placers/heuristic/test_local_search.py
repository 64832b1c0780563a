import numpy as np
import pytest

from situs.core import MaxEvaluations, Never
from situs.errors import ParameterError
from situs.placers import Placer, get_placer
from situs.simulate import SimulatedObjective
from situs.testing.placer_suite import PlacerSuite
from situs.testing.problems import chain3


class TestLocalSearch(PlacerSuite):
    def placer(self) -> Placer:
        return get_placer("local-search")


def test_finds_the_known_optimum_and_ends_by_itself() -> None:
    problem = chain3()
    result = get_placer("local-search{patience=20,kicks=3}")(
        problem, SimulatedObjective(problem), Never(), np.random.default_rng(0)
    )
    assert result.seconds == 5.0


def test_budget_of_evaluations_is_kept() -> None:
    problem = chain3()
    result = get_placer("local-search")(
        problem, SimulatedObjective(problem), MaxEvaluations(17), np.random.default_rng(0)
    )
    assert result.evaluations == 17


@pytest.mark.parametrize("spec", ["patience=0", "kicks=-1", "strength=0"])
def test_bad_parameters(spec: str) -> None:
    with pytest.raises(ParameterError, match="must be"):
        get_placer(f"local-search{{{spec}}}")
