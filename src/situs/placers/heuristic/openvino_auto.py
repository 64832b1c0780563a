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
    """Every op on the first device, by priority, that supports it; no time model.

    Attributes:
        first: Device that has the highest priority, in any case; the others follow in the
            cluster's order. Empty = the cluster's order.

    Source: OpenVINO, "Heterogeneous execution", automatic mode: devices by priority and
    ``query_model``.

    Differs: Co-located ops move together, to the first device that supports them all.
    """

    name: ClassVar[str] = "openvino-auto"
    first: str = ""

    def supports(self, problem: Problem) -> str | None:
        """Any problem."""
        return None

    def __call__(
        self, problem: Problem, objective: Objective, stop: Stop, rng: np.random.Generator
    ) -> Result:
        """Build the one placement and value it."""
        started_s = RealClock().now()
        allowed = problem.unit_allowed
        first = np.argmax(allowed, axis=1).astype(np.int32)
        if self.first:
            wanted = problem.cluster.index(self.first)
            first[allowed[:, wanted]] = wanted
        return best_of(
            problem,
            objective,
            [first[problem.units]],
            self.name,
            parameter_texts(self),
            started_s,
        )
