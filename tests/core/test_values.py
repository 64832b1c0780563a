import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from situs.core import (
    AnyOf,
    Dataflow,
    FakeClock,
    Flag,
    GapClosed,
    Limits,
    MaxEvaluations,
    MaxSeconds,
    Measurement,
    Never,
    Pipeline,
    Placement,
    Problem,
    Progress,
    count_subgraphs,
    place,
    seconds_left,
    violation,
)
from situs.errors import ParameterError, PlacementError, ProblemError, Status
from situs.testing.problems import chain3, diamond4, two_islands
from situs.testing.strategies import assignments, problems


def test_stopping_rules() -> None:
    clock = FakeClock()
    timed = MaxSeconds(2.0, clock)
    both = AnyOf((MaxEvaluations(3), timed))
    assert not both(Progress(evaluations=2))
    assert both(Progress(evaluations=3))
    clock.advance(1.5)
    assert seconds_left(both) == 0.5
    clock.advance(0.5)
    assert timed(Progress())
    assert seconds_left(Never()) == math.inf
    assert GapClosed(0.01)(Progress(best_s=1.0, bound_s=0.995))
    assert not GapClosed(0.01)(Progress(best_s=1.0, bound_s=0.5))
    assert not GapClosed()(Progress())
    flag = Flag()
    assert not flag(Progress())
    flag.set()
    assert flag(Progress())


@pytest.mark.parametrize(
    "make",
    [
        lambda: MaxEvaluations(0),
        lambda: MaxSeconds(-1),
        lambda: MaxSeconds(math.nan),
        lambda: Dataflow(dispatch="random"),  # type: ignore[arg-type]
        lambda: Dataflow(links="none"),  # type: ignore[arg-type]
        lambda: Pipeline(transfers="none"),  # type: ignore[arg-type]
    ],
)
def test_bad_parameters_are_refused(make: object) -> None:
    with pytest.raises(ParameterError):
        make()  # type: ignore[operator]


def test_pins_and_forbidden_devices_decide_what_is_allowed() -> None:
    base = chain3()
    forbidden = np.zeros((3, 2), dtype=bool)
    forbidden[2, 0] = True
    problem = Problem(
        base.graph,
        base.cluster,
        base.costs,
        limits=Limits(pinned=np.array([1, -1, -1]), forbidden=forbidden),
    )
    assert problem.allowed.tolist() == [[False, True], [True, True], [False, True]]
    assert [d for d, _ in problem.uniform()] == [1]
    assert violation(problem, np.array([1, 0, 1], dtype=np.int32)) is None
    assert "may not run on D0" in str(violation(problem, np.array([0, 0, 1], dtype=np.int32)))


def test_an_op_without_a_device_is_named() -> None:
    base = chain3()
    with pytest.raises(ProblemError, match="'b'"):
        Problem(
            base.graph,
            base.cluster,
            base.costs,
            limits=Limits(forbidden=np.array([[False] * 2, [True] * 2, [False] * 2])),
        )


@given(problems(colocation=True).flatmap(lambda p: st.tuples(st.just(p), assignments(p))))
def test_random_valid_assignments_violate_nothing(case: tuple[Problem, np.ndarray]) -> None:
    problem, assignment = case
    assert violation(problem, assignment) is None
    assert sum(place(problem, assignment).counts().values()) == problem.num_ops


def test_split_colocation_is_named() -> None:
    from dataclasses import replace

    base = chain3()
    graph = replace(base.graph, colocation=np.array([0, -1, 0]))
    problem = Problem(graph, base.cluster, base.costs)
    assert "kept together" in str(violation(problem, np.array([0, 0, 1], dtype=np.int32)))


def test_a_placement_of_another_graph_is_refused() -> None:
    placement = place(chain3(), np.zeros(3, dtype=np.int32))
    with pytest.raises(PlacementError, match="another model"):
        placement.require(diamond4().graph)
    with pytest.raises(PlacementError):
        Placement("x", ("D0",), np.array([1]))


def test_subgraphs_are_connected_sets_on_one_device() -> None:
    graph = diamond4().graph
    for assignment, count in [
        ([0, 0, 0, 0], 1),
        ([0, 1, 0, 0], 2),
        ([0, 1, 1, 0], 4),
        ([0, 1, 0, 1], 2),
    ]:
        assert count_subgraphs(graph, np.array(assignment, dtype=np.int32)) == count
    assert count_subgraphs(two_islands().graph, np.zeros(2, dtype=np.int32)) == 2


def test_the_interval_of_a_median_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(2000):
        low, high = Measurement(Status.OK, rng.exponential(size=25)).interval_s() or (0, 0)
        hits += low <= math.log(2) <= high
    assert 0.94 <= hits / 2000 <= 0.985


def test_a_failed_measurement_has_no_number() -> None:
    failed = Measurement.failed(Status.TIMEOUT, "too slow")
    assert failed.seconds is None
    assert failed.interval_s() is None


def test_classes_kept_together_merge_with_colocation() -> None:
    from dataclasses import replace

    base = diamond4()
    graph = replace(base.graph, colocation=np.array([-1, 0, 0, -1]))
    together = np.array([5, -1, 5, -1], dtype=np.int32)
    problem = Problem(graph, base.cluster, base.costs, limits=Limits(together=together))
    assert problem.units.tolist() == [0, 0, 0, 1]
    assert problem.unit_seconds.tolist() == [[6.0, 6.0], [2.0, 2.0]]
