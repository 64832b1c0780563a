"""Local search in one call: moves tried one after another, each kept if it is good enough."""

from __future__ import annotations

import numpy as np
from numba import njit

from situs.graph.arrays import Floats, Ints, Longs
from situs.simulate._dataflow_kernels import Guard, State
from situs.simulate._memory_kernels import dataflow_peak, sequential_peak
from situs.simulate._move_kernels import (
    FINITE,
    INFINITE,
    first_change_s,
    resimulate,
    restore,
    sequential_move,
    slot,
)
from situs.simulate._price_kernels import MARGIN, Moves, fill_tails, tail_after_s
from situs.simulate.arrays import ProblemArrays


@njit(cache=True, nogil=True)
def sequential_walk(
    p: ProblemArrays,
    assignment: Ints,
    readers: Ints,
    sums: Floats,
    moves: Moves,
    worse_s: Floats,
    best: Ints,
) -> tuple[float, float]:
    """Make each move that leaves at most ``worse_s[k]`` more than before; fill ``best``.

    Returns:
        The value at the end, and that of ``best``, s.
    """
    offsets, ops, targets = moves
    value = best_s = sums[FINITE] if sums[INFINITE] == 0 else np.inf
    best[:] = assignment
    forth = np.empty(len(ops), dtype=np.int32)
    for k in range(len(targets)):
        moved = ops[offsets[k] : offsets[k + 1]]
        back = assignment[moved]
        forth[: len(moved)] = targets[k]
        finite, infinite = sums[FINITE], sums[INFINITE]
        sequential_move(p, assignment, readers, moved, forth[: len(moved)], sums)
        after = sums[FINITE] if sums[INFINITE] == 0 else np.inf
        kept = after < np.inf and after <= value + worse_s[k]
        if kept and p.limited:
            kept = (sequential_peak(p, assignment) <= p.memory_bytes).all()
        if not kept:
            sequential_move(p, assignment, readers, moved, back, sums)
            sums[FINITE], sums[INFINITE] = finite, infinite
            continue
        value = after
        if value < best_s:
            best_s = value
            best[:] = assignment
    return value, best_s


@njit(cache=True, nogil=True)
def dataflow_walk(
    p: ProblemArrays,
    assignment: Ints,
    states: State,
    current: Longs,
    moves: Moves,
    worse_s: Floats,
    fifo: bool,
    shared: bool,
    per_edge: bool,
    best: Ints,
) -> tuple[float, float]:
    """As ``sequential_walk``; ``states`` are checkpoints as in ``resimulate``, kept current.

    A move's simulation begins at the last checkpoint before it matters, and ends as soon as the
    work left on a device, or the longest path from an op to the end, proves it too late.
    """
    offsets, ops, targets = moves
    n, last_state = len(assignment), len(current) - 1
    tail_s = np.empty(n)
    fill_tails(p, assignment, tail_s)
    guard = Guard(
        np.empty(1),
        tail_s,
        np.empty(len(p.boundary_s)),
        1.0 / p.streams,
        np.zeros(1, dtype=np.int64),
    )
    value = best_s = slot(states, 2 * last_state + current[last_state]).clock_s[0]
    best[:] = assignment
    for k in range(len(targets)):
        moved, new = ops[offsets[k] : offsets[k + 1]], targets[k]
        differs, allowed, last = False, True, -1
        for i in moved:
            differs |= assignment[i] != new
            allowed &= p.seconds[i, new] < np.inf
            last = max(last, i)
        if not differs or not allowed:
            continue
        end_s = slot(states, 2 * last_state + current[last_state]).end_s
        change_s = first_change_s(p, end_s, moved)
        back = assignment[moved]
        guard.limit_s[0] = (value + worse_s[k]) * (1 + MARGIN)
        guard.after[0] = last + 1
        kept_s = tail_s[last]
        if len(moved) == 1:
            tail_s[last] = tail_after_s(p, assignment, tail_s, last, new)
            guard.after[0] = last
        assignment[moved] = new
        first = resimulate(p, assignment, states, current, change_s, fifo, shared, per_edge, guard)
        if first >= 0:
            end = slot(states, 2 * last_state + current[last_state])
            after = end.clock_s[0]
            kept = after <= value + worse_s[k]
            if kept and p.limited:
                kept = (dataflow_peak(p, assignment, end) <= p.memory_bytes).all()
            if kept:
                value = after
                fill_tails(p, assignment, tail_s)
                if value < best_s:
                    best_s = value
                    best[:] = assignment
                continue
            restore(current, first)
        assignment[moved] = back
        tail_s[last] = kept_s
    return value, best_s
