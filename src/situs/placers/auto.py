"""Pick a placer by the problem, and say which and why."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from situs.core import Dataflow, Objective, Pipeline, Problem, Result, Sequential, Stop
from situs.placers.parameters import parameter_texts

_SMALL_OPS = 60


def pick(problem: Problem) -> tuple[str, str]:
    """Name of the placer for a problem, and why."""
    model = problem.model
    tight = bool(np.isfinite(problem.memory_bytes).any())
    free = problem.limits.max_subgraphs is None
    if isinstance(model, Sequential) and problem.num_devices == 2 and free and not tight:
        return "mincut", "two devices, sequential, no memory limit: a minimum cut is the optimum"
    if isinstance(model, Dataflow) and problem.num_ops <= _SMALL_OPS and free:
        return "cp-sat", f"dataflow with at most {_SMALL_OPS} ops: CP-SAT proves the optimum"
    small = problem.num_units * problem.num_devices <= 4 * _SMALL_OPS
    convex = isinstance(model, Pipeline) and model.contiguous
    if not isinstance(model, Dataflow) and small and free and not convex:
        return "milp", "few units and devices: HiGHS proves the optimum"
    return "search", "too large or too constrained for an exact answer: anytime search with a bound"


@dataclass(frozen=True, slots=True)
class Auto:
    """Min-cut, CP-SAT or MILP where they prove the optimum in seconds, else search."""

    name: ClassVar[str] = "auto"

    def supports(self, problem: Problem) -> str | None:
        """Any problem."""
        return None

    def __call__(
        self, problem: Problem, objective: Objective, stop: Stop, rng: np.random.Generator
    ) -> Result:
        """Run the placer that is picked; search if the exact one finds nothing."""
        from situs.placers.registry import get_placer

        name, why = pick(problem)
        result = get_placer(name)(problem, objective, stop, rng)
        if not result.status.found and name != "search":
            why = f"{name} found nothing that keeps the limits; then search"
            result = get_placer("search")(problem, objective, stop, rng)
            name = "search"
        detail = f"picked {name} ({why})" + (f"; {result.detail}" if result.detail else "")
        return replace(result, placer=self.name, parameters=parameter_texts(self), detail=detail)
