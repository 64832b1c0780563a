"""Contiguous splits: the dynamic programme against every ordered split, and its contract."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placers.brute_force import every_assignment
from situs.core import Never, Pipeline, Problem
from situs.placers import Placer, get_placer
from situs.placers.exact.contiguous import best_split
from situs.simulate import SimulatedObjective, evaluate
from situs.testing.placer_suite import PlacerSuite
from situs.testing.problems import tiny
from situs.testing.strategies import problems

STAGED = problems(max_ops=6, devices=st.integers(1, 3), model=Pipeline("staged"), colocation=True)


class TestContiguous(PlacerSuite):
    def placer(self) -> Placer:
        return get_placer("contiguous")


def ordered(problem: Problem, assignment: np.ndarray) -> bool:
    """Whether the devices can be ordered so that tensors only flow forward."""
    edges = {
        (int(assignment[u]), int(assignment[v]))
        for u, v in zip(problem.graph.edge_producer, problem.graph.consumer_ops, strict=True)
        if assignment[u] != assignment[v]
    }
    left = set(range(problem.num_devices))
    while left:
        first = [d for d in left if not any(b == d and a in left for a, b in edges)]
        if not first:
            return False
        left -= set(first)
    return True


@given(problem=STAGED)
@settings(max_examples=80, deadline=None)
def test_equals_every_ordered_split(problem: Problem) -> None:
    assignments = every_assignment(problem)
    values = evaluate(problem, assignments)
    best = min(
        (v for a, v in zip(assignments, values, strict=True) if ordered(problem, a)),
        default=np.inf,
    )
    split = best_split(problem, 10_000)
    assert split.exact
    if np.isinf(best):
        return
    assert split.bound_s == pytest.approx(best, rel=1e-9)
    found = evaluate(problem, np.stack(split.assignments))
    assert found.min() == pytest.approx(best, rel=1e-9)


def test_three_ops_on_three_equal_devices() -> None:
    """Staged transfers of 0.25 s load the accelerator at each end; device 0 pays nothing."""
    problem = tiny(
        {"a": [], "b": ["a"], "c": ["b"]},
        {"a": (4, 4, 4), "b": (2, 2, 2), "c": (3, 3, 3)},
        0.25,
        model=Pipeline("staged", True),
    )
    result = get_placer("contiguous")(
        problem, SimulatedObjective(problem), Never(), np.random.default_rng(0)
    )
    assert result.seconds == 4.0
    assert result.placement is not None
    assert len(set(result.placement.assignment.tolist())) == 3


def test_memory_splits_what_time_would_not() -> None:
    problem = tiny(
        {"a": [], "b": ["a"]},
        {"a": (9, 1, 1), "b": (9, 1, 1)},
        1.0,
        constants={"a": 60, "b": 60},
        memory_bytes=(1000, 100, 100),
        model=Pipeline("staged"),
    )
    result = get_placer("contiguous")(
        problem, SimulatedObjective(problem), Never(), np.random.default_rng(0)
    )
    assert result.seconds == 2.0
    roomy = dataclasses.replace(
        problem, limits=dataclasses.replace(problem.limits, memory_bytes=np.full(3, np.inf))
    )
    assert best_split(roomy, 100).bound_s == 2.0
