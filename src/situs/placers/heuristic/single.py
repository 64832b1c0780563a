"""The whole graph on one device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from situs.core import Objective, Problem, RealClock, Result, Stop
from situs.errors import ParameterError
from situs.placers.candidates import best_of
from situs.placers.parameters import parameter_texts


@dataclass(frozen=True, slots=True)
class Single:
    """All ops on one device: the best one, or the named one.

    Attributes:
        device: Device name, in any case; empty = whichever is fastest.

    Source: the baselines "CPU-only" and "GPU-only" of HSDAG (arXiv 2405.14185), section 4.
    """

    name: ClassVar[str] = "single"
    device: str = ""

    def supports(self, problem: Problem) -> str | None:
        """Needs a device that may run every op."""
        able = [problem.cluster.names[d] for d, _ in problem.uniform()]
        if self.device:
            wanted = problem.cluster.names[problem.cluster.index(self.device)]
            return None if wanted in able else f"{wanted} may not run every op of this model"
        return None if able else "no device may run every op of this model"

    def __call__(
        self, problem: Problem, objective: Objective, stop: Stop, rng: np.random.Generator
    ) -> Result:
        """Value every uniform placement and keep the best."""
        started_s = RealClock().now()
        reason = self.supports(problem)
        if reason is not None and self.device:
            raise ParameterError(f"single: {reason}")
        candidates = [
            assignment
            for d, assignment in problem.uniform()
            if not self.device or d == problem.cluster.index(self.device)
        ]
        return best_of(
            problem,
            objective,
            candidates,
            self.name,
            parameter_texts(self),
            started_s,
            reason or "",
        )
