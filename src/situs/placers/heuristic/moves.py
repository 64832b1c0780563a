"""Random moves of units and of groups that belong together, for local searches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from situs.core import Problem
from situs.graph.arrays import Ints, Longs, csr_from_pairs, frozen
from situs.placers.heuristic._neighbour_kernels import draw_moves
from situs.placers.heuristic.branches import branch_groups

_LARGEST = 64


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Moves of one problem: which units, and to which device.

    A move is a unit, a run of neighbours in topological order, or a unit with what surrounds it
    on its own device. Only devices that every moved unit may use are drawn.
    """

    problem: Problem

    @cached_property
    def choices(self) -> list[Ints]:
        """Allowed devices of each unit."""
        return [frozen(np.flatnonzero(row), np.int32) for row in self.problem.unit_allowed]

    @cached_property
    def free(self) -> Ints:
        """Units that have more than one allowed device, in topological order of first op."""
        return frozen([u for u, row in enumerate(self.choices) if len(row) > 1], np.int32)

    @cached_property
    def adjacent(self) -> tuple[Ints, Ints]:
        """CSR of units joined by a tensor, both directions."""
        graph = self.problem.graph
        u, v = self.problem.units[graph.edge_producer], self.problem.units[graph.consumer_ops]
        pairs = np.unique(np.concatenate([np.stack([u, v], 1), np.stack([v, u], 1)]), axis=0)
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        return csr_from_pairs(pairs[:, 0], pairs[:, 1], self.problem.num_units)

    @cached_property
    def groups(self) -> tuple[Ints, Ints]:
        """CSR of the units of each branch between a fork and its join."""
        return branch_groups(self.problem, _LARGEST)

    def units_of(self, assignment: Ints) -> Ints:
        """Device of each unit."""
        device = np.zeros(self.problem.num_units, dtype=np.int32)
        device[self.problem.units] = assignment
        return device

    def draw(self, device: Ints, rng: np.random.Generator) -> tuple[Ints, int]:
        """Units and their new device, given the ``device`` of every unit."""
        kind = rng.random()
        start = int(rng.integers(len(self.free)))
        if kind < 0.5:
            group = self.free[start : start + 1]
        elif kind < 0.8:
            length = 1 + int(rng.geometric(0.15))
            group = self.free[start : start + length]
        else:
            group = self._region(int(self.free[start]), device, 1 + int(rng.geometric(0.15)))
        seed = group[0]
        others = self.choices[seed][self.choices[seed] != device[seed]]
        target = int(others[rng.integers(len(others))])
        return group[self.problem.unit_allowed[group, target]], target

    def draw_many(
        self, device: Ints, count: int, rng: np.random.Generator
    ) -> tuple[Longs, Ints, Ints]:
        """``count`` moves as offsets, units and targets, given the ``device`` of every unit.

        As ``draw``, and whole branches between forks and joins.
        """
        return draw_moves(
            device,
            self.problem.unit_allowed,
            self.free,
            self.adjacent,
            self.groups,
            rng.random((count, 4)),
            _LARGEST,
        )

    def _region(self, seed: int, device: Ints, limit: int) -> Ints:
        """Up to ``limit`` units around ``seed`` that share its device, breadth first."""
        offsets, values = self.adjacent
        region, seen, head = [seed], {seed}, 0
        while head < len(region) and len(region) < limit:
            u = region[head]
            head += 1
            for v in values[offsets[u] : offsets[u + 1]].tolist():
                if v not in seen and device[v] == device[seed]:
                    seen.add(v)
                    region.append(v)
        return np.array(region[:limit], dtype=np.int32)
