"""Restarting a ``dataflow`` simulation at the first instant that a move can change."""

from __future__ import annotations

from numba import njit

from situs.graph.arrays import Floats, Ints
from situs.simulate._dataflow_kernels import Workspace, begin, lay_out_queues, proceed
from situs.simulate._heap import push
from situs.simulate.tables import Tables


@njit(cache=True)
def first_change(
    old: Ints,
    new: Ints,
    moved: Ints,
    in_offsets: Ints,
    in_tensors: Ints,
    tables: Tables,
    per_edge: bool,
    w: Workspace,
) -> float:
    """Earliest instant at which a run of ``new`` can differ from the run of ``old`` in ``w``, s.

    A moved op differs from when its last producer ended; and a producer's transfers differ from its
    end, if the set of devices that they go to does.
    """
    producer, offsets, consumers = tables[3], tables[4], tables[5]
    change = w.start_s[moved[0]]
    for i in moved:
        last = 0.0
        for k in range(in_offsets[i], in_offsets[i + 1]):
            t = in_tensors[k]
            u = producer[t]
            last = max(last, w.end_s[u])
            if w.end_s[u] >= change:
                continue
            source = old[u]
            leaves = old[i] != source
            enters = new[i] != source
            if not per_edge:
                for e in range(offsets[t], offsets[t + 1]):
                    c = consumers[e]
                    if c != i and old[c] == new[c]:
                        leaves = leaves and old[c] != old[i]
                        enters = enters and old[c] != new[i]
            if leaves or enters:
                change = w.end_s[u]
        change = min(change, last)
    return float(change)


@njit(cache=True)
def restart(
    a: Ints,
    tables: Tables,
    keys: Floats,
    fifo: bool,
    shared: bool,
    per_edge: bool,
    change: float,
    old: Ints,
    base: Workspace,
    w: Workspace,
) -> float:
    """Makespan of ``a``, s; its run equals ``base``, that of ``old``, before ``change``.

    The state just before ``change`` is read off the base run in one pass over ops and edges; only
    what begins then or later is simulated. ``w`` ends up as after a run from the beginning.
    """
    if not change > 0.0:
        started, events = begin(a, tables, keys, fifo, w)
        return proceed(a, tables, keys, fifo, shared, per_edge, w, started, events)
    op_tensors, offsets, consumers, inputs = tables[2], tables[4], tables[5], tables[6]
    lay_out_queues(a, w)
    w.busy[:] = 0
    w.free_s[:] = 0.0
    w.missing[:] = inputs
    w.ready_s[:] = 0.0
    started = 0
    events = 0
    n = len(a)
    while started < n and base.start_s[base.order[started]] < change:
        i = base.order[started]
        w.order[started] = i
        started += 1
        w.running[i] = True
        w.start_s[i] = base.start_s[i]
        w.end_s[i] = base.end_s[i]
        if base.end_s[i] >= change:
            w.busy[a[i]] += 1
            push(w.event_keys, w.event_ops, 0, events, base.end_s[i], i)
            events += 1
            continue
        for t in range(op_tensors[i], op_tensors[i + 1]):
            for e in range(offsets[t], offsets[t + 1]):
                c = consumers[e]
                at = base.end_s[i]
                if a[c] != a[i]:
                    brought = e
                    if old[c] != a[c]:
                        # What it reads came here for another reader, else this were a change.
                        for other in range(offsets[t], offsets[t + 1]):
                            r = consumers[other]
                            if a[r] == a[c] and old[r] == a[r]:
                                brought = other
                                break
                    at = base.arrived_s[brought]
                    w.sent_s[e] = base.sent_s[brought]
                    w.arrived_s[e] = at
                    w.released_s[e] = base.released_s[brought]
                    w.free_s[a[i], a[c]] = max(w.free_s[a[i], a[c]], w.released_s[e])
                w.ready_s[c] = max(w.ready_s[c], at)
                w.missing[c] -= 1
    for k in range(started, n):
        w.running[base.order[k]] = False
    for k in range(started, n):
        i = base.order[k]
        if w.missing[i] > 0:
            continue
        at = w.ready_s[i]
        if at >= change:
            push(w.event_keys, w.event_ops, 0, events, at, i)
            events += 1
        else:
            d = a[i]
            key = at if fifo else keys[i]
            push(w.queue_keys, w.queue_ops, w.queue_base[d], w.queue_size[d], key, i)
            w.queue_size[d] += 1
    return proceed(a, tables, keys, fifo, shared, per_edge, w, started, events)
