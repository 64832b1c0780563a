"""CPoP: critical path on a processor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from situs.core import Objective, Problem, RealClock, Result, Stop
from situs.graph.arrays import Floats, Ints
from situs.placers.heuristic.scheduling import Scheduling
from situs.placers.parameters import parameter_texts


@dataclass(frozen=True, slots=True)
class CPoP:
    """The critical path on the one device that runs it fastest, the rest where it finishes first.

    Source: Topcuoglu, Hariri, Wu, IEEE TPDS 13(3), 2002, section 4.2.

    Differs: As in ``heft``; where the path's device may not run one of its ops, that op goes where
    it finishes first.
    """

    name: ClassVar[str] = "cpop"

    def supports(self, problem: Problem) -> str | None:
        """Any problem."""
        return None

    def __call__(
        self, problem: Problem, objective: Objective, stop: Stop, rng: np.random.Generator
    ) -> Result:
        """Schedule once per memory margin and value the result beside the uniform ones."""
        started_s = RealClock().now()
        costs = Scheduling(problem)
        priority = costs.upward() + costs.downward()
        path = critical_path(problem, priority)
        total = np.where(np.isfinite(costs.seconds[path]), costs.seconds[path], 0.0).sum(axis=0)
        barred = np.isinf(costs.seconds[path]).sum(axis=0)
        home = int(np.lexsort((total, barred))[0])
        bonus = np.zeros(costs.seconds.shape)
        away = 1e6 * (1.0 + float(priority.max(initial=0.0)))
        bonus[path] = away
        bonus[path, home] = 0.0
        candidates = costs.by_priority(priority, bonus)
        return costs.best(objective, candidates, self.name, parameter_texts(self), started_s)


def critical_path(problem: Problem, priority: Floats) -> Ints:
    """Ops of one longest path, where ``priority`` is the length of the longest one through each."""
    graph = problem.graph
    if not graph.num_ops:
        return np.empty(0, dtype=np.int32)
    sources = np.flatnonzero(np.diff(graph.inputs[0]) == 0)
    path = [int(sources[np.argmax(priority[sources])])]
    while True:
        first, last = graph.op_tensors[path[-1]], graph.op_tensors[path[-1] + 1]
        span = slice(graph.consumer_offsets[first], graph.consumer_offsets[last])
        readers = graph.consumer_ops[span]
        if not len(readers):
            return np.array(path, dtype=np.int32)
        path.append(int(readers[np.argmax(priority[readers])]))
