"""Kernel of the ``dataflow`` model: an event simulation on flat arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from situs.graph.arrays import Bools, Floats, Ints
from situs.simulate._heap import pop, push
from situs.simulate._sequential_kernels import broken
from situs.simulate.tables import Tables


class Workspace(NamedTuple):
    """Buffers of one simulation, reused for every placement of a thread.

    After a run, ``start_s``, ``end_s`` and ``ready_s`` (``[N]``) hold the schedule of the ops, and
    ``sent_s``, ``released_s``, ``arrived_s`` (``[E]``) that of the transfer that brings each edge,
    where it has one: leaving, off the link, readable. ``order[N]`` holds the ops as they started.
    """

    start_s: Floats
    end_s: Floats
    ready_s: Floats
    sent_s: Floats
    arrived_s: Floats
    released_s: Floats
    order: Ints
    missing: Ints
    running: Bools
    event_keys: Floats
    event_ops: Ints
    queue_keys: Floats
    queue_ops: Ints
    queue_base: Ints
    queue_size: Ints
    busy: Ints
    free_s: Floats
    carrier: Ints


@njit(cache=True)
def workspace(n: int, e: int, d: int) -> Workspace:
    """Buffers for ``n`` ops, ``e`` edges and ``d`` devices."""
    return Workspace(
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty(e),
        np.empty(e),
        np.empty(e),
        np.empty(n, dtype=np.int32),
        np.empty(n, dtype=np.int32),
        np.empty(n, dtype=np.bool_),
        np.empty(n),
        np.empty(n, dtype=np.int32),
        np.empty(n),
        np.empty(n, dtype=np.int32),
        np.empty(d, dtype=np.int32),
        np.empty(d, dtype=np.int32),
        np.empty(d, dtype=np.int32),
        np.empty((d, d)),
        np.empty(d, dtype=np.int32),
    )


@njit(cache=True)
def simulate(
    a: Ints, tables: Tables, keys: Floats, fifo: bool, shared: bool, per_edge: bool, w: Workspace
) -> float:
    """Makespan of one assignment, s; ``inf`` as soon as a transfer has no link.

    Args:
        a: ``int32[N]``, with finite op times.
        tables: The problem.
        keys: ``float64[N]`` dispatch keys, least first; not used under ``fifo``.
        fifo: Dispatch by the time at which an op became ready.
        shared: A directed link carries one transfer at a time.
        per_edge: Every edge is a transfer of its own.
        w: Buffers, overwritten.
    """
    started, events = begin(a, tables, keys, fifo, w)
    return proceed(a, tables, keys, fifo, shared, per_edge, w, started, events)


@njit(cache=True)
def lay_out_queues(a: Ints, w: Workspace) -> None:
    """Give each device a part of the queue's arrays that all of its ops fit into."""
    w.queue_size[:] = 0
    for i in range(len(a)):
        w.queue_size[a[i]] += 1
    base = 0
    for k in range(len(w.queue_size)):
        w.queue_base[k] = base
        base += w.queue_size[k]
    w.queue_size[:] = 0


@njit(cache=True)
def begin(a: Ints, tables: Tables, keys: Floats, fifo: bool, w: Workspace) -> tuple[int, int]:
    """The state before anything has run: ``(started, events)``."""
    inputs = tables[6]
    lay_out_queues(a, w)
    w.busy[:] = 0
    w.free_s[:] = 0.0
    w.missing[:] = inputs
    w.ready_s[:] = 0.0
    w.running[:] = False
    for i in range(len(a)):
        if inputs[i] == 0:
            k = a[i]
            key = 0.0 if fifo else keys[i]
            push(w.queue_keys, w.queue_ops, w.queue_base[k], w.queue_size[k], key, i)
            w.queue_size[k] += 1
    return 0, 0


@njit(cache=True)
def proceed(
    a: Ints,
    tables: Tables,
    keys: Floats,
    fifo: bool,
    shared: bool,
    per_edge: bool,
    w: Workspace,
    started: int,
    events: int,
) -> float:
    """Run on from a state to the end; the makespan, s."""
    seconds, op_tensors, offsets, consumers = tables[0], tables[2], tables[4], tables[5]
    size, latency, per_byte, boundary, streams = tables[7:12]
    d = len(streams)
    now = 0.0
    makespan = 0.0
    while True:
        for k in range(d):
            while w.queue_size[k] > 0 and w.busy[k] < streams[k]:
                i = pop(w.queue_keys, w.queue_ops, w.queue_base[k], w.queue_size[k])
                w.queue_size[k] -= 1
                w.busy[k] += 1
                w.running[i] = True
                w.start_s[i] = now
                w.end_s[i] = now + seconds[i, k]
                w.order[started] = i
                started += 1
                push(w.event_keys, w.event_ops, 0, events, w.end_s[i], i)
                events += 1
        if events == 0:
            break
        now = w.event_keys[0]
        while events > 0 and w.event_keys[0] == now:
            i = pop(w.event_keys, w.event_ops, 0, events)
            events -= 1
            source = a[i]
            if not w.running[i]:
                key = now if fifo else keys[i]
                push(w.queue_keys, w.queue_ops, w.queue_base[source], w.queue_size[source], key, i)
                w.queue_size[source] += 1
                continue
            w.busy[source] -= 1
            makespan = now
            for t in range(op_tensors[i], op_tensors[i + 1]):
                w.carrier[:] = -1
                for e in range(offsets[t], offsets[t + 1]):
                    c = consumers[e]
                    target = a[c]
                    at = now
                    if target != source:
                        first = w.carrier[target]
                        if first >= 0 and not per_edge:
                            at = w.arrived_s[first]
                            w.arrived_s[e] = at
                            w.released_s[e] = w.released_s[first]
                        else:
                            w.carrier[target] = e
                            sent = now
                            if shared:
                                sent = max(now, w.free_s[source, target])
                            finish = (
                                sent + latency[source, target] + size[t] * per_byte[source, target]
                            )
                            if finish == np.inf:
                                return np.inf
                            w.free_s[source, target] = finish
                            w.sent_s[e] = sent
                            w.released_s[e] = finish
                            at = finish + boundary[target]
                            w.arrived_s[e] = at
                    w.ready_s[c] = max(w.ready_s[c], at)
                    w.missing[c] -= 1
                    if w.missing[c] > 0:
                        continue
                    at = w.ready_s[c]
                    if at > now:
                        push(w.event_keys, w.event_ops, 0, events, at, c)
                        events += 1
                    else:
                        key = now if fifo else keys[c]
                        push(
                            w.queue_keys,
                            w.queue_ops,
                            w.queue_base[target],
                            w.queue_size[target],
                            key,
                            c,
                        )
                        w.queue_size[target] += 1
    return makespan


@njit(cache=True, nogil=True)
def dataflow(
    assignments: Ints,
    tables: Tables,
    keys: Floats,
    fifo: bool,
    shared: bool,
    per_edge: bool,
    out: Floats,
) -> None:
    """Write the makespans of ``int32[B, N]`` assignments to ``out[B]``, s."""
    n, d = tables[0].shape
    w = workspace(n, len(tables[5]), d)
    for b in range(len(assignments)):
        a = assignments[b]
        if broken(a, tables[0], tables[1]):
            out[b] = np.inf
        else:
            out[b] = simulate(a, tables, keys, fifo, shared, per_edge, w)
