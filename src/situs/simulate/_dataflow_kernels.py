"""Event simulation of ``dataflow`` on flat arrays.

Simulated time moves from instant to instant. At an instant, in rounds until nothing more happens:
first every op that ends then (by number) sends its tensors, then every free stream takes the first
op of its device's queue. A transfer takes its place on its link when its producer ends, so a
link's queue needs no list: it is the time at which the link is free.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from situs.graph.arrays import Floats, Ints, Longs
from situs.simulate._heap_kernels import pop, push
from situs.simulate.arrays import ProblemArrays

EVENTS, TRANSFERS, ENDED = 0, 1, 2


class State(NamedTuple):
    """Where a simulation stands.

    Attributes:
        waiting: ``int32[N]`` inputs whose producers have not ended.
        ready_s: ``float64[N]`` latest arrival among the inputs so far, s.
        start_s: ``float64[N]`` start of each op, s; ``inf`` before it has started.
        end_s: ``float64[N]`` end of each op, s.
        queue_key: ``float64[D * N]`` heaps of ready ops, one per device.
        queue_op: ``int32[D * N]`` their ops.
        queued: ``int64[D]`` their sizes.
        event_s: ``float64[2 N]`` heap of events, s.
        event: ``int32[2 N]`` op ``i`` ends: ``i``; op ``i`` becomes ready: ``N + i``.
        counts: ``int64[3]``: events in the heap, transfers recorded, ops ended.
        link_free_s: ``float64[D, D]`` when each directed link is free, s.
        busy: ``int64[D]`` streams in use.
        clock_s: ``float64[1]`` the last instant, s.
        moved: ``int32[M, 4]`` tensor, source, target, reader (-1: all readers there) per transfer.
        moved_s: ``float64[M, 2]`` start and end of each transfer, s; M = 0 records nothing.
    """

    waiting: Ints
    ready_s: Floats
    start_s: Floats
    end_s: Floats
    queue_key: Floats
    queue_op: Ints
    queued: Longs
    event_s: Floats
    event: Ints
    counts: Longs
    link_free_s: Floats
    busy: Longs
    clock_s: Floats
    moved: Ints
    moved_s: Floats


class Guard(NamedTuple):
    """What proves during a simulation that it will end too late.

    Attributes:
        limit_s: ``float64[1]`` ends after this are of no interest, s.
        tail_s: ``float64[N]`` least time from the end of an op to the end of all, s.
        left_s: ``float64[D]`` op times of what each device has not started, over its streams, s.
        share: ``float64[D]`` one over the streams of each device.
        after: ``int64[1]`` ops from this number on have a true ``tail_s``.
    """

    limit_s: Floats
    tail_s: Floats
    left_s: Floats
    share: Floats
    after: Longs


@njit(cache=True, nogil=True)
def new_state(num_ops: int, num_devices: int, num_recorded: int) -> State:
    """Room for a simulation; ``begin`` fills it."""
    return State(
        np.empty(num_ops, dtype=np.int32),
        np.empty(num_ops),
        np.empty(num_ops),
        np.empty(num_ops),
        np.empty(num_devices * num_ops),
        np.empty(num_devices * num_ops, dtype=np.int32),
        np.empty(num_devices, dtype=np.int64),
        np.empty(2 * num_ops),
        np.empty(2 * num_ops, dtype=np.int32),
        np.empty(3, dtype=np.int64),
        np.empty((num_devices, num_devices)),
        np.empty(num_devices, dtype=np.int64),
        np.empty(1),
        np.empty((num_recorded, 4), dtype=np.int32),
        np.empty((num_recorded, 2)),
    )


@njit(cache=True, nogil=True, inline="always")
def _enqueue(p: ProblemArrays, s: State, i: int, d: int, fifo: bool) -> None:
    key = s.ready_s[i] if fifo else -p.rank_s[i]
    push(s.queue_key, s.queue_op, d * len(s.waiting), s.queued[d], key, i)
    s.queued[d] += 1


@njit(cache=True, nogil=True, inline="always")
def _dispatch(p: ProblemArrays, s: State, now: float, guard: Guard | None) -> bool:
    n = len(s.waiting)
    late = False
    for d in range(len(s.queued)):
        while s.queued[d] > 0 and s.busy[d] < p.streams[d]:
            if guard is not None:
                late |= now + guard.left_s[d] > guard.limit_s[0]
            i = pop(s.queue_key, s.queue_op, d * n, s.queued[d])
            s.queued[d] -= 1
            s.busy[d] += 1
            s.start_s[i] = now
            s.end_s[i] = now + p.seconds[i, d]
            if guard is not None:
                guard.left_s[d] -= p.seconds[i, d] * guard.share[d]
                late |= i >= guard.after[0] and s.end_s[i] + guard.tail_s[i] > guard.limit_s[0]
            push(s.event_s, s.event, 0, s.counts[EVENTS], s.end_s[i], i)
            s.counts[EVENTS] += 1
    return not late


@njit(cache=True, nogil=True)
def begin(
    p: ProblemArrays, assignment: Ints, s: State, fifo: bool, guard: Guard | None = None
) -> bool:
    """Set the clock to zero and start the ops that read nothing; False if ``guard`` ends it."""
    s.queued[:] = 0
    s.counts[:] = 0
    s.link_free_s[:] = 0.0
    s.busy[:] = 0
    s.clock_s[0] = 0.0
    for i in range(len(assignment)):
        s.waiting[i] = p.input_offsets[i + 1] - p.input_offsets[i]
        s.ready_s[i] = 0.0
        s.start_s[i] = np.inf
        if s.waiting[i] == 0:
            _enqueue(p, s, i, assignment[i], fifo)
    return bool(_dispatch(p, s, 0.0, guard))


@njit(cache=True, nogil=True)
def advance(
    p: ProblemArrays,
    assignment: Ints,
    s: State,
    fifo: bool,
    shared: bool,
    per_edge: bool,
    until_ended: int,
    until_s: float = np.inf,
    guard: Guard | None = None,
) -> bool:
    """Simulate until at least ``until_ended`` ops have ended, or up to ``until_s``, or to the end.

    Returns:
        False if ``guard`` proved that the end comes after its limit.
    """
    n = len(assignment)
    record = len(s.moved) > 0
    d_count = len(s.queued)
    sent = np.full(d_count, -1, dtype=np.int64)
    arrival_s = np.empty(d_count)
    while s.counts[EVENTS] > 0 and s.counts[ENDED] < until_ended:
        now = s.event_s[0]
        if until_s < np.inf and now >= until_s:
            return True
        s.clock_s[0] = now
        while s.counts[EVENTS] > 0 and s.event_s[0] == now:
            i = pop(s.event_s, s.event, 0, s.counts[EVENTS])
            s.counts[EVENTS] -= 1
            if i >= n:
                _enqueue(p, s, i - n, assignment[i - n], fifo)
                continue
            source = assignment[i]
            s.busy[source] -= 1
            s.counts[ENDED] += 1
            for t in range(p.op_tensors[i], p.op_tensors[i + 1]):
                for e in range(p.consumer_offsets[t], p.consumer_offsets[t + 1]):
                    v = p.consumers[e]
                    d = assignment[v]
                    arrived = now
                    if d != source:
                        if per_edge or sent[d] != t:
                            sent[d] = t
                            begun = max(now, s.link_free_s[source, d]) if shared else now
                            ended = begun + (
                                p.link_latency_s[source, d]
                                + p.transfer_size[t] * p.link_s_per_byte[source, d]
                            )
                            s.link_free_s[source, d] = ended
                            arrival_s[d] = ended + p.boundary_s[d]
                            if record:
                                k = s.counts[TRANSFERS]
                                s.moved[k, 0] = t
                                s.moved[k, 1] = source
                                s.moved[k, 2] = d
                                s.moved[k, 3] = v if per_edge else -1
                                s.moved_s[k, 0] = begun
                                s.moved_s[k, 1] = ended
                                s.counts[TRANSFERS] += 1
                        arrived = arrival_s[d]
                    s.ready_s[v] = max(s.ready_s[v], arrived)
                    s.waiting[v] -= 1
                    if s.waiting[v] == 0:
                        if s.ready_s[v] <= now:
                            _enqueue(p, s, v, d, fifo)
                        else:
                            push(s.event_s, s.event, 0, s.counts[EVENTS], s.ready_s[v], n + v)
                            s.counts[EVENTS] += 1
        if not _dispatch(p, s, now, guard):
            return False
    return True


@njit(cache=True, nogil=True)
def dataflow(
    p: ProblemArrays, assignment: Ints, s: State, fifo: bool, shared: bool, per_edge: bool
) -> float:
    """Makespan of one placement, s; the schedule stays in ``s``."""
    begin(p, assignment, s, fifo)
    advance(p, assignment, s, fifo, shared, per_edge, len(assignment) + 1)
    return float(s.clock_s[0])
