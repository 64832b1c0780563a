"""Mixed-integer programme of the sequential and pipeline models, solved by HiGHS."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from situs.core import Dataflow, Objective, Pipeline, Problem, RealClock, Result, Stop, seconds_left
from situs.errors import ParameterError
from situs.graph.arrays import Floats, Ints
from situs.placers.candidates import best_of, with_bound
from situs.placers.exact.rows import Rows
from situs.placers.limits import why_infeasible
from situs.placers.parameters import parameter_texts
from situs.simulate import peak_memory


@dataclass(frozen=True, slots=True)
class MILP:
    """Units to devices by branch and cut, with memory for the constants and a proven bound.

    A tensor is present on every device that reads it; each copy comes from the producer's device.
    The model's memory is at most the simulator's: where live tensors make an answer too large, the
    capacity of that device is cut by what is missing and the programme is solved again, which
    keeps the first, looser programme's bound.

    Attributes:
        max_seconds: Longest time per solve without another budget, s; > 0.
        gap: Relative gap at which HiGHS may stop; >= 0.

    Source: Tarnawski et al., NeurIPS 2020, section 5.2 (pipelines); copies as flows from the
    producer's device, as in Alpa's and facility-location formulations.
    """

    name: ClassVar[str] = "milp"
    max_seconds: float = 60.0
    gap: float = 1e-6

    def __post_init__(self) -> None:
        if not self.max_seconds > 0 or not self.gap >= 0:
            raise ParameterError("milp: max_seconds must be > 0 and gap >= 0")

    def supports(self, problem: Problem) -> str | None:
        """Sequential, and pipelines that need not be contiguous."""
        if isinstance(problem.model, Dataflow):
            return "milp is for the sequential and pipeline models; use cp-sat or search"
        if isinstance(problem.model, Pipeline) and problem.model.contiguous:
            return "milp does not keep devices contiguous; use contiguous or search"
        return None

    def __call__(
        self, problem: Problem, objective: Objective, stop: Stop, rng: np.random.Generator
    ) -> Result:
        """Solve, and again with less capacity while the answer does not fit."""
        clock = RealClock()
        started_s = clock.now()
        memory = problem.memory_bytes.copy()
        bound_s, candidates = 0.0, []
        for attempt in range(6):
            left_s = min(self.max_seconds, seconds_left(stop))
            found, low_s = _solve(problem, memory, left_s, self.gap)
            if attempt == 0:
                bound_s = low_s
            if found is None:
                break
            candidates.append(found)
            over = peak_memory(problem, found) - problem.memory_bytes
            if not (over > 0).any():
                break
            memory = np.where(over > 0, memory - over, memory)
            if (memory < 0).any():
                break
        candidates += [assignment for _, assignment in problem.uniform()]
        result = best_of(
            problem, objective, candidates, self.name, parameter_texts(self), started_s
        )
        if result.placement is None:
            return replace(result, detail=why_infeasible(problem) or "no answer keeps the limits")
        return with_bound(result, bound_s, started_s, self.gap)


def _solve(
    problem: Problem, memory: Floats, limit_s: float, gap: float
) -> tuple[Ints | None, float]:
    """Assignment, if any was found in time, and a lower bound, s."""
    graph, costs, model = problem.graph, problem.costs, problem.model
    devices, units = problem.num_devices, problem.num_units
    staged = isinstance(model, Pipeline) and model.transfers == "staged"
    pipeline = isinstance(model, Pipeline)
    streams = np.array([device.streams for device in problem.cluster.devices], dtype=np.float64)
    rows = Rows()
    x = rows.variables((units, devices), upper=problem.unit_allowed.astype(np.float64), whole=True)
    rows.add_equal([(x[u], np.ones(devices)) for u in range(units)], 1.0)
    seconds = np.where(np.isfinite(problem.unit_seconds), problem.unit_seconds, 0.0)
    load: list[list[tuple[Ints, Floats]]] = [[(x[:, d], seconds[:, d])] for d in range(devices)]
    total: list[tuple[Ints, Floats]] = [(x.ravel(), seconds.ravel())]
    link: dict[tuple[int, int], list[tuple[Ints, Floats]]] = {}
    held: list[list[tuple[Ints, Floats]]] = [[] for _ in range(devices)]
    maker = problem.units[graph.tensor_producer]
    for t in range(graph.num_tensors):
        span = slice(graph.consumer_offsets[t], graph.consumer_offsets[t + 1])
        readers = np.setdiff1d(problem.units[graph.consumer_ops[span]], [maker[t]])
        if not len(readers):
            continue
        copy = rows.variables((devices, devices))
        for b in range(devices):
            for r in readers:
                rows.add_least([(copy[:, b], np.ones(devices)), (x[r, b : b + 1], -np.ones(1))], 0)
            for a in range(devices):
                rows.add_least(
                    [(x[maker[t], a : a + 1], np.ones(1)), (copy[a, b : b + 1], -np.ones(1))], 0
                )
        for a in range(devices):
            for b in range(devices):
                if a == b:
                    continue
                moved = float(costs.transfer_s(t, a, b))
                if np.isinf(moved) or (staged and a and b and np.isinf(costs.link_latency_s[a, 0])):
                    rows.forbid(int(copy[a, b]))
                    continue
                one = (copy[a, b : b + 1], np.ones(1))
                total.append((one[0], np.array([moved + costs.boundary_s[b]])))
                arrive = float(costs.boundary_s[b])
                if staged and b:
                    arrive += float(costs.transfer_s(t, 0, b))
                load[b].append((one[0], np.array([arrive])))
                link.setdefault((a, b), []).append((one[0], np.array([moved])))
        if staged:
            for a in range(1, devices):
                sent = rows.variables((1,))
                for b in range(devices):
                    if a != b:
                        rows.add_least([(sent, np.ones(1)), (copy[a, b : b + 1], -np.ones(1))], 0)
                load[a].append((sent, np.array([float(costs.transfer_s(t, a, 0))])))
    finite = np.flatnonzero(np.isfinite(memory))
    if len(finite):
        for k in range(len(graph.constant_bytes)):
            span = slice(graph.reader_offsets[k], graph.reader_offsets[k + 1])
            readers = np.unique(problem.units[graph.reader_ops[span]])
            if not len(readers) or not graph.constant_bytes[k]:
                continue
            for d in finite:
                if len(readers) == 1:
                    there = x[readers[0], d : d + 1]
                else:
                    there = rows.variables((1,))
                    for q in readers:
                        rows.add_least([(there, np.ones(1)), (x[q, d : d + 1], -np.ones(1))], 0)
                held[d].append((there, np.array([float(graph.constant_bytes[k])])))
        for d in finite:
            if held[d]:
                rows.add_most(held[d], float(memory[d]))
    if pipeline:
        busiest = rows.variables((1,), upper=np.array([np.inf]))
        rows.cost(busiest, np.ones(1))
        for e in range(devices):
            rows.add_least([(busiest, np.array([streams[e]])), *((v, -w) for v, w in load[e])], 0)
        if not staged:
            for terms in link.values():
                rows.add_least([(busiest, np.ones(1)), *((v, -w) for v, w in terms)], 0)
    else:
        for variables, weight in total:
            rows.cost(variables, weight)
    values, bound_s = rows.solve(limit_s, gap)
    if values is None:
        return None, bound_s
    device = np.argmax(values[x], axis=1).astype(np.int32)
    assignment: Ints = device[problem.units]
    return assignment, bound_s
