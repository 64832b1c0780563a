"""CP-SAT interval model of the dataflow makespan: placements with a proven bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from situs.core import (
    Dataflow,
    Incumbent,
    Objective,
    Problem,
    Progress,
    RealClock,
    Result,
    Stop,
    place,
    seconds_left,
)
from situs.errors import ParameterError, Status
from situs.graph.arrays import Ints
from situs.placers.limits import why_infeasible
from situs.placers.parameters import parameter_texts

_TICKS = 10_000_000


@dataclass(frozen=True, slots=True)
class CPSAT:
    """Ops as optional intervals per device, transfers as delays; every incumbent is valued.

    The model is a relaxation of the simulator: any order per device is allowed, links never queue,
    only the constants take memory. So its bound holds for every dispatch and link rule.

    Attributes:
        max_seconds: Longest time without another budget, s; > 0.
        workers: Threads of CP-SAT; with 1 a seed gives the same answer again.

    Source: interval scheduling with alternatives, OR-Tools CP-SAT.

    Differs: Times are rounded down to 1e-7 of the best uniform placement, so that the bound stays
    a bound.
    """

    name: ClassVar[str] = "cp-sat"
    max_seconds: float = 60.0
    workers: int = 1

    def __post_init__(self) -> None:
        if not self.max_seconds > 0 or self.workers < 1:
            raise ParameterError("cp-sat: max_seconds must be > 0 and workers >= 1")

    def supports(self, problem: Problem) -> str | None:
        """The dataflow model."""
        if not isinstance(problem.model, Dataflow):
            return "cp-sat schedules the dataflow model only; use milp, mincut or search"
        return None

    def __call__(
        self, problem: Problem, objective: Objective, stop: Stop, rng: np.random.Generator
    ) -> Result:
        """Solve from the best simple placement; keep the best valued incumbent."""
        from ortools.sat.python import cp_model

        clock = RealClock()
        started_s = clock.now()
        trace: list[Incumbent] = []
        evaluations = 0
        best: Ints | None = None
        best_s = np.inf

        def value(assignment: Ints) -> None:
            nonlocal evaluations, best, best_s
            seconds = float(objective.evaluate(assignment[None]).seconds[0])
            evaluations += 1
            if seconds < best_s:
                best, best_s = assignment.copy(), seconds
                trace.append(Incumbent(evaluations, clock.now() - started_s, seconds))

        fastest = np.argmin(problem.unit_seconds, axis=1).astype(np.int32)
        for start in (*(a for _, a in problem.uniform()), fastest[problem.units]):
            value(start)
        horizon_s = best_s if np.isfinite(best_s) else _serial_s(problem)
        model, on = _model(problem, horizon_s)
        if best is not None:
            for (u, d), variable in on.items():
                first = int(np.argmax(problem.units == u))
                model.add_hint(variable, int(best[first]) == d)

        class Valued(cp_model.CpSolverSolutionCallback):
            def on_solution_callback(self) -> None:
                device = np.zeros(problem.num_units, dtype=np.int32)
                for (u, d), variable in on.items():
                    if self.boolean_value(variable):
                        device[u] = d
                value(device[problem.units])
                if stop(Progress(evaluations, best_s)):
                    self.stop_search()

        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = max(min(self.max_seconds, seconds_left(stop)), 0.01)
        solver.parameters.num_workers = self.workers
        solver.parameters.random_seed = int(rng.integers(1 << 30))
        status = solver.solve(model, Valued())
        bound_s = 0.0
        if status == cp_model.INFEASIBLE:
            bound_s = horizon_s if best is not None else 0.0
        elif status in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN):
            bound_s = max(solver.best_objective_bound, 0.0) * horizon_s / _TICKS
        found = best is not None
        closed = found and best_s - bound_s <= 1e-6 * best_s
        return Result(
            Status.INFEASIBLE if not found else Status.OPTIMAL if closed else Status.STOPPED,
            None if best is None else place(problem, best),
            best_s,
            min(bound_s, best_s),
            placer=self.name,
            parameters=parameter_texts(self),
            evaluations=evaluations,
            elapsed_s=clock.now() - started_s,
            trace=tuple(trace),
            detail="" if found else why_infeasible(problem) or "no answer keeps the limits",
        )


def _serial_s(problem: Problem) -> float:
    """A makespan that some schedule certainly reaches, s: everything and every transfer in turn."""
    costs = problem.costs
    finite = np.where(np.isfinite(costs.seconds), costs.seconds, 0.0).max(axis=1).sum()
    latency = np.where(np.isfinite(costs.link_latency_s), costs.link_latency_s, 0.0).max()
    moved = (latency + costs.transfer_size * costs.link_s_per_byte.max()) * problem.num_devices
    count = problem.graph.num_edges
    return float(finite + moved.sum() + count * (latency + costs.boundary_s.max())) + 1e-9


def _model(problem: Problem, horizon_s: float):  # type: ignore[no-untyped-def]
    """The CP model and its placement variables, by (unit, device)."""
    from ortools.sat.python import cp_model

    graph, costs = problem.graph, problem.costs
    scale = _TICKS / max(horizon_s, 1e-30)
    model = cp_model.CpModel()
    on = {
        (u, d): model.new_bool_var("")
        for u in range(problem.num_units)
        for d in np.flatnonzero(problem.unit_allowed[u]).tolist()
    }
    for u in range(problem.num_units):
        model.add_exactly_one(on[u, d] for d in range(problem.num_devices) if (u, d) in on)
    start = [model.new_int_var(0, _TICKS, "") for _ in range(problem.num_ops)]
    end = [model.new_int_var(0, _TICKS, "") for _ in range(problem.num_ops)]
    makespan = model.new_int_var(0, _TICKS, "")
    busy: list[list[cp_model.IntervalVar]] = [[] for _ in range(problem.num_devices)]
    for i in range(problem.num_ops):
        u = int(problem.units[i])
        model.add(makespan >= end[i])
        for d in range(problem.num_devices):
            if (u, d) not in on:
                continue
            ticks = int(min(costs.seconds[i, d] * scale, _TICKS + 1))
            model.add(end[i] >= start[i] + ticks).only_enforce_if(on[u, d])
            if ticks:
                span = model.new_optional_fixed_size_interval_var(start[i], ticks, on[u, d], "")
                busy[d].append(span)
    for d, spans in enumerate(busy):
        streams = problem.cluster.devices[d].streams
        if streams == 1:
            model.add_no_overlap(spans)
        else:
            model.add_cumulative(spans, [1] * len(spans), streams)
    for e in range(graph.num_edges):
        t = int(graph.edge_tensor[e])
        i, j = int(graph.edge_producer[e]), int(graph.consumer_ops[e])
        u, v = int(problem.units[i]), int(problem.units[j])
        model.add(start[j] >= end[i])
        if u == v:
            continue
        for a in range(problem.num_devices):
            for b in range(problem.num_devices):
                if a == b or (u, a) not in on or (v, b) not in on:
                    continue
                moved_s = float(costs.transfer_s(t, a, b))
                ticks = int(min(moved_s * scale, _TICKS + 1))
                if ticks:
                    both = [on[u, a], on[v, b]]
                    model.add(start[j] >= end[i] + ticks).only_enforce_if(both)
    _limit_memory(problem, model, on)
    model.minimize(makespan)
    return model, on


def _limit_memory(problem: Problem, model, on) -> None:  # type: ignore[no-untyped-def]
    """Constants of each device fit; each constant counts at its first reader only."""
    graph = problem.graph
    read = np.diff(graph.reader_offsets) > 0
    first = problem.units[graph.reader_ops[graph.reader_offsets[:-1][read]]]
    size = np.bincount(first, graph.constant_bytes[read], problem.num_units)
    for d in np.flatnonzero(np.isfinite(problem.memory_bytes)).tolist():
        terms = [int(size[u]) * on[u, d] for u in range(problem.num_units) if (u, d) in on]
        model.add(sum(terms) <= int(problem.memory_bytes[d]))
