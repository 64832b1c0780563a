"""What OpenVINO's HETERO does by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from situs.core import Objective, Problem, RealClock, Result, Stop
from situs.placers.candidates import best_of
from situs.placers.parameters import parameter_texts


@dataclass(frozen=True, slots=True)
class OpenVINOAuto:
    """Every op on the first device, in the cluster's order, that supports it; no time model.

    Source: OpenVINO, "Heterogeneous execution", automatic mode: devices by priority and
    ``query_model``.

    Differs: Co-located ops move together, to the first device that supports them all.
    """

    name: ClassVar[str] = "openvino-auto"

    def supports(self, problem: Problem) -> str | None:
        """Any problem."""
        return None

    def __call__(
        self, problem: Problem, objective: Objective, stop: Stop, rng: np.random.Generator
    ) -> Result:
        """Build the one placement and value it."""
        started_s = RealClock().now()
        first = np.argmax(problem.unit_allowed, axis=1).astype(np.int32)
        return best_of(
            problem,
            objective,
            [first[problem.units]],
            self.name,
            parameter_texts(self),
            started_s,
        )
