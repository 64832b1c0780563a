"""Latency of a model offloaded call by call: shortest ways through the ideals, with proof."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from situs.core import Clock, Problem
from situs.graph.arrays import Bools, Floats, Ints, Longs, csr, frozen
from situs.placers.exact._barrier_kernels import (
    Stages,
    barrier_split,
    group_calls,
    least_calls,
    region_bounds,
)
from situs.placers.exact.calls import OffloadArrays, solve_calls
from situs.placers.exact.stages import Ideals, StageGraph, ideals_of, stage_graph

_ROUNDS = 6
_THREADS = 2
_WHOLE = 1500


def cut_nodes(stages: StageGraph) -> Bools:
    """``bool[V]`` nodes that come before or after every other node."""
    n = stages.num_nodes
    after = np.zeros((n, n), dtype=np.bool_)
    for v in range(n - 1, -1, -1):
        after[v, v] = True
        for p in stages.predecessors[v]:
            after[p] |= after[v]
    for v in range(n - 1, -1, -1):
        for p in stages.predecessors[v]:
            after[p] |= after[v]
    return frozen(after.sum(axis=0) + after.sum(axis=1) == n + 1, np.bool_)


@dataclass(frozen=True, eq=False)
class OffloadIdeals:
    """Everything that the shortest-way programme needs, for equal accelerators."""

    stages: StageGraph
    ideals: Ideals
    data: OffloadArrays
    accelerators: int

    def nodes(self, step: Step) -> Ints:
        """Nodes between the two ideals of a step."""
        bits = self.ideals.bits
        between = np.flatnonzero((bits[step.after] > 0) & (bits[step.before] == 0))
        chosen: Ints = frozen(between, np.int32)
        return chosen

    @cached_property
    def arrays(self) -> Stages:
        """The kernels' form."""
        data, ideals, stages = self.data, self.ideals, self.stages
        bits = ideals.bits
        degree = np.diff(stages.consumers[0]).astype(np.int32)
        out_s = np.array([t[2] for t in data.tensors], dtype=np.float64)
        in_s = np.array([t[3] for t in data.tensors], dtype=np.float64)
        weight = np.where(ideals.made.astype(np.bool_), out_s[:, None], in_s[:, None])
        barred = ~np.isfinite(data.accelerator_s)
        work = np.where(barred, 0.0, data.accelerator_s)
        group = (bits @ cut_nodes(stages)).astype(np.int32)
        offsets, preds = csr(stages.predecessors)
        return Stages(
            ideals.sets,
            ideals.visit,
            ideals.made,
            ideals.read,
            degree,
            bits @ work,
            (weight * ideals.crossing(degree)).sum(axis=0),
            out_s,
            in_s,
            bits @ data.node_bytes,
            data.limit_bytes,
            (bits @ barred).astype(np.int32),
            offsets,
            preds,
            np.asarray(data.cpu_s, dtype=np.float64),
            np.minimum(data.cpu_s, data.accelerator_s),
            np.asarray(data.release_s, dtype=np.float64),
            group,
            np.concatenate(([0], np.cumsum(np.bincount(group)))).astype(np.int32),
            np.lexsort((bits.sum(axis=1), group)).astype(np.int32),
        )


@dataclass(slots=True)
class Regions:
    """Lower bounds of the region steps, sharpened where the shortest way uses them."""

    table: Floats
    offsets: Longs
    solved: dict[tuple[int, int], list[tuple[int, float, dict[int, int] | None]]] = field(
        default_factory=dict
    )

    @classmethod
    def build(cls, x: Stages, least: Floats, largest: int) -> Regions:
        """Tables for every group of at most ``largest`` ideals."""
        tables: list[Floats] = []
        offsets = np.full(len(least), -1, dtype=np.int64)
        size = 0
        with ThreadPoolExecutor(_THREADS) as pool:
            for g in range(len(least)):
                group = x.members[x.member_offsets[g] : x.member_offsets[g + 1]]
                m = len(group)
                if not 1 < m <= largest:
                    continue
                local = _local(x, group)
                if local is None:
                    continue
                offsets[g] = size
                call = group_calls(x, g)
                chunks = [np.arange(k, m, _THREADS, dtype=np.int64) for k in range(_THREADS)]
                jobs = [
                    pool.submit(region_bounds, *local, least[g], call, _ROUNDS, rows)
                    for rows in chunks
                ]
                table = np.empty((m, m))
                for rows, job in zip(chunks, jobs, strict=True):
                    table[rows] = job.result()
                tables.append(table.ravel())
                size += m * m
        return cls(np.concatenate([*tables, np.empty(0)]), offsets)

    def steps(self, count: int) -> tuple[Longs, Longs, Longs, Floats]:
        """Solved steps as CSR by their first ideal: offsets, targets, calls, seconds."""
        rows = sorted((i, j, c, s) for (i, j), ks in self.solved.items() for c, s, _ in ks)
        first = np.array([r[0] for r in rows], dtype=np.int64)
        offsets = np.concatenate(([0], np.cumsum(np.bincount(first, minlength=count))))
        return (
            offsets.astype(np.int64),
            np.array([r[1] for r in rows], dtype=np.int64),
            np.array([r[2] for r in rows], dtype=np.int64),
            np.array([r[3] for r in rows], dtype=np.float64),
        )


def _local(x: Stages, group: Ints) -> tuple[np.ndarray, np.ndarray, Floats, Floats] | None:
    """Ideals of a group as 64-bit sets over the nodes that they differ in; None if over 64."""
    first, last = x.sets[group[0]], x.sets[group[-1]]
    width = len(x.cpu_s)
    differ = np.unpackbits((last & ~first).view(np.uint8), bitorder="little")[:width]
    nodes = np.flatnonzero(differ)
    if len(nodes) > 64:
        return None
    power = np.left_shift(np.uint64(1), np.arange(len(nodes), dtype=np.uint64))
    bits = np.unpackbits(x.sets[group].view(np.uint8), axis=1, bitorder="little")[:, nodes]
    rank = {int(v): k for k, v in enumerate(nodes)}
    masks = np.zeros(len(nodes), dtype=np.uint64)
    for k, v in enumerate(nodes):
        for p in x.preds[x.pred_offsets[v] : x.pred_offsets[v + 1]].tolist():
            if p in rank:
                masks[k] |= power[rank[p]]
    sets = (bits * power).sum(axis=1, dtype=np.uint64)
    return sets, masks, x.cpu_s[nodes], x.least_s[nodes]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a way through the ideals; ``calls`` < 0: a region step with ``-1 - calls``."""

    before: int
    after: int
    calls: int
    seconds: float


def shortest_way(
    x: Stages, accelerators: int, least: Floats, regions: Regions, relaxed: bool
) -> tuple[float, list[Step]]:
    """Value and steps of the shortest way, in order."""
    value, parent, calls = barrier_split(
        x, accelerators, least, regions.table, regions.offsets, *regions.steps(len(x.sets)), relaxed
    )
    at = int(x.visit[-1])
    used = int(np.argmin(value[at]))
    best_s = float(value[at, used])
    steps: list[Step] = []
    while np.isfinite(best_s) and at != int(x.visit[0]):
        before, c = int(parent[at, used]), int(calls[at, used])
        left = used - (c if c >= 0 else -1 - c)
        steps.append(Step(before, at, c, float(value[at, used] - value[before, left])))
        at, used = before, left
    return best_s, steps[::-1]


@dataclass(slots=True)
class OffloadSearch:
    """Alternates the relaxed shortest way with exact answers for the regions that it uses.

    Attributes:
        best: Call of each node (0 = CPU), of the best way found.
        best_s: Its latency, s.
        bound_s: Proven lower bound, s.
        cutoff_s: A latency known from elsewhere; proving that nothing is below it is enough.
    """

    problem: OffloadIdeals
    clock: Clock
    best: Ints
    best_s: float = np.inf
    bound_s: float = 0.0
    cutoff_s: float = np.inf

    @property
    def closed(self) -> bool:
        """Whether nothing better than the best way or the cutoff can exist."""
        return self.bound_s >= min(self.best_s, self.cutoff_s) * (1 - 1e-9)

    def run(self, end_s: float, largest_group: int, seed: int) -> None:
        """Search until closed or until the clock shows ``end_s``."""
        x, accelerators = self.problem.arrays, self.problem.accelerators
        least = np.zeros(len(x.member_offsets) - 1)
        regions = Regions(np.empty(0), np.full(len(least), -1, dtype=np.int64))
        _, steps = shortest_way(x, accelerators, least, regions, False)
        self._take(steps, regions)
        least = least_calls(x)
        value_s, _ = shortest_way(x, accelerators, least, regions, True)
        self.bound_s = min(value_s, self.best_s)
        if self.closed or self.clock.now() >= end_s:
            return
        regions = Regions.build(x, least, largest_group)
        while self.clock.now() < end_s:
            value_s, steps = shortest_way(x, accelerators, least, regions, True)
            self.bound_s = max(self.bound_s, min(value_s, self.best_s))
            loose = [s for s in steps if s.calls < 0 and not self._is_solved(s, regions)]
            tabled = [s for s in loose if regions.offsets[x.group[s.before]] >= 0]
            if self.closed or len(tabled) < len(loose):
                return
            if not loose:
                self._take(steps, regions)
                self.bound_s = max(self.bound_s, min(value_s, self.best_s))
                return
            for step in loose:
                self._solve(step, regions, end_s, seed)
            self._take(steps, regions)

    def whole(self, end_s: float, seed: int) -> None:
        """Search all nodes at once with CP-SAT, from the best way."""
        data, nodes = self.problem.data, np.arange(self.problem.stages.num_nodes, dtype=np.int32)
        answer = solve_calls(
            data,
            nodes,
            self.problem.accelerators,
            min(self.best_s * (1 + 1e-6), 1e300),
            end_s - self.clock.now(),
            hint=dict(enumerate(self.best.tolist())),
            workers=_THREADS,
            seed=seed,
        )
        if answer is None:
            return
        call = np.array([answer.call[int(v)] for v in nodes], dtype=np.int32)
        seconds = offload_seconds(data, call)
        if seconds < self.best_s:
            self.best, self.best_s = call, seconds
        self.bound_s = max(self.bound_s, min(answer.bound_s, self.best_s))

    def _is_solved(self, step: Step, regions: Regions) -> bool:
        known = regions.solved.get((step.before, step.after), [])
        return any(c == -1 - step.calls and call is not None for c, _, call in known)

    def _solve(self, step: Step, regions: Regions, end_s: float, seed: int) -> None:
        """Answer one region with the calls that the step uses, and open the step with one more."""
        x, calls = self.problem.arrays, -1 - step.calls
        key = (step.before, step.after)
        inside = self.problem.nodes(step)
        g = x.group[step.before]
        m = int(x.member_offsets[g + 1] - x.member_offsets[g])
        ranks = {int(i): k for k, i in enumerate(x.members[x.member_offsets[g] :][:m])}
        at = regions.offsets[g] + ranks[step.before] * m + ranks[step.after]
        cpu = _longest(self.problem.data, inside)
        low = float(regions.table[at]) if calls == 1 else step.seconds
        limit_s = end_s - self.clock.now()
        answer = solve_calls(self.problem.data, inside, calls, cpu, limit_s, seed=seed)
        known = [row for row in regions.solved.get(key, []) if row[2] is not None]
        if answer is None:
            known.append((calls, cpu, dict.fromkeys(inside.tolist(), 0)))
        else:
            known.append((calls, max(answer.bound_s, low), answer.call))
        if calls < min(self.problem.accelerators, len(inside)):
            known.append((calls + 1, low, None))
        regions.solved[key] = known
        if calls == 1:
            regions.table[at] = np.inf

    def _take(self, steps: list[Step], regions: Regions) -> None:
        """Keep the way if it can be run as it is and is better."""
        call = np.zeros(self.problem.stages.num_nodes, dtype=np.int32)
        used = 0
        for step in steps:
            nodes = self.problem.nodes(step)
            if step.calls > 0:
                used += 1
                call[nodes] = used
            elif step.calls < 0:
                known = regions.solved.get((step.before, step.after), [])
                part = next((k for c, _, k in known if c == -1 - step.calls and k), None)
                if part is None:
                    return
                numbers = {c: used + k + 1 for k, c in enumerate(sorted(set(part.values()) - {0}))}
                for v, c in part.items():
                    call[v] = numbers.get(c, 0)
                used += len(numbers)
        if used <= self.problem.accelerators:
            seconds = offload_seconds(self.problem.data, call)
            if seconds < self.best_s:
                self.best, self.best_s = call, seconds


@dataclass(frozen=True, slots=True)
class OffloadAnswer:
    """A placement, its latency and a proven bound on the least one, s."""

    assignment: Ints
    seconds: float
    bound_s: float
    detail: str


def best_offload(
    problem: Problem, clock: Clock, end_s: float, max_ideals: int, largest_group: int, seed: int
) -> OffloadAnswer | None:
    """Best calls found until the clock shows ``end_s``; None if no accelerator can be used."""
    exact = variants(problem)
    ops = op_arrays(problem)
    best, best_s, bound_s = None, np.inf, np.inf
    details = []
    for variant in exact or [problem]:
        model = offload_ideals(variant, max_ideals)
        if model is None:
            bound_s = 0.0
            details.append(f"over {max_ideals} ideals: no bound")
            continue
        search = OffloadSearch(model, clock, np.zeros(0, np.int32), cutoff_s=best_s)
        search.run(end_s, largest_group, seed)
        size = model.stages.num_nodes * (model.accelerators + 1)
        if not search.closed and size <= _WHOLE and clock.now() < end_s:
            search.whole(end_s, seed)
        bound_s = min(bound_s, search.bound_s if exact else 0.0)
        details.append(f"{len(model.ideals.sets)} ideals")
        if np.isfinite(search.best_s):
            call = _fitting(ops, model.stages.assignment(search.best), model.stages.weightless)
            seconds = offload_seconds(ops, call)
            if seconds < best_s:
                best, best_s = call, seconds
    if best is None:
        return None
    return OffloadAnswer(best, best_s, min(bound_s, best_s), "; ".join(details))


def _fitting(ops: OffloadArrays, call: Ints, weightless: Bools) -> Ints:
    """Send the idle ops of calls that are too large to the CPU."""
    held = np.bincount(call, ops.node_bytes)
    over = held > ops.limit_bytes
    over[0] = False
    fitted: Ints = np.where(over[call] & weightless, 0, call).astype(np.int32)
    return fitted


def op_arrays(problem: Problem) -> OffloadArrays:
    """The problem op by op, without folding: what an answer is checked against."""
    graph, costs = problem.graph, problem.costs
    offsets, inputs = graph.inputs
    spans = graph.consumer_offsets
    return OffloadArrays(
        np.zeros(problem.num_ops),
        costs.seconds[:, 0],
        costs.seconds[:, 1],
        graph.op_constant_bytes.astype(np.float64),
        float(problem.memory_bytes[1]),
        tuple(
            tuple(graph.tensor_producer[inputs[offsets[i] : offsets[i + 1]]].tolist())
            for i in range(problem.num_ops)
        ),
        tuple(
            (
                int(graph.tensor_producer[t]),
                tuple(graph.consumer_ops[spans[t] : spans[t + 1]].tolist()),
                float(costs.transfer_s(t, 1, 0)),
                float(costs.transfer_s(t, 0, 1)),
            )
            for t in range(graph.num_tensors)
        ),
    )


def _longest(data: OffloadArrays, nodes: Ints) -> float:
    """Longest path of CPU times through ``nodes``, s."""
    end: dict[int, float] = {}
    for v in nodes.tolist():
        end[v] = float(data.cpu_s[v]) + max(
            (end[p] for p in data.predecessors[v] if p in end), default=0.0
        )
    return max(end.values(), default=0.0)


def offload_seconds(data: OffloadArrays, call: Ints) -> float:
    """Latency of nodes in calls, s; ``inf`` if calls are too large or wait for each other."""
    number = int(call.max(initial=0))
    if (np.bincount(call, data.node_bytes)[1:] > data.limit_bytes * (1 + 1e-12)).any():
        return np.inf
    length = np.zeros(number + 1)
    np.add.at(length, call, np.where(call > 0, data.accelerator_s, 0.0))
    for producer, consumers, out_s, in_s in data.tensors:
        home = int(call[producer]) if producer >= 0 else 0
        targets = {int(call[q]) for q in consumers} - {home}
        if targets and home:
            length[home] += out_s
        for c in targets - {0}:
            length[c] += in_s
    n = len(call)
    # A call is one task; so is each node on the CPU.
    task = np.where(call > 0, call - 1, number + np.arange(n))
    waits: list[set[int]] = [set() for _ in range(number + n)]
    for v in range(n):
        waits[task[v]] |= {int(task[p]) for p in data.predecessors[v]} - {int(task[v])}
    follow: list[list[int]] = [[] for _ in waits]
    open_count = [len(w) for w in waits]
    for t, before in enumerate(waits):
        for b in before:
            follow[b].append(t)
    end = np.zeros(len(waits))
    np.maximum.at(end, task, data.release_s)
    ready = [t for t, k in enumerate(open_count) if k == 0]
    done = 0
    while ready:
        t = ready.pop()
        done += 1
        if t < number:
            end[t] += length[t + 1]
        elif call[t - number] == 0:
            end[t] += data.cpu_s[t - number]
        for f in follow[t]:
            end[f] = max(end[f], end[t])
            open_count[f] -= 1
            if open_count[f] == 0:
                ready.append(f)
    return float(end.max(initial=0.0)) if done == len(waits) else np.inf


def variants(problem: Problem, most: int = 3) -> list[Problem] | None:
    """Problems whose units each act as one node; their optima's least is the problem's.

    A unit acts as one node on the CPU unless some of its ops could end, or start, before others.
    Such a unit is either split and kept on the CPU, or kept whole and off it. None if more than
    ``most`` units are like that.
    """
    loose = _loose_units(problem)
    if len(loose) > most:
        return None
    out = [problem]
    for unit in loose:
        mine = problem.units == unit
        both = []
        for p in out:
            forbidden = np.zeros((p.num_ops, p.num_devices), dtype=np.bool_)
            if p.limits.forbidden is not None:
                forbidden |= p.limits.forbidden
            split, whole = forbidden.copy(), forbidden.copy()
            split[mine, 1:] = True
            whole[mine, 0] = True
            free = replace(p.graph, colocation=np.where(mine, -1, p.graph.colocation))
            apart = p.limits.together
            if apart is not None:
                apart = np.where(mine, -1, apart)
            if p.unit_allowed[p.units[mine][0], 0]:
                limits = replace(p.limits, forbidden=split, together=apart)
                both.append(replace(p, graph=free, limits=limits))
            if p.unit_allowed[p.units[mine][0], 1:].any():
                both.append(replace(p, limits=replace(p.limits, forbidden=whole)))
        out = both
    return out


def _loose_units(problem: Problem) -> list[int]:
    """Units with an op whose output does not wait for all the unit's inputs and work."""
    graph, units = problem.graph, problem.units
    counts = np.bincount(units)
    u, v = graph.edge_producer, graph.consumer_ops
    same = units[u] == units[v]
    matters = np.asarray(problem.costs.seconds.any(axis=1))
    matters[v[~same]] = True
    leaves = np.zeros(problem.num_ops, dtype=np.bool_)
    leaves[u[~same]] = True
    loose = []
    for unit in np.flatnonzero(counts > 1):
        ops = np.flatnonzero(units == unit)
        rank = {int(op): k for k, op in enumerate(ops)}
        before = np.eye(len(ops), dtype=np.bool_)
        inner = same & (units[u] == unit)
        for a, b in zip(u[inner].tolist(), v[inner].tolist(), strict=True):
            before[rank[b]] |= before[rank[a]]
        if not before[np.ix_(leaves[ops], matters[ops])].all():
            loose.append(int(unit))
    return loose


def given_ops(problem: Problem) -> Bools:
    """``bool[N]`` ops that only the CPU may run and that wait for no accelerator."""
    graph = problem.graph
    given = ~np.asarray(problem.allowed[:, 1:].any(axis=1))
    for u, v in zip(graph.edge_producer.tolist(), graph.consumer_ops.tolist(), strict=True):
        given[v] &= given[u]
    return frozen(given, np.bool_)


def _release(problem: Problem, stages: StageGraph, given: Bools) -> Floats:
    """``float64[V]`` when the given ops that each node reads are done, s."""
    graph = problem.graph
    end = np.where(given, problem.costs.seconds[:, 0], 0.0)
    release = np.zeros(stages.num_nodes)
    for u, v in zip(graph.edge_producer.tolist(), graph.consumer_ops.tolist(), strict=True):
        if given[u] and given[v]:
            end[v] = max(end[v], end[u] + problem.costs.seconds[v, 0])
        elif given[u] and stages.node_of_op[v] >= 0:
            node = stages.node_of_op[v]
            release[node] = max(release[node], end[u])
    return release


def offload_ideals(problem: Problem, limit: int) -> OffloadIdeals | None:
    """The programme of a problem whose units act as one; None if over ``limit`` ideals.

    Where there are too many, idle ops follow their neighbours without counting their bytes.
    """
    exact = _ideals_with(problem, limit, weightless=False)
    return _ideals_with(problem, limit, weightless=True) if exact is None else exact


def _ideals_with(problem: Problem, limit: int, weightless: bool) -> OffloadIdeals | None:
    given = given_ops(problem)
    stages = stage_graph(problem, given=given, weightless=weightless)
    costs = problem.costs
    every = np.arange(len(costs.transfer_size))[:, None]
    moved = stages.per_tensor(
        np.concatenate([costs.transfer_s(every, 1, 0), costs.transfer_s(every, 0, 1)], axis=1)
    )
    offsets, readers = stages.consumers
    tensors = tuple(
        (
            int(maker),
            tuple(readers[offsets[t] : offsets[t + 1]].tolist()),
            float(moved[t, 0]) if maker >= 0 else 0.0,
            float(moved[t, 1]),
        )
        for t, maker in enumerate(stages.producer)
    )
    data = OffloadArrays(
        _release(problem, stages, given),
        stages.seconds[:, 0],
        stages.seconds[:, 1],
        stages.node_bytes,
        float(problem.memory_bytes[1]),
        stages.predecessors,
        tensors,
    )
    ideals = ideals_of(stages, data.node_bytes, limit)
    if ideals is None:
        return None
    return OffloadIdeals(stages, ideals, data, problem.num_devices - 1)
