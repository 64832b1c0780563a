import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situs.core import Dataflow, Pipeline, Problem, Sequential
from situs.errors import ProblemError
from situs.simulate import bound, bounds, evaluate
from situs.simulate.schedule_lp import schedule_lp_s
from situs.testing.problems import chain3, diamond4, fork_join, tiny, two_islands
from situs.testing.strategies import execution_models, problems


def best(problem: Problem) -> float:
    numbers = itertools.product(range(problem.num_devices), repeat=problem.num_units)
    units = np.array(list(numbers), dtype=np.int32)
    return float(evaluate(problem, units[:, problem.units]).min())


@settings(max_examples=150, deadline=None)
@given(
    problems(
        max_ops=6,
        devices=st.integers(1, 3),
        model=execution_models(),
        colocation=True,
        streams=True,
        memory=True,
    )
)
def test_no_bound_exceeds_the_optimum(problem: Problem) -> None:
    optimum = best(problem) * (1 + 1e-9) + 1e-12
    if isinstance(problem.model, Sequential):
        assert bounds.least_work_s(problem) <= optimum
        assert bounds.sequential_lp_s(problem) <= optimum
    elif isinstance(problem.model, Dataflow):
        assert bounds.area_s(problem) <= optimum
        assert bounds.critical_path_s(problem) <= optimum
        assert bounds.path_and_area_s(problem) <= optimum
        divided, whole = (schedule_lp_s(problem, 10, exact) for exact in (False, True))
        assert divided <= whole * (1 + 1e-5) + 1e-9
        assert whole <= optimum
    else:
        assert bounds.area_s(problem) <= optimum
        assert bounds.largest_unit_s(problem) <= optimum
    assert bound(problem).seconds <= optimum


@settings(max_examples=80, deadline=None)
@given(problems(max_ops=7, colocation=True))
def test_the_relaxation_is_the_cut_on_two_devices(problem: Problem) -> None:
    # Stone's cut is the dual of a flow; its relaxation has integral optima.
    optimum = best(problem)
    assert bounds.sequential_lp_s(problem) == pytest.approx(optimum, rel=1e-5, abs=1e-6)
    assert bound(problem).seconds == pytest.approx(optimum, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("problem", "seconds", "name"),
    [
        (chain3(), 5, "minimum cut"),
        (chain3(Dataflow()), 3, "critical path"),
        (diamond4(), 6, "critical path"),
        (fork_join(), 6, "critical path"),
        (two_islands(), 3, "critical path"),
        (two_islands(Pipeline()), 3, "largest unit"),
        (chain3(Pipeline()), 1.8, "area"),
    ],
)
def test_by_hand(problem: Problem, seconds: float, name: str) -> None:
    found = bound(problem)
    assert found.seconds == pytest.approx(seconds, rel=1e-9)
    assert found.name == name


def test_area_divides_work_as_the_programme_does() -> None:
    # a, c: 1 s on D0, 4 s on D1; b: 4 s, 1 s. D0 does a and c, D1 does b and takes 1/5 of one:
    # 2 - x = 1 + 4 x, so x = 1/5 and z = 1.8.
    assert bounds.area_s(chain3(Pipeline())) == pytest.approx(1.8, rel=1e-9)


def test_path_and_area_add_up() -> None:
    # Four branches of 4 s on two devices, between a start and an end of 1 s: 1 + 16 / 2 + 1.
    names = [f"b{i}" for i in range(4)]
    ops = {"a": [], **{name: ["a"] for name in names}, "c": names}
    seconds = {"a": (1.0, 1.0), **dict.fromkeys(names, (4.0, 4.0)), "c": (1.0, 1.0)}
    problem = tiny(ops, seconds, 0.0, model=Dataflow())
    assert bound(problem).name == "critical path and area"
    assert bound(problem).seconds == pytest.approx(10, rel=1e-9) == best(problem)


def test_the_schedules_programme_sees_that_moving_costs_time() -> None:
    # Critical path 6 and area 5; with whole units one branch moves (0.5 s there), and the join is
    # with it: 1 + 0.5 + 4 + 1.
    problem = fork_join()
    assert bound(problem).seconds == pytest.approx(6)
    assert schedule_lp_s(problem, 10, whole=True) == pytest.approx(6.5, rel=1e-5)


def test_the_schedules_programme_adds_up_regions() -> None:
    problem = tiny(
        {
            "a": [],
            "b1": ["a"],
            "b2": ["a"],
            "b3": ["a"],
            "c": ["b1", "b2", "b3"],
            "d1": ["c"],
            "d2": ["c"],
            "d3": ["c"],
            "e": ["d1", "d2", "d3"],
        },
        dict.fromkeys(("a", "b1", "b2", "b3", "c", "d1", "d2", "d3", "e"), (2.0, 2.0)),
        model=Dataflow(),
    )
    # Three branches of 2 s on two devices: 3 s of area between a and c, and between c and e.
    assert schedule_lp_s(problem, 10) == pytest.approx(12, rel=1e-5)


def test_the_schedules_programme_is_for_dataflow_only() -> None:
    with pytest.raises(ProblemError, match="dataflow"):
        schedule_lp_s(fork_join(Sequential()), 10)
