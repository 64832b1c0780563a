import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from placers.brute_force import least
from situs.core import GapClosed, MaxEvaluations, Never, Problem, violation
from situs.placers import Placer, get_placer
from situs.simulate import SimulatedObjective, bound
from situs.testing.placer_suite import PlacerSuite
from situs.testing.problems import chain3, fork_join, memory_tight
from situs.testing.strategies import execution_models, problems

SMALL = problems(max_ops=6, devices=st.integers(1, 3), model=execution_models(), colocation=True)


class TestSearch(PlacerSuite):
    evaluations = 400

    def placer(self) -> Placer:
        return get_placer("search")


@given(problem=SMALL)
@settings(max_examples=60, deadline=None)
def test_no_bound_exceeds_the_optimum(problem: Problem) -> None:
    assert bound(problem).seconds <= least(problem) * (1 + 1e-9)


@given(problem=SMALL)
@settings(max_examples=25, deadline=None)
def test_search_finds_small_optima_and_keeps_limits(problem: Problem) -> None:
    result = get_placer("search{patience=150}")(
        problem, SimulatedObjective(problem), MaxEvaluations(4000), np.random.default_rng(0)
    )
    best = least(problem)
    if result.placement is None:
        assert np.isinf(best)
        return
    assert violation(problem, result.placement.assignment) is None
    assert result.bound_s <= best * (1 + 1e-9)
    assert best <= result.seconds * (1 + 1e-9)


def test_stops_by_itself_and_says_how_far() -> None:
    problem = fork_join()
    result = get_placer("search{patience=50}")(
        problem, SimulatedObjective(problem), Never(), np.random.default_rng(0)
    )
    assert result.seconds == 6.5
    assert 0 < result.bound_s <= 6.5


def test_closed_gap_ends_it_at_once() -> None:
    problem = chain3()
    result = get_placer("search")(
        problem, SimulatedObjective(problem), GapClosed(0.0), np.random.default_rng(0)
    )
    assert result.seconds == result.bound_s == 5.0


def test_memory_limit_is_kept() -> None:
    problem = memory_tight()
    result = get_placer("search{patience=50}")(
        problem, SimulatedObjective(problem), Never(), np.random.default_rng(0)
    )
    assert result.seconds == 4.0
