"""The best placement so far, and moves of it that the policy guides."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import torch

from situs.core import Problem
from situs.graph.arrays import Floats, Ints
from situs.placers.learned.learner import best_of
from situs.placers.learned.network import Decision
from situs.placers.learned.nodes import NodeGraph

# Shares of moves of one unit, one node, one learned group; the rest are runs of units.
_UNIT, _NODE, _GROUP = 0.3, 0.5, 0.65
# Added to the policy's probabilities, so that no device is ever ruled out.
_CURIOSITY = 0.1
# Draws of a move until one is taken that was valued before.
_TRIES = 20


class Incumbent:
    """A copy of the best placement at the moment it was best, in devices of units."""

    def __init__(self, problem: Problem, nodes: NodeGraph) -> None:
        self._problem = problem
        self._unit_node = np.zeros(problem.num_units, dtype=np.int32)
        self._unit_node[problem.units] = nodes.node
        self._free = np.flatnonzero(problem.unit_allowed.sum(axis=1) > 1)
        self.seconds = np.inf
        self.devices: Ints | None = None
        self._union: Ints | None = None
        self.seen: set[int] = set()

    def offer(self, assignments: Ints, seconds: Floats) -> bool:
        """Take over the best of ``int32[K, N]`` if it is better; whether it was."""
        self.seen.update(_key(row) for row in assignments[:, self._problem.unit_heads])
        best, best_s = best_of(seconds)
        self._union = None
        if not best_s < self.seconds:
            return False
        before = self.devices
        self.devices = assignments[best, self._problem.unit_heads].astype(np.int32)
        better = np.flatnonzero(seconds < self.seconds)
        if before is not None and len(better) > 1:
            union = before.copy()
            for row in better[np.argsort(-seconds[better], kind="stable")]:
                devices = assignments[row, self._problem.unit_heads]
                changed = devices != before
                if changed.sum() <= len(before) // 4:
                    union[changed] = devices[changed]
            self._union = union.astype(np.int32)
        self.seconds = best_s
        return True

    def of_nodes(self, num_nodes: int) -> torch.Tensor:
        """``float32[V, D]`` share of each node's units on each device."""
        assert self.devices is not None
        share = np.zeros((num_nodes, self._problem.num_devices), dtype=np.float32)
        np.add.at(share, (self._unit_node, self.devices), 1.0)
        return torch.from_numpy(share / share.sum(axis=1, keepdims=True))

    def moves(self, decision: Decision, count: int, generator: torch.Generator) -> Ints:
        """``int32[count, N]`` the best placement with one region moved to a device.

        A region is a unit, a node, a group of the learned partition, or a run of units in
        topological order; the device is drawn from the policy. Placements that were valued before
        are drawn anew a few times.
        """
        assert self.devices is not None
        rows: list[Ints] = []
        drawn = set(self.seen)
        if self._union is not None:
            rows.append(self._union)
            drawn.add(_key(self._union))
        group = decision.partition.group.numpy()[self._unit_node]
        chance = decision.log_probs.exp().numpy()[group] + _CURIOSITY
        while len(rows) < count:
            for _ in range(_TRIES):
                row = self._moved(group, chance, generator)
                if _key(row) not in drawn:
                    break
            drawn.add(_key(row))
            rows.append(row)
        moved: Ints = np.stack(rows)[:, self._problem.units]
        return moved

    def _moved(self, group: Ints, chance: Floats, generator: torch.Generator) -> Ints:
        assert self.devices is not None
        row = self.devices.copy()
        if not len(self._free):
            return row
        kind, where, far, device = torch.rand(4, generator=generator, dtype=torch.float64).tolist()
        start = int(self._free[int(where * len(self._free))])
        if kind < _UNIT:
            region = np.array([start])
        elif kind < _NODE:
            region = np.flatnonzero(self._unit_node == self._unit_node[start])
        elif kind < _GROUP:
            region = np.flatnonzero(group == group[start])
        else:
            # Log-uniform up to all: what one device gains may begin at half the graph.
            length = int(len(row) ** far)
            region = np.arange(start, min(start + length, len(row)))
        weights = chance[start] * self._problem.unit_allowed[start]
        weights[self.devices[start]] = 0.0
        total = np.cumsum(weights)
        target = int(np.searchsorted(total, device * total[-1], side="right"))
        row[region[self._problem.unit_allowed[region, target]]] = target
        return row


def _key(units: Ints) -> int:
    """A 64-bit name of a placement of units, the same on every machine."""
    return int.from_bytes(blake2b(units.astype(np.int32).tobytes(), digest_size=8).digest())
