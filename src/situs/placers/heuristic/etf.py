"""ETF: earliest task first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from situs.core import Objective, Problem, RealClock, Result, Stop
from situs.placers.heuristic.scheduling import Scheduling
from situs.placers.parameters import parameter_texts


@dataclass(frozen=True, slots=True)
class ETF:
    """Again and again the ready op and device that can start first; ties by upward rank.

    Source: Hwang, Chow, Anger, Lee, "Scheduling precedence graphs in systems with interprocessor
    communication times", SIAM J. Computing 18(2), 1989.

    Differs: Unequal devices: of equal starts the one that finishes first. Memory as in ``heft``.
    """

    name: ClassVar[str] = "etf"

    def supports(self, problem: Problem) -> str | None:
        """Any problem."""
        return None

    def __call__(
        self, problem: Problem, objective: Objective, stop: Stop, rng: np.random.Generator
    ) -> Result:
        """Schedule once per memory margin and value the result beside the uniform ones."""
        started_s = RealClock().now()
        costs = Scheduling(problem)
        candidates = costs.earliest()
        return costs.best(objective, candidates, self.name, parameter_texts(self), started_s)
