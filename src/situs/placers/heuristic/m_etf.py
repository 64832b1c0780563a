"""m-ETF: earliest task first with memory and queued transfers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from situs.core import Objective, Problem, RealClock, Result, Stop
from situs.placers.heuristic.scheduling import Scheduling
from situs.placers.parameters import parameter_texts


@dataclass(frozen=True, slots=True)
class MemoryETF:
    """ETF where each directed link sends one tensor at a time, whatever the execution model says.

    Source: Jeon et al., "Baechi: fast device placement of machine learning graphs", SoCC 2020,
    section 3.2.

    Differs: Transfers queue per directed link, not per device; unequal devices as in ``etf``.
    """

    name: ClassVar[str] = "m-etf"

    def supports(self, problem: Problem) -> str | None:
        """Any problem."""
        return None

    def __call__(
        self, problem: Problem, objective: Objective, stop: Stop, rng: np.random.Generator
    ) -> Result:
        """Schedule once per memory margin and value the result beside the uniform ones."""
        started_s = RealClock().now()
        costs = Scheduling(problem)
        candidates = costs.earliest(queued=True)
        return costs.best(objective, candidates, self.name, parameter_texts(self), started_s)
