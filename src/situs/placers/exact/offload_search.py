"""Shortest ways and exact answers for the regions that they use, in turn, with proof."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from situs.core import Clock
from situs.graph.arrays import Ints
from situs.placers.exact._barrier_kernels import least_calls
from situs.placers.exact.calls import OffloadArrays, solve_calls
from situs.placers.exact.offload_ideals import OffloadIdeals, Step
from situs.placers.exact.offload_regions import Regions, shortest_way
from situs.placers.exact.offload_seconds import offload_seconds

_THREADS = 2


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
        most_s = cpu if np.isfinite(cpu) else _one_by_one(self.problem.data, inside)
        answer = solve_calls(self.problem.data, inside, calls, most_s, limit_s, seed=seed)
        known = [row for row in regions.solved.get(key, []) if row[2] is not None]
        if answer is None and not np.isfinite(cpu):
            # No way through is known: the step keeps its bound, and cannot be taken.
            known.append((calls, low, {}))
        elif answer is None:
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


def _one_by_one(data: OffloadArrays, nodes: Ints) -> float:
    """Every node after the other where it is slowest, and every transfer, s: more than any way."""
    times = np.stack([data.cpu_s[nodes], data.accelerator_s[nodes]])
    moved = sum(out_s + in_s for _, _, out_s, in_s in data.tensors)
    return float(np.where(np.isfinite(times), times, 0.0).max(axis=0).sum() + moved)


def _longest(data: OffloadArrays, nodes: Ints) -> float:
    """Longest path of CPU times through ``nodes``, s."""
    end: dict[int, float] = {}
    for v in nodes.tolist():
        end[v] = float(data.cpu_s[v]) + max(
            (end[p] for p in data.predecessors[v] if p in end), default=0.0
        )
    return max(end.values(), default=0.0)
