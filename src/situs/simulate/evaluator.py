"""The value of one placement, kept current while ops move: what local search stands on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from situs.core import Dataflow, Offload, Pipeline, Problem, violation
from situs.errors import PlacementError, ProblemError
from situs.graph.arrays import Floats, Ints, Longs, csr_from_pairs, frozen
from situs.simulate import _move_kernels as kernels
from situs.simulate._dataflow_kernels import State
from situs.simulate._memory_kernels import dataflow_peak, sequential_peak
from situs.simulate._price_kernels import Moves, dataflow_price, sequential_price
from situs.simulate._walk_kernels import dataflow_walk, sequential_walk
from situs.simulate.arrays import problem_arrays
from situs.simulate.evaluate import checked, evaluate

# Sums of a million moves would drift by rounding; a sum from scratch costs little now and then.
_MOVES_PER_RESUM = 1024
# More make a shorter way to simulate, and more states to copy.
_CHECKPOINTS = 8


class _Engine(Protocol):
    """One execution model's way to follow moves; ``assignment`` is its own and changes."""

    assignment: Ints

    def move(self, ops: Ints, targets: Ints) -> float: ...

    def undo(self, ops: Ints, targets: Ints, seconds: float) -> None: ...

    def price(self, moves: Moves, limits_s: Floats, seconds: float) -> Floats: ...

    def walk(
        self, moves: Moves, worse_s: Floats, seconds: float, best: Ints
    ) -> tuple[float, float]: ...


class Evaluator:
    """Follows one placement through moves and their undoing, exactly as ``evaluate`` values it.

    A move costs time in the degree of the moved ops under ``sequential``, and under ``dataflow``
    the simulation from the first instant that can change. ``pipeline``, memory limits and a limit
    of sub-graphs cost a pass over the graph.

    Args:
        problem: What is placed.
        assignment: ``int32[N]`` where to begin.

    Raises:
        PlacementError: If an op is not allowed on its device, or a unit is split.
    """

    def __init__(self, problem: Problem, assignment: Ints) -> None:
        self._problem = problem
        array = checked(problem, np.asarray(assignment)[np.newaxis])[0].copy()
        broken = violation(problem, array)
        if broken is not None:
            raise PlacementError(f"an evaluator begins at an allowed placement: {broken}")
        self._units = problem.units
        ops = np.arange(problem.num_ops, dtype=np.int32)
        self._offsets, self._members = csr_from_pairs(self._units, ops, problem.num_units)
        self._past: list[tuple[Ints, Ints, float]] = []
        self._engine: _Engine
        if problem.limits.max_subgraphs is not None:
            self._engine = _WholeEngine(problem, array)
        elif isinstance(problem.model, Dataflow):
            self._engine = _DataflowEngine(problem, problem.model, array)
        elif isinstance(problem.model, Pipeline | Offload):
            self._engine = _WholeEngine(problem, array)
        else:
            self._engine = _SequentialEngine(problem, array)
        nothing = np.empty(0, dtype=np.int32)
        self._seconds = self._engine.move(nothing, nothing)

    @property
    def seconds(self) -> float:
        """Latency of the current placement, s; ``inf`` where it is infeasible."""
        return self._seconds

    @property
    def assignment(self) -> Ints:
        """``int32[N]`` copy of the current placement."""
        copy: Ints = frozen(self._engine.assignment.copy(), np.int32)
        return copy

    def move(self, ops: int | Sequence[int] | Ints, device: int) -> float:
        """Move the whole units of ``ops`` to ``device`` and return the new latency, s.

        Raises:
            ProblemError: If the device does not exist.
        """
        if not 0 <= device < self._problem.num_devices:
            raise ProblemError(
                f"device {device} is outside 0..{self._problem.num_devices - 1}; nothing moved"
            )
        members = self._whole(ops)
        before = self._engine.assignment[members]
        self._past.append((members, before, self._seconds))
        self._seconds = self._engine.move(members, np.full(len(members), device, dtype=np.int32))
        return self._seconds

    def undo(self) -> float:
        """Take back the last move that was not taken back, and return the latency, s.

        Raises:
            ProblemError: If there is none.
        """
        if not self._past:
            raise ProblemError("there is no move to undo")
        ops, devices, self._seconds = self._past.pop()
        self._engine.undo(ops, devices, self._seconds)
        return self._seconds

    def price(
        self,
        units: Ints,
        devices: Ints,
        offsets: Longs | None = None,
        limits_s: Floats | None = None,
    ) -> Floats:
        """Latency after each of ``K`` moves on its own; none of them is made.

        Args:
            units: ``int32[M]`` units, in the numbering of ``problem.units``.
            devices: ``int32[K]`` where each move sends its units, which are distinct.
            offsets: ``int64[K + 1]``: move ``k`` is ``units[offsets[k] : offsets[k + 1]]``; None =
                each unit is a move (``M = K``).
            limits_s: ``float64[K]`` a value above its limit may come back as ``inf``; None = no
                limits. With them, moves under ``dataflow`` are given up once they are too late.

        Returns:
            ``float64[K]``, s; ``inf`` where a limit of the problem is broken.
        """
        moves = self._moves(units, devices, offsets)
        if limits_s is None:
            limits_s = np.full(len(moves.targets), np.inf)
        return self._engine.price(moves, limits_s, self._seconds)

    def walk(
        self, units: Ints, devices: Ints, offsets: Longs, worse_s: Floats
    ) -> tuple[float, Ints]:
        """Try moves one after another; each stays if it costs at most ``worse_s[k]`` more.

        What was before cannot be undone any more.

        Args:
            units: As in ``price``.
            devices: As in ``price``.
            offsets: As in ``price``.
            worse_s: ``float64[K]`` how much worse than before each move may be, s; >= 0.

        Returns:
            The least value on the way, s, and its placement ``int32[N]``; the start counts.

        Raises:
            ProblemError: If the walk begins at an infeasible placement.
        """
        if not np.isfinite(self._seconds):
            raise ProblemError("a walk begins at a feasible placement; this one is infinite")
        self._past.clear()
        best = np.empty(self._problem.num_ops, dtype=np.int32)
        moves = self._moves(units, devices, offsets)
        self._seconds, best_s = self._engine.walk(moves, worse_s, self._seconds, best)
        return best_s, best

    def _moves(self, units: Ints, devices: Ints, offsets: Longs | None) -> Moves:
        units = np.asarray(units, dtype=np.int32)
        targets = np.ascontiguousarray(devices, dtype=np.int32)
        if offsets is None:
            offsets = np.arange(len(units) + 1, dtype=np.int64)
        begins, ends = self._offsets[units], self._offsets[units + 1]
        sums = np.concatenate(([0], np.cumsum(ends - begins)))
        rows = np.repeat(begins - sums[:-1], ends - begins) + np.arange(sums[-1])
        return Moves(sums[offsets], self._members[rows], targets)

    def _whole(self, ops: int | Sequence[int] | Ints) -> Ints:
        if isinstance(ops, (int, np.integer)):
            unit = self._units[ops]
            return self._members[self._offsets[unit] : self._offsets[unit + 1]]
        units = np.unique(self._units[np.asarray(ops, dtype=np.int64)])
        rows = [self._members[self._offsets[u] : self._offsets[u + 1]] for u in units]
        return np.concatenate(rows) if rows else np.empty(0, dtype=np.int32)


class _SequentialEngine:
    """Sums that a move changes by its own terms."""

    def __init__(self, problem: Problem, assignment: Ints) -> None:
        self.assignment = assignment
        self._p = problem_arrays(problem)
        self._readers = kernels.count_readers(self._p, assignment)
        self._sums = np.zeros(2)
        self._moves = 0
        kernels.sequential_sums(self._p, assignment, self._readers, self._sums)

    def _apply(self, ops: Ints, targets: Ints) -> None:
        p, sums = self._p, self._sums
        kernels.sequential_move(p, self.assignment, self._readers, ops, targets, sums)
        self._moves += 1
        if self._moves % _MOVES_PER_RESUM == 0:
            kernels.sequential_sums(p, self.assignment, self._readers, sums)

    def move(self, ops: Ints, targets: Ints) -> float:
        self._apply(ops, targets)
        if self._sums[kernels.INFINITE] > 0:
            return float("inf")
        if self._p.limited:
            peak = sequential_peak(self._p, self.assignment)
            if (peak > self._p.memory_bytes).any():
                return float("inf")
        return float(self._sums[kernels.FINITE])

    def price(self, moves: Moves, limits_s: Floats, seconds: float) -> Floats:
        out = np.empty(len(moves.targets))
        sequential_price(self._p, self.assignment, self._readers, self._sums, moves, out)
        return out

    def walk(
        self, moves: Moves, worse_s: Floats, seconds: float, best: Ints
    ) -> tuple[float, float]:
        p, sums = self._p, self._sums
        kernels.sequential_sums(p, self.assignment, self._readers, sums)
        return sequential_walk(p, self.assignment, self._readers, sums, moves, worse_s, best)

    def undo(self, ops: Ints, targets: Ints, seconds: float) -> None:
        self._apply(ops, targets)


class _DataflowEngine:
    """A simulation with checkpoints, each of which exists twice: now, and before the last move."""

    def __init__(self, problem: Problem, model: Dataflow, assignment: Ints) -> None:
        self.assignment = assignment
        self._problem = problem
        self._p = p = problem_arrays(problem)
        self._options = (model.dispatch == "fifo", model.links == "shared", model.charge == "edge")
        n, d = problem.num_ops, problem.num_devices
        recorded = len(p.consumers) if p.limited else 0
        k = 2 * (_CHECKPOINTS + 1)
        self._states = State(
            np.empty((k, n), dtype=np.int32),
            np.empty((k, n)),
            np.empty((k, n)),
            np.empty((k, n)),
            np.empty((k, d * n)),
            np.empty((k, d * n), dtype=np.int32),
            np.empty((k, d), dtype=np.int64),
            np.empty((k, 2 * n)),
            np.empty((k, 2 * n), dtype=np.int32),
            np.empty((k, 3), dtype=np.int64),
            np.empty((k, d, d)),
            np.empty((k, d), dtype=np.int64),
            np.zeros((k, 1)),
            np.empty((k, recorded, 4), dtype=np.int32),
            np.empty((k, recorded, 2)),
        )
        self._current = np.zeros(_CHECKPOINTS + 1, dtype=np.int64)
        # No op has run yet: everything is to be simulated.
        self._first: int | None = None
        self._simulate(-1.0)

    @property
    def _end(self) -> int:
        return 2 * _CHECKPOINTS + int(self._current[-1])

    def _simulate(self, change_s: float) -> None:
        self._first = kernels.resimulate(
            self._p, self.assignment, self._states, self._current, change_s, *self._options
        )

    def _apply(self, ops: Ints, targets: Ints) -> None:
        moved = ops[self.assignment[ops] != targets]
        change_s = kernels.first_change_s(self._p, self._states.end_s[self._end], moved)
        self.assignment[ops] = targets
        self._simulate(change_s)

    def move(self, ops: Ints, targets: Ints) -> float:
        self._apply(ops, targets)
        if not np.isfinite(self._p.seconds[ops, targets]).all():
            return float("inf")
        if self._p.limited:
            end = kernels.slot(self._states, self._end)
            peak = dataflow_peak(self._p, self.assignment, end)
            if (peak > self._p.memory_bytes).any():
                return float("inf")
        return float(self._states.clock_s[self._end, 0])

    def undo(self, ops: Ints, targets: Ints, seconds: float) -> None:
        if self._first is None:
            self._apply(ops, targets)
        else:
            self.assignment[ops] = targets
            kernels.restore(self._current, self._first)
        # The states beside are now those of the move that was taken back, not of the one before.
        self._first = None

    def price(self, moves: Moves, limits_s: Floats, seconds: float) -> Floats:
        if not np.isfinite(self._p.seconds[np.arange(len(self.assignment)), self.assignment]).all():
            return _whole_price(self._problem, self.assignment, moves)
        out = np.empty(len(moves.targets))
        end_s = self._states.end_s[self._end]
        dataflow_price(
            *(self._p, self.assignment, end_s, seconds, moves, limits_s),
            *(*self._options, out),
        )
        return out

    def walk(
        self, moves: Moves, worse_s: Floats, seconds: float, best: Ints
    ) -> tuple[float, float]:
        # The states beside are those of the last move that was tried.
        self._first = None
        return dataflow_walk(
            *(self._p, self.assignment, self._states, self._current, moves, worse_s),
            *(*self._options, best),
        )


class _WholeEngine:
    """Values the whole placement at every move."""

    def __init__(self, problem: Problem, assignment: Ints) -> None:
        self.assignment = assignment
        self._problem = problem

    def move(self, ops: Ints, targets: Ints) -> float:
        self.assignment[ops] = targets
        return float(evaluate(self._problem, self.assignment[np.newaxis])[0])

    def undo(self, ops: Ints, targets: Ints, seconds: float) -> None:
        self.assignment[ops] = targets

    def price(self, moves: Moves, limits_s: Floats, seconds: float) -> Floats:
        return _whole_price(self._problem, self.assignment, moves)

    def walk(
        self, moves: Moves, worse_s: Floats, seconds: float, best: Ints
    ) -> tuple[float, float]:
        best_s = seconds
        best[:] = self.assignment
        for k, target in enumerate(moves.targets):
            moved = moves.ops[moves.offsets[k] : moves.offsets[k + 1]]
            before = self.assignment[moved]
            after = self.move(moved, target)
            if not (np.isfinite(after) and after <= seconds + worse_s[k]):
                self.assignment[moved] = before
                continue
            seconds = after
            if seconds < best_s:
                best_s = seconds
                best[:] = self.assignment
        return seconds, best_s


def _whole_price(problem: Problem, assignment: Ints, moves: Moves) -> Floats:
    moved = np.repeat(assignment[np.newaxis], len(moves.targets), axis=0)
    rows = np.repeat(np.arange(len(moves.targets)), np.diff(moves.offsets))
    moved[rows, moves.ops] = moves.targets[rows]
    return evaluate(problem, moved)
