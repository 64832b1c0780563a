"""m-TOPO: fill devices in topological order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from situs.core import Objective, Problem, RealClock, Result, Stop
from situs.graph.arrays import Floats, Ints
from situs.placers.heuristic.scheduling import Scheduling
from situs.placers.parameters import parameter_texts


@dataclass(frozen=True, slots=True)
class MemoryTopo:
    """Ops in topological order onto the first device until its share is full, then the next.

    Source: Jeon et al., "Baechi", SoCC 2020, section 3.1: share = total / devices + largest op.

    Differs: Fills by memory, as in the source, and also by run time, and keeps the better; a
    device takes less than its share if its memory ends before.
    """

    name: ClassVar[str] = "m-topo"

    def supports(self, problem: Problem) -> str | None:
        """Any problem."""
        return None

    def __call__(
        self, problem: Problem, objective: Objective, stop: Stop, rng: np.random.Generator
    ) -> Result:
        """Schedule once per memory margin and value the result beside the uniform ones."""
        started_s = RealClock().now()
        costs = Scheduling(problem)
        seconds = np.where(np.isfinite(problem.unit_seconds), problem.unit_seconds, 0.0)
        by_time = seconds.sum(axis=1) / np.maximum((seconds > 0).sum(axis=1), 1)
        candidates = [fill(costs, costs.problem.unit_constant_bytes), fill(costs, by_time)]
        return costs.best(objective, candidates, self.name, parameter_texts(self), started_s)


def fill(costs: Scheduling, weight: Floats) -> Ints:
    """Fill device after device with about equal ``weight[U]``, in order of the units' first ops."""
    problem = costs.problem
    share = weight.sum() / problem.num_devices + weight.max(initial=0.0)
    taken = np.zeros(problem.num_devices)
    free = problem.memory_bytes.copy()
    device = np.zeros(problem.num_units, dtype=np.int32)
    current = 0
    held = problem.unit_constant_bytes
    for u in range(problem.num_units):
        while current + 1 < problem.num_devices and (
            taken[current] + weight[u] > share or free[current] < held[u]
        ):
            current += 1
        allowed = problem.unit_allowed[u]
        roomy = allowed & (free >= held[u])
        usable = np.flatnonzero(roomy if roomy.any() else allowed)
        later = usable[usable >= current]
        d = int(later[0] if len(later) else usable[-1])
        device[u] = d
        taken[d] += weight[u]
        free[d] -= held[u]
    assignment: Ints = device[problem.units]
    return assignment
