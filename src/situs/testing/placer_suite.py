"""The contract of a placer: subclass ``PlacerSuite`` in a test module and give it a placer."""

from __future__ import annotations

import math

import numpy as np
import pytest

from situs.core import (
    Dataflow,
    Evaluation,
    MaxEvaluations,
    Objective,
    Pipeline,
    Problem,
    Result,
    Sequential,
    violation,
)
from situs.errors import Status
from situs.placers import Placer
from situs.simulate import SimulatedObjective
from situs.testing.problems import chain3, diamond4, fork_join, two_islands

PROBLEMS = {
    f"{make.__name__}-{type(model).__name__.lower()}": make(model)
    for make in (chain3, diamond4, fork_join, two_islands)
    for model in (Sequential(), Dataflow(), Pipeline())
}


class Failing:
    """An objective under which every measurement fails."""

    def evaluate(self, assignments: np.ndarray) -> Evaluation:
        """All NaN."""
        return Evaluation.of(np.full(len(assignments), np.nan))


class PlacerSuite:
    """Every placer's contract; override ``placer`` and, for a slow one, ``evaluations``."""

    evaluations = 200

    def placer(self) -> Placer:
        """The placer under test."""
        raise NotImplementedError

    def solve(self, problem: Problem, objective: Objective | None = None, seed: int = 0) -> Result:
        """Run the placer with this suite's budget, or skip where it says that it cannot."""
        placer = self.placer()
        reason = placer.supports(problem)
        if reason is not None:
            assert reason.strip(), "a refusal must say why"
            pytest.skip(reason)
        return placer(
            problem,
            objective or SimulatedObjective(problem),
            MaxEvaluations(self.evaluations),
            np.random.default_rng(seed),
        )

    @pytest.mark.parametrize("name", PROBLEMS)
    def test_placement_is_valid_and_its_value_is_true(self, name: str) -> None:
        """The placement keeps the hard rules and is worth what the result says."""
        problem = PROBLEMS[name]
        result = self.solve(problem)
        assert result.status.found
        assert result.placement is not None
        result.placement.require(problem.graph)
        assert violation(problem, result.placement.assignment) is None
        value = SimulatedObjective(problem).evaluate(result.placement.assignment[None]).seconds[0]
        assert result.seconds == pytest.approx(value, rel=1e-9)

    @pytest.mark.parametrize("name", PROBLEMS)
    def test_bound_is_below_the_value(self, name: str) -> None:
        """A bound never exceeds the value; an optimum has no gap."""
        result = self.solve(PROBLEMS[name])
        assert 0 <= result.bound_s <= result.seconds * (1 + 1e-9)
        if result.status is Status.OPTIMAL:
            assert result.gap <= 1e-6

    @pytest.mark.parametrize("name", PROBLEMS)
    def test_same_seed_same_result(self, name: str) -> None:
        """Two runs with one seed agree in placement and incumbents' values."""
        first, second = self.solve(PROBLEMS[name]), self.solve(PROBLEMS[name])
        assert first.placement == second.placement
        assert [(i.evaluations, i.seconds) for i in first.trace] == [
            (i.evaluations, i.seconds) for i in second.trace
        ]

    @pytest.mark.parametrize("name", PROBLEMS)
    def test_says_who_and_how(self, name: str) -> None:
        """The result names its placer, and its trace falls."""
        result = self.solve(PROBLEMS[name])
        assert result.placer == self.placer().name
        values = [i.seconds for i in result.trace]
        assert values == sorted(values, reverse=True)

    def test_failing_measurements_do_not_raise(self) -> None:
        """If every measurement fails, the result says so or stands on the cost model alone."""
        result = self.solve(chain3(), Failing())
        assert result.status.found or result.placement is None
        assert not math.isnan(result.seconds)
