"""Values of many moves from one placement, in one call, without making any of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from situs.graph.arrays import Floats, Ints, Longs
from situs.simulate._dataflow_kernels import Guard, advance, begin, new_state
from situs.simulate._memory_kernels import dataflow_peak, sequential_peak
from situs.simulate._move_kernels import (
    FINITE,
    INFINITE,
    copy_state,
    first_change_s,
    sequential_move,
)
from situs.simulate.arrays import ProblemArrays

# Sums of remaining work carry rounding errors; a proof must not rest on them.
MARGIN = 1e-9


class Moves(NamedTuple):
    """``K`` moves, each of some ops to one device.

    Attributes:
        offsets: ``int64[K + 1]``: move ``k`` is of ``ops[offsets[k] : offsets[k + 1]]``.
        ops: ``int32[M]``.
        targets: ``int32[K]`` devices.
    """

    offsets: Longs
    ops: Ints
    targets: Ints


@njit(cache=True, nogil=True)
def _change_s(p: ProblemArrays, a: Ints, readers: Ints, i: int, new: int) -> float:
    """What moving one op adds to the ``sequential`` sum, s; not finite if an infinite term is."""
    old = a[i]
    more = p.seconds[i, new] - p.seconds[i, old]
    for k in range(p.input_offsets[i], p.input_offsets[i + 1]):
        t = p.inputs[k]
        s = a[p.tensor_producer[t]]
        size = p.transfer_size[t]
        if old != s and readers[t, old] == 1:
            more -= p.link_latency_s[s, old] + size * p.link_s_per_byte[s, old] + p.boundary_s[old]
        if new != s and readers[t, new] == 0:
            more += p.link_latency_s[s, new] + size * p.link_s_per_byte[s, new] + p.boundary_s[new]
    for t in range(p.op_tensors[i], p.op_tensors[i + 1]):
        size = p.transfer_size[t]
        for d in range(len(p.boundary_s)):
            if readers[t, d] == 0:
                continue
            if d != old:
                more -= p.link_latency_s[old, d] + size * p.link_s_per_byte[old, d]
                more -= p.boundary_s[d]
            if d != new:
                more += p.link_latency_s[new, d] + size * p.link_s_per_byte[new, d]
                more += p.boundary_s[d]
    return float(more)


@njit(cache=True, nogil=True)
def sequential_price(
    p: ProblemArrays,
    assignment: Ints,
    readers: Ints,
    sums: Floats,
    moves: Moves,
    out: Floats,
) -> None:
    """Latency after each move, s; everything ends as it began."""
    offsets, ops, targets = moves
    finite, infinite = sums[FINITE], sums[INFINITE]
    target = np.empty(len(ops), dtype=np.int32)
    for k in range(len(targets)):
        moved = ops[offsets[k] : offsets[k + 1]]
        if infinite == 0 and not p.limited and len(moved) == 1:
            if assignment[moved[0]] == targets[k]:
                out[k] = finite
                continue
            more = _change_s(p, assignment, readers, moved[0], targets[k])
            out[k] = finite + more if np.isfinite(more) else np.inf
            continue
        back = assignment[moved]
        forth = target[: len(moved)]
        forth[:] = targets[k]
        sequential_move(p, assignment, readers, moved, forth, sums)
        out[k] = sums[FINITE] if sums[INFINITE] == 0 else np.inf
        if p.limited and (sequential_peak(p, assignment) > p.memory_bytes).any():
            out[k] = np.inf
        sequential_move(p, assignment, readers, moved, back, sums)
        sums[FINITE], sums[INFINITE] = finite, infinite


@njit(cache=True, nogil=True)
def tail_after_s(p: ProblemArrays, a: Ints, tail_s: Floats, i: int, device: int) -> float:
    """Least time from the end of op ``i`` on ``device`` to the end of all, by its readers', s."""
    longest = 0.0
    for t in range(p.op_tensors[i], p.op_tensors[i + 1]):
        for e in range(p.consumer_offsets[t], p.consumer_offsets[t + 1]):
            v = p.consumers[e]
            d = a[v]
            path = p.seconds[v, d] + tail_s[v]
            if d != device:
                path += (
                    p.link_latency_s[device, d]
                    + p.transfer_size[t] * p.link_s_per_byte[device, d]
                    + p.boundary_s[d]
                )
            longest = max(longest, path)
    return longest


@njit(cache=True, nogil=True)
def fill_tails(p: ProblemArrays, a: Ints, tail_s: Floats) -> None:
    """Least time from the end of each op to the end of all, links never queueing, s."""
    for i in range(len(a) - 1, -1, -1):
        tail_s[i] = tail_after_s(p, a, tail_s, i, a[i])


@njit(cache=True, nogil=True)
def dataflow_price(
    p: ProblemArrays,
    assignment: Ints,
    end_s: Floats,
    seconds: float,
    moves: Moves,
    limits_s: Floats,
    fifo: bool,
    shared: bool,
    per_edge: bool,
    out: Floats,
) -> None:
    """Makespan after each move, s; ``inf`` where it is proven to be above the move's limit.

    ``end_s`` and ``seconds`` are ends and makespan of the placement as it is. Its schedule is
    simulated once; each move branches off where it begins to matter, and is given up as soon as
    the work left on a device or the longest path from an op to the end proves it too late.
    """
    offsets, ops, targets = moves
    n, devices, count = len(assignment), len(p.boundary_s), len(targets)
    a = assignment.copy()
    tail_s = np.empty(n)
    fill_tails(p, a, tail_s)
    left_s = np.zeros(devices)
    share = 1.0 / p.streams
    for i in range(n):
        left_s[a[i]] += p.seconds[i, a[i]] * share[a[i]]
    change_s = np.empty(count)
    for k in range(count):
        change_s[k] = first_change_s(p, end_s, ops[offsets[k] : offsets[k + 1]])
    recorded = len(p.consumers) if p.limited else 0
    base, branch = new_state(n, devices, recorded), new_state(n, devices, recorded)
    no_limit = np.full(1, np.inf)
    all_left_s = left_s.copy()
    follow = Guard(no_limit, tail_s, left_s, share, np.zeros(1, dtype=np.int64))
    guard = Guard(np.empty(1), tail_s, np.empty(devices), share, np.zeros(1, dtype=np.int64))
    begun = False
    for k in np.argsort(change_s):
        moved = ops[offsets[k] : offsets[k + 1]]
        new = targets[k]
        if (a[moved] == new).all():
            out[k] = seconds
            continue
        from_start = change_s[k] < 0
        if not from_start:
            if not begun:
                begin(p, assignment, base, fifo, follow)
                begun = True
            advance(p, assignment, base, fifo, shared, per_edge, n + 1, change_s[k], follow)
        guard.limit_s[0] = limits_s[k] * (1 + MARGIN)
        guard.left_s[:] = all_left_s if from_start else left_s
        allowed = True
        last = -1
        for i in moved:
            guard.left_s[a[i]] -= p.seconds[i, a[i]] * share[a[i]]
            guard.left_s[new] += p.seconds[i, new] * share[new]
            allowed &= p.seconds[i, new] < np.inf
            last = max(last, i)
        out[k] = np.inf
        if not allowed:
            continue
        clock_s = 0.0 if from_start else base.clock_s[0]
        if (clock_s + guard.left_s > guard.limit_s[0]).any():
            continue
        kept_s = tail_s[last] if last >= 0 else 0.0
        guard.after[0] = last + 1
        if len(moved) == 1:
            tail_s[last] = tail_after_s(p, a, tail_s, last, new)
            guard.after[0] = last
        old = a[moved]
        a[moved] = new
        if from_start:
            alive = begin(p, a, branch, fifo, guard)
        else:
            copy_state(branch, base)
            alive = True
        if alive and advance(p, a, branch, fifo, shared, per_edge, n + 1, np.inf, guard):
            out[k] = branch.clock_s[0]
            if p.limited and (dataflow_peak(p, a, branch) > p.memory_bytes).any():
                out[k] = np.inf
        a[moved] = old
        if last >= 0:
            tail_s[last] = kept_s
