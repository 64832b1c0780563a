"""HEFT: heterogeneous earliest finish time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from situs.core import Objective, Problem, RealClock, Result, Stop
from situs.placers.heuristic.scheduling import Scheduling
from situs.placers.parameters import parameter_texts


@dataclass(frozen=True, slots=True)
class HEFT:
    """Ops in order of upward rank, each where it finishes first, gaps used.

    Source: Topcuoglu, Hariri, Wu, "Performance-effective and low-complexity task scheduling for
    heterogeneous computing", IEEE TPDS 13(3), 2002, section 4.1.

    Differs: Units move together; a tensor is sent once per device; links queue where the model
    says so; a device without room for a unit's constants is passed over.
    """

    name: ClassVar[str] = "heft"

    def supports(self, problem: Problem) -> str | None:
        """Any problem."""
        return None

    def __call__(
        self, problem: Problem, objective: Objective, stop: Stop, rng: np.random.Generator
    ) -> Result:
        """Schedule once per memory margin and value the result beside the uniform ones."""
        started_s = RealClock().now()
        costs = Scheduling(problem)
        candidates = costs.by_priority(costs.upward())
        return costs.best(objective, candidates, self.name, parameter_texts(self), started_s)
