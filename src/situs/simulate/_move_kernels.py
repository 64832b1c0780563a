"""Value of a placement after some ops change device, from what it was before."""

from __future__ import annotations

import numpy as np
from numba import njit

from situs.graph.arrays import Floats, Ints, Longs
from situs.simulate._dataflow_kernels import (
    EVENTS,
    TRANSFERS,
    Guard,
    State,
    advance,
    begin,
)
from situs.simulate.arrays import ProblemArrays

FINITE, INFINITE = 0, 1


@njit(cache=True, nogil=True)
def count_readers(p: ProblemArrays, assignment: Ints) -> Ints:
    """``int32[T, D]``: ops on each device that read each tensor."""
    readers = np.zeros((len(p.tensor_producer), len(p.boundary_s)), dtype=np.int32)
    for t in range(len(p.tensor_producer)):
        for e in range(p.consumer_offsets[t], p.consumer_offsets[t + 1]):
            readers[t, assignment[p.consumers[e]]] += 1
    return readers


@njit(cache=True, nogil=True, inline="always")
def _add(sums: Floats, sign: float, seconds: float) -> None:
    if seconds == np.inf:
        sums[INFINITE] += sign
    else:
        sums[FINITE] += sign * seconds


@njit(cache=True, nogil=True)
def _add_tensor(
    p: ProblemArrays, assignment: Ints, readers: Ints, t: int, sign: float, sums: Floats
) -> None:
    source = assignment[p.tensor_producer[t]]
    for d in range(len(p.boundary_s)):
        if d != source and readers[t, d] > 0:
            seconds = (
                p.link_latency_s[source, d] + p.transfer_size[t] * p.link_s_per_byte[source, d]
            )
            _add(sums, sign, seconds + p.boundary_s[d])


@njit(cache=True, nogil=True)
def sequential_sums(p: ProblemArrays, assignment: Ints, readers: Ints, sums: Floats) -> None:
    """Sum of the finite terms, and count of the infinite ones, from scratch."""
    sums[:] = 0.0
    for i in range(len(assignment)):
        _add(sums, 1.0, p.seconds[i, assignment[i]])
    for t in range(len(p.tensor_producer)):
        _add_tensor(p, assignment, readers, t, 1.0, sums)


@njit(cache=True, nogil=True)
def sequential_move(
    p: ProblemArrays, assignment: Ints, readers: Ints, ops: Ints, targets: Ints, sums: Floats
) -> None:
    """Move ops one after another, in time that grows with their tensors and devices only."""
    for k in range(len(ops)):
        i, new = ops[k], targets[k]
        old = assignment[i]
        if new == old:
            continue
        _add(sums, -1.0, p.seconds[i, old])
        _add(sums, 1.0, p.seconds[i, new])
        for t in range(p.op_tensors[i], p.op_tensors[i + 1]):
            _add_tensor(p, assignment, readers, t, -1.0, sums)
        for j in range(p.input_offsets[i], p.input_offsets[i + 1]):
            t = p.inputs[j]
            _add_tensor(p, assignment, readers, t, -1.0, sums)
            readers[t, old] -= 1
            readers[t, new] += 1
            _add_tensor(p, assignment, readers, t, 1.0, sums)
        assignment[i] = new
        for t in range(p.op_tensors[i], p.op_tensors[i + 1]):
            _add_tensor(p, assignment, readers, t, 1.0, sums)


@njit(cache=True, nogil=True)
def first_change_s(p: ProblemArrays, end_s: Floats, ops: Ints) -> float:
    """The earliest instant at which a move of ``ops`` can matter: when what they read ends, s."""
    first = np.inf
    for i in ops:
        if p.input_offsets[i] == p.input_offsets[i + 1]:
            return -1.0
        for j in range(p.input_offsets[i], p.input_offsets[i + 1]):
            first = min(first, end_s[p.tensor_producer[p.inputs[j]]])
    return first


@njit(cache=True, nogil=True)
def copy_state(a: State, b: State) -> None:
    """Copy the simulation in ``b`` into ``a``."""
    n = len(a.waiting)
    a.waiting[:] = b.waiting
    a.ready_s[:] = b.ready_s
    a.start_s[:] = b.start_s
    a.end_s[:] = b.end_s
    for d in range(len(a.queued)):
        a.queued[d] = b.queued[d]
        for k in range(d * n, d * n + b.queued[d]):
            a.queue_key[k] = b.queue_key[k]
            a.queue_op[k] = b.queue_op[k]
    for k in range(b.counts[EVENTS]):
        a.event_s[k] = b.event_s[k]
        a.event[k] = b.event[k]
    a.counts[:] = b.counts
    a.link_free_s[:] = b.link_free_s
    a.busy[:] = b.busy
    a.clock_s[:] = b.clock_s
    for k in range(b.counts[TRANSFERS] if len(b.moved) > 0 else 0):
        a.moved[k] = b.moved[k]
        a.moved_s[k] = b.moved_s[k]


@njit(cache=True, nogil=True)
def slot(all_states: State, k: int) -> State:
    """State ``k`` of arrays with a leading axis of states."""
    return State(
        all_states.waiting[k],
        all_states.ready_s[k],
        all_states.start_s[k],
        all_states.end_s[k],
        all_states.queue_key[k],
        all_states.queue_op[k],
        all_states.queued[k],
        all_states.event_s[k],
        all_states.event[k],
        all_states.counts[k],
        all_states.link_free_s[k],
        all_states.busy[k],
        all_states.clock_s[k],
        all_states.moved[k],
        all_states.moved_s[k],
    )


@njit(cache=True, nogil=True)
def resimulate(
    p: ProblemArrays,
    assignment: Ints,
    states: State,
    current: Longs,
    change_s: float,
    fifo: bool,
    shared: bool,
    per_edge: bool,
    guard: Guard | None = None,
) -> int:
    """Simulate again from the last checkpoint before ``change_s``.

    Checkpoint ``k`` of ``K`` lives in state ``2 k + current[k]``; the last one is the end. The new
    ones go beside the old ones, so that taking them back is a change of ``current``.

    Returns:
        The first checkpoint that was replaced; -1 and nothing replaced if ``guard`` ended it.
    """
    n, last = len(assignment), len(current) - 1
    first = 0
    # An instant at which a producer ended was not yet simulated where the clock stands before it.
    while first < last and slot(states, 2 * first + current[first]).clock_s[0] < change_s:
        first += 1
    previous = slot(states, 2 * (first - 1) + current[first - 1]) if first > 0 else slot(states, 0)
    if guard is not None:
        guard.left_s[:] = 0.0
        for i in range(n):
            if first == 0 or previous.start_s[i] == np.inf:
                d = assignment[i]
                guard.left_s[d] += p.seconds[i, d] * guard.share[d]
    for k in range(first, last + 1):
        current[k] = 1 - current[k]
        s = slot(states, 2 * k + current[k])
        if k == 0:
            alive = begin(p, assignment, s, fifo, guard)
        else:
            copy_state(s, previous)
            until = n * k // last if k < last else n + 1
            alive = advance(p, assignment, s, fifo, shared, per_edge, until, np.inf, guard)
        if not alive:
            for j in range(first, k + 1):
                current[j] = 1 - current[j]
            return -1
        previous = s
    return first


@njit(cache=True, nogil=True)
def restore(current: Longs, first: int) -> None:
    """Take back the checkpoints that ``resimulate`` replaced from ``first`` on."""
    for k in range(first, len(current)):
        current[k] = 1 - current[k]
