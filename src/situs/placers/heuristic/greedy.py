"""Each op on its own fastest device, whatever the transfers cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from situs.core import Objective, Problem, RealClock, Result, Stop
from situs.placers.candidates import best_of
from situs.placers.parameters import parameter_texts


@dataclass(frozen=True, slots=True)
class Greedy:
    """Each unit on the device that runs it fastest; ties go to the first device."""

    name: ClassVar[str] = "greedy"

    def supports(self, problem: Problem) -> str | None:
        """Any problem."""
        return None

    def __call__(
        self, problem: Problem, objective: Objective, stop: Stop, rng: np.random.Generator
    ) -> Result:
        """Build the one placement and value it."""
        started_s = RealClock().now()
        fastest = np.argmin(problem.unit_seconds, axis=1).astype(np.int32)
        return best_of(
            problem,
            objective,
            [fastest[problem.units]],
            self.name,
            parameter_texts(self),
            started_s,
        )
