"""Incremental evaluation: the value of a placement after each move, and back."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from situs.core import Dataflow, Problem, Sequential
from situs.errors import PlacementError
from situs.graph.arrays import Floats, Ints, csr_from_pairs, frozen
from situs.simulate._additive_kernels import Additive, fill, scan, shift_all, shift_one
from situs.simulate._dataflow_kernels import workspace
from situs.simulate._restart_kernels import first_change, restart
from situs.simulate._sequential_kernels import broken
from situs.simulate.evaluate import checked, evaluate
from situs.simulate.memory import over_limits, roomy
from situs.simulate.ranks import dispatch_keys, flow_options
from situs.simulate.tables import tables


class Evaluator:
    """One assignment that is moved about; ``seconds`` is always what ``evaluate`` would say.

    ``sequential`` updates in time proportional to the degree of what moves (sums are compensated,
    so that rounding does not build up); ``dataflow`` re-simulates from the first instant that a
    move can change; ``pipeline`` is evaluated again. Where a limit may bind, the placement's memory
    is computed again after each move.

    Attributes:
        seconds: Value of the current assignment, s; ``inf`` = infeasible.
    """

    def __init__(self, problem: Problem, assignment: Ints) -> None:
        self._problem = problem
        self._a: Ints = checked(problem, np.asarray(assignment)[np.newaxis])[0]
        self._tables = tables(problem)
        self._inputs = problem.graph.inputs
        self._units = problem.units
        self._limited = not roomy(problem)
        self._history: list[tuple[Ints | int, Ints | int, float]] = []
        self._additive: Additive | None = None
        n, d = problem.num_ops, problem.num_devices
        if isinstance(problem.model, Sequential):
            self._additive = Additive(
                self._a,
                np.zeros((problem.graph.num_tensors, d), dtype=np.int32),
                np.zeros((problem.num_units, d), dtype=np.int32),
                np.zeros(2),
                np.zeros(2, dtype=np.int64),
            )
            self.seconds = self._limit(fill(self._additive, self._tables, problem.units))
        elif isinstance(problem.model, Dataflow):
            self._keys = dispatch_keys(problem)
            self._options = flow_options(problem.model)
            self._run, self._spare = (workspace(n, problem.graph.num_edges, d) for _ in range(2))
            self._whole = False
            self.seconds = self._limit(self._simulate(self._a, 0.0))
        else:
            self.seconds = float(evaluate(problem, self._a[np.newaxis])[0])

    @property
    def assignment(self) -> Ints:
        """A copy of the current assignment, ``int32[N]``."""
        return np.array(self._a)

    def move(self, ops: int | ArrayLike, device: int) -> float:
        """Move an op, or several at once, to a device; the new value, s.

        Raises:
            PlacementError: If there is no such op or device.
        """
        n, d = self._tables.seconds.shape
        if isinstance(ops, int) and self._additive is not None and 0 <= ops < n and 0 <= device < d:
            # Local searches live on this path: no array is made.
            self._history.append((ops, int(self._a[ops]), self.seconds))
            self.seconds = self._limit(self._shift(ops, device))
            return self.seconds
        group = np.atleast_1d(np.asarray(ops)).astype(np.int32)
        if not 0 <= device < d or (len(group) and (group.min() < 0 or group.max() >= n)):
            raise PlacementError(f"ops are 0..{n - 1} and devices 0..{d - 1}")
        self._history.append((group, self._a[group], self.seconds))
        self.seconds = self._limit(self._apply(group, np.full(len(group), device, dtype=np.int32)))
        return self.seconds

    def undo(self) -> float:
        """Take the last move back; the value that returns, s.

        Raises:
            PlacementError: If there is no move left.
        """
        if not self._history:
            raise PlacementError("there is no move to undo")
        group, devices, seconds = self._history.pop()
        if isinstance(group, int):
            self._shift(group, int(devices))
        else:
            self._apply(group[::-1].copy(), np.asarray(devices, dtype=np.int32)[::-1].copy())
        self.seconds = seconds
        return seconds

    def scan(self, units: ArrayLike, devices: ArrayLike) -> Floats:
        """``float64[M]`` value after each of M moves of a unit on its own; nothing is changed.

        Under ``sequential`` this is one compiled pass: the way to look at a whole neighbourhood.

        Args:
            units: ``int32[M]`` units (``problem.units``) to move.
            devices: ``int32[M]`` device of each move.
        """
        moved = np.asarray(units, dtype=np.int32)
        to = np.broadcast_to(np.asarray(devices, dtype=np.int32), moved.shape).copy()
        problem = self._problem
        if len(moved) and (
            min(moved.min(), to.min()) < 0
            or moved.max() >= problem.num_units
            or to.max() >= problem.num_devices
        ):
            raise PlacementError(
                f"units are 0..{problem.num_units - 1} and devices 0..{problem.num_devices - 1}"
            )
        offsets, members = csr_from_pairs(
            problem.units, np.arange(problem.num_ops, dtype=np.int32), problem.num_units
        )
        out = np.empty(len(moved))
        whole = bool((self._a == self._a[self._tables.leader]).all())
        if self._additive is not None and not self._limited and whole:
            fixed = (self._tables, problem.units, *self._inputs, offsets, members)
            scan(self._additive, *fixed, moved, to, out)
            return out
        for k, u in enumerate(moved):
            out[k] = self.move(members[offsets[u] : offsets[u + 1]], int(to[k]))
            self.undo()
        return frozen(out, np.float64)

    def _shift(self, op: int, device: int) -> float:
        assert self._additive is not None
        fixed = (self._tables, self._units, *self._inputs)
        return float(shift_one(self._additive, *fixed, op, device))

    def _apply(self, group: Ints, devices: Ints) -> float:
        if self._additive is not None:
            fixed = (self._tables, self._units, *self._inputs)
            return float(shift_all(self._additive, *fixed, group, devices))
        after = self._a.copy()
        after[group] = devices
        if not isinstance(self._problem.model, Dataflow):
            self._a = after
            return float(evaluate(self._problem, after[np.newaxis])[0])
        moved = group[after[group] != self._a[group]]
        if self._whole and not len(moved):
            return self.seconds
        change = 0.0
        if self._whole:
            per_edge = self._options[2]
            change = first_change(
                self._a, after, moved, *self._inputs, self._tables, per_edge, self._run
            )
        seconds = self._simulate(after, change)
        self._a = after
        return seconds

    def _simulate(self, a: Ints, change: float) -> float:
        if broken(a, self._tables.seconds, self._tables.leader):
            self._whole = False
            return float("inf")
        seconds = restart(
            a, self._tables, self._keys, *self._options, change, self._a, self._run, self._spare
        )
        self._run, self._spare = self._spare, self._run
        self._whole = bool(np.isfinite(seconds))
        return float(seconds)

    def _limit(self, seconds: float) -> float:
        if self._limited and np.isfinite(seconds):
            over = over_limits(self._problem, self._a[np.newaxis])[0]
            return float("inf") if over else seconds
        return seconds
