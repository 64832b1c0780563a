"""CP-SAT model of a part of an offload problem: which nodes go into which call, and when."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from ortools.sat.python import cp_model

from situs.graph.arrays import Floats, Ints

_TICKS = 10_000_000


@dataclass(frozen=True, eq=False)
class OffloadArrays:
    """An offload problem on ``V`` nodes with equal accelerators, times in s.

    ``tensors`` are ``(producer, consumers, out_s, in_s)``.
    """

    release_s: Floats
    cpu_s: Floats
    accelerator_s: Floats
    node_bytes: Floats
    limit_bytes: float
    predecessors: tuple[tuple[int, ...], ...]
    tensors: tuple[tuple[int, tuple[int, ...], float, float], ...]


@dataclass(frozen=True, slots=True)
class Calls:
    """Call of each node (0 = CPU, 1.. = calls), its end time and a proven bound on it, s."""

    call: dict[int, int]
    seconds: float
    bound_s: float
    optimal: bool


def solve_calls(
    data: OffloadArrays,
    nodes: Ints,
    calls: int,
    upper_s: float,
    limit_s: float,
    hint: dict[int, int] | None = None,
    workers: int = 1,
    seed: int = 0,
) -> Calls | None:
    """Shortest time to run ``nodes`` with at most ``calls`` calls, all their inputs ready at 0.

    Times are rounded down to 1e-7 of ``upper_s``, so that the bound stays a bound. Returns None if
    no solution was found, or none at most ``upper_s`` long exists.
    """
    # Where nothing takes time any scale will do.
    scale = _TICKS / upper_s if upper_s > 0 else 1.0

    def ticks(seconds: float) -> int:
        return int(min(seconds, 2 * upper_s) * scale)

    model = cp_model.CpModel()
    inside = {int(v) for v in nodes}
    order = sorted(inside)
    on = {
        (v, c): model.new_bool_var("")
        for v in order
        for c in range(calls + 1)
        if np.isfinite(data.cpu_s[v] if c == 0 else data.accelerator_s[v])
    }

    def placed(v: int, c: int) -> cp_model.IntVar | int:
        return on.get((v, c), 0)

    end = {v: model.new_int_var(0, _TICKS, "") for v in order}
    start = [model.new_int_var(0, _TICKS, "") for _ in range(calls + 1)]
    stop = [model.new_int_var(0, _TICKS, "") for _ in range(calls + 1)]
    makespan = model.new_int_var(0, _TICKS, "")
    for v in order:
        model.add_exactly_one(on[v, c] for c in range(calls + 1) if (v, c) in on)
        model.add(makespan >= end[v])
        for p in data.predecessors[v]:
            if p in inside:
                model.add(end[v] >= end[p])
                if (v, 0) in on:
                    model.add(end[v] >= end[p] + ticks(data.cpu_s[v])).only_enforce_if(on[v, 0])
        if (v, 0) in on:
            model.add(end[v] >= ticks(data.cpu_s[v])).only_enforce_if(on[v, 0])
    if np.isfinite(data.limit_bytes):
        for c in range(1, calls + 1):
            model.add(
                sum(int(data.node_bytes[v]) * placed(v, c) for v in order) <= int(data.limit_bytes)
            )
    for c in range(1, calls + 1):
        length = [ticks(data.accelerator_s[v]) * placed(v, c) for v in order if (v, c) in on]
        for producer, consumers, out_s, in_s in data.tensors:
            mine = [q for q in consumers if q in inside]
            if producer in inside and (producer, c) in on and ticks(out_s):
                sent = model.new_bool_var("")
                if len(mine) < len(consumers):
                    model.add(sent >= on[producer, c])
                for q in mine:
                    model.add(sent >= on[producer, c] - placed(q, c))
                length.append(ticks(out_s) * sent)
            if mine and ticks(in_s):
                got = model.new_bool_var("")
                made = placed(producer, c) if producer in inside else 0
                for q in mine:
                    if (q, c) in on:
                        model.add(got >= on[q, c] - made)
                length.append(ticks(in_s) * got)
        model.add(stop[c] >= start[c] + sum(length))
        for v in order:
            if (v, c) not in on:
                continue
            model.add(end[v] >= stop[c]).only_enforce_if(on[v, c])
            for p in data.predecessors[v]:
                if p in inside:
                    apart = [on[v, c]] + ([on[p, c].negated()] if (p, c) in on else [])
                    model.add(start[c] >= end[p]).only_enforce_if(apart)
        if c > 1:
            # Equal accelerators: calls are used in order of their first node.
            for k, v in enumerate(order):
                if (v, c) in on:
                    earlier = [on[u, c - 1] for u in order[:k] if (u, c - 1) in on]
                    model.add_bool_or([*earlier, on[v, c].negated()])
    if hint is not None:
        for (v, c), variable in on.items():
            model.add_hint(variable, hint.get(v, 0) == c)
    model.minimize(makespan)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = max(limit_s, 0.01)
    solver.parameters.num_workers = workers
    solver.parameters.random_seed = seed
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    call = {
        v: next(c for c in range(calls + 1) if (v, c) in on and solver.boolean_value(on[v, c]))
        for v in order
    }
    return Calls(
        call,
        solver.objective_value / scale,
        solver.best_objective_bound / scale,
        status == cp_model.OPTIMAL,
    )
