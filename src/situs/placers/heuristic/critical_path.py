"""Critical-path clustering: linear clusters, packed onto devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from situs.core import Objective, Problem, RealClock, Result, Stop
from situs.graph.arrays import Ints
from situs.placers.heuristic.scheduling import Scheduling
from situs.placers.parameters import parameter_texts


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """Ops that wait for each other longest form chains; the heaviest chains take devices first.

    Source: Kim, Browne, "A general approach to mapping of parallel computations upon
    multiprocessor architectures", ICPP 1988 (linear clustering).

    Differs: All chains are peeled in one pass, each op joining the open chain of the producer that
    it waits for longest, so that 100,000 ops take one pass; clusters are packed by where the sum of
    load and cluster time is least.
    """

    name: ClassVar[str] = "critical-path"

    def supports(self, problem: Problem) -> str | None:
        """Any problem."""
        return None

    def __call__(
        self, problem: Problem, objective: Objective, stop: Stop, rng: np.random.Generator
    ) -> Result:
        """Schedule once per memory margin and value the result beside the uniform ones."""
        started_s = RealClock().now()
        costs = Scheduling(problem)
        candidates = [pack(costs, chains(costs))]
        return costs.best(objective, candidates, self.name, parameter_texts(self), started_s)


def chains(costs: Scheduling) -> Ints:
    """``int32[N]`` chain of each op: it goes on with the producer that it waits for longest."""
    graph = costs.problem.graph
    finish = costs.downward() + costs.mean_s
    in_offsets, in_tensors = graph.inputs
    arrival = finish[graph.tensor_producer] + costs.tensor_s
    chain = np.full(graph.num_ops, -1, dtype=np.int32)
    is_tail = np.zeros(graph.num_ops, dtype=np.bool_)
    count = 0
    for i in range(graph.num_ops):
        tensors = in_tensors[in_offsets[i] : in_offsets[i + 1]]
        producers = graph.tensor_producer[tensors]
        is_open = is_tail[producers]
        if is_open.any():
            best = producers[is_open][np.argmax(arrival[tensors[is_open]])]
            chain[i] = chain[best]
            is_tail[best] = False
        else:
            chain[i] = count
            count += 1
        is_tail[i] = True
    return chain


def pack(costs: Scheduling, chain: Ints) -> Ints:
    """Heaviest chain first, each on the device where load + its own time is least and fits."""
    problem = costs.problem
    count = int(chain.max(initial=-1)) + 1
    time = np.zeros((count, problem.num_devices))
    np.add.at(time, chain, np.where(np.isfinite(costs.seconds), costs.seconds, 0.0))
    members = np.split(np.argsort(chain, kind="stable"), np.cumsum(np.bincount(chain))[:-1])
    load = np.zeros(problem.num_devices)
    free = problem.memory_bytes.copy()
    device = np.full(problem.num_units, -1, dtype=np.int32)
    for c in np.argsort(-time.mean(axis=1), kind="stable"):
        units = np.unique(problem.units[members[c]])
        units = units[device[units] < 0]
        size = costs.problem.unit_constant_bytes[units].sum()
        for d in np.argsort(load + time[c], kind="stable"):
            mine = units[problem.unit_allowed[units, d] & (device[units] < 0)]
            if size <= free[d] and len(mine):
                device[mine] = d
                load[d] += time[c, d]
                free[d] -= costs.problem.unit_constant_bytes[mine].sum()
        for u in units[device[units] < 0]:
            d = int(np.argmax(np.where(problem.unit_allowed[u], free, -np.inf)))
            device[u] = d
            free[d] -= costs.problem.unit_constant_bytes[u]
    assignment: Ints = device[problem.units]
    return assignment
