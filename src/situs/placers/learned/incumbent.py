"""The best placement so far, and moves of it that the policy guides."""

from __future__ import annotations

import numpy as np
import torch

from situs.core import Problem
from situs.graph.arrays import Floats, Ints
from situs.placers.learned.network import Decision
from situs.placers.learned.nodes import NodeGraph

# Shares of moves of one unit, one node, one learned group; the rest are runs of units.
_UNIT, _NODE, _GROUP = 0.2, 0.4, 0.7
# Chance that a run goes on by one more unit.
_GO_ON = 0.85
# Added to the policy's probabilities, so that no device is ever ruled out.
_CURIOSITY = 0.1


class Incumbent:
    """A copy of the best placement at the moment it was best, in devices of units."""

    def __init__(self, problem: Problem, nodes: NodeGraph) -> None:
        self._problem = problem
        self._unit_node = np.zeros(problem.num_units, dtype=np.int32)
        self._unit_node[problem.units] = nodes.node
        self._first_op = np.zeros(problem.num_units, dtype=np.int64)
        self._first_op[problem.units[::-1]] = np.arange(problem.num_ops)[::-1]
        self._free = np.flatnonzero(problem.unit_allowed.sum(axis=1) > 1)
        self.seconds = np.inf
        self.devices: Ints | None = None
        self._union: Ints | None = None

    def offer(self, assignments: Ints, seconds: Floats) -> bool:
        """Take over the best of ``int32[K, N]`` if it is better; whether it was."""
        known = np.where(np.isfinite(seconds), seconds, np.inf)
        best = int(np.argmin(known))
        self._union = None
        if not known[best] < self.seconds:
            return False
        before = self.devices
        self.devices = assignments[best, self._first_op].astype(np.int32)
        better = np.flatnonzero(known < self.seconds)
        if before is not None and len(better) > 1:
            union = before.copy()
            for row in better[np.argsort(-known[better], kind="stable")]:
                devices = assignments[row, self._first_op]
                changed = devices != before
                if changed.sum() <= len(before) // 4:
                    union[changed] = devices[changed]
            self._union = union.astype(np.int32)
        self.seconds = float(known[best])
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
        topological order; the device is drawn from the policy.
        """
        assert self.devices is not None
        group = decision.partition.group.numpy()[self._unit_node]
        chance = decision.log_probs.exp().numpy()
        rows = np.repeat(self.devices[None], count, axis=0)
        dice = torch.rand((count, 4), generator=generator, dtype=torch.float64).numpy()
        for row, (kind, where, far, device) in zip(rows, dice, strict=True):
            start = int(self._free[int(where * len(self._free))])
            if kind < _UNIT:
                region = np.array([start])
            elif kind < _NODE:
                region = np.flatnonzero(self._unit_node == self._unit_node[start])
            elif kind < _GROUP:
                region = np.flatnonzero(group == group[start])
            else:
                length = 1 + int(np.log(max(far, 1e-9)) / np.log(_GO_ON))
                region = np.arange(start, min(start + length, len(row)))
            weights = (chance[group[start]] + _CURIOSITY) * self._problem.unit_allowed[start]
            weights[self.devices[start]] = 0.0
            total = np.cumsum(weights)
            target = int(np.searchsorted(total, device * total[-1], side="right"))
            row[region[self._problem.unit_allowed[region, target]]] = target
        if self._union is not None:
            rows[0] = self._union
        moved: Ints = rows[:, self._problem.units]
        return moved
