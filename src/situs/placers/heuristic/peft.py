"""PEFT: predict earliest finish time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from situs.core import Objective, Problem, RealClock, Result, Stop
from situs.placers.heuristic.scheduling import Scheduling
from situs.placers.parameters import parameter_texts


@dataclass(frozen=True, slots=True)
class PEFT:
    """Ops in order of mean optimistic cost, each where finish + optimistic cost is least.

    Source: Arabnejad, Barbosa, "List scheduling algorithm for heterogeneous systems by an
    optimistic cost table", IEEE TPDS 25(3), 2014, section 4.

    Differs: As in ``heft``; an op that no device is barred from is ranked by all devices, one that
    is barred from some by the others.
    """

    name: ClassVar[str] = "peft"

    def supports(self, problem: Problem) -> str | None:
        """Any problem."""
        return None

    def __call__(
        self, problem: Problem, objective: Objective, stop: Stop, rng: np.random.Generator
    ) -> Result:
        """Schedule once per memory margin and value the result beside the uniform ones."""
        started_s = RealClock().now()
        costs = Scheduling(problem)
        table = costs.optimistic()
        usable = np.isfinite(costs.seconds)
        rank = np.where(usable, table, 0.0).sum(axis=1) / np.maximum(usable.sum(axis=1), 1)
        candidates = costs.by_priority(rank, table)
        return costs.best(objective, candidates, self.name, parameter_texts(self), started_s)
