"""Latency of one placement under ``sequential`` and ``pipeline``, in one pass over the edges."""

from __future__ import annotations

import numpy as np
from numba import njit

from situs.graph.arrays import Bools, Ints
from situs.simulate._dataflow_kernels import TRANSFERS, State
from situs.simulate.arrays import ProblemArrays


@njit(cache=True, nogil=True)
def keeps_units(p: ProblemArrays, assignment: Ints) -> bool:
    """Whether every op is where its unit's first op is, on a device that may run it."""
    for i in range(len(assignment)):
        d = assignment[i]
        if d != assignment[p.unit_head[i]] or p.seconds[i, d] == np.inf:
            return False
    return True


@njit(cache=True, nogil=True)
def sequential(p: ProblemArrays, assignment: Ints) -> float:
    """Sum of op times, and per tensor and other device that reads it a transfer and a boundary."""
    total = 0.0
    for i in range(len(assignment)):
        total += p.seconds[i, assignment[i]]
    reached = np.full(len(p.boundary_s), -1, dtype=np.int64)
    for t in range(len(p.tensor_producer)):
        source = assignment[p.tensor_producer[t]]
        for e in range(p.consumer_offsets[t], p.consumer_offsets[t + 1]):
            d = assignment[p.consumers[e]]
            if d != source and reached[d] != t:
                reached[d] = t
                moved = (
                    p.link_latency_s[source, d] + p.transfer_size[t] * p.link_s_per_byte[source, d]
                )
                total += moved + p.boundary_s[d]
    return total


@njit(cache=True, nogil=True)
def convex(p: ProblemArrays, assignment: Ints, backward: Bools) -> bool:
    """Whether no path leaves a device and comes back to it, in either part; for up to 64 sets."""
    one = np.uint64(1)
    devices = len(p.boundary_s)
    left = np.zeros(len(assignment), dtype=np.uint64)
    for i in range(len(assignment)):
        own = assignment[i] + devices * backward[i]
        here = one << np.uint64(own)
        for k in range(p.input_offsets[i], p.input_offsets[i + 1]):
            u = p.tensor_producer[p.inputs[k]]
            left[i] |= left[u]
            other = assignment[u] + devices * backward[u]
            if other != own:
                left[i] |= one << np.uint64(other)
        if left[i] & here:
            return False
    return True


@njit(cache=True, nogil=True)
def pipeline(
    p: ProblemArrays, assignment: Ints, staged: bool, contiguous: bool, backward: Bools
) -> float:
    """Load of the busiest device or link, s per request."""
    if contiguous and not convex(p, assignment, backward):
        return np.inf
    d_count = len(p.boundary_s)
    device = np.zeros(d_count)
    link = np.zeros((d_count, d_count))
    for i in range(len(assignment)):
        device[assignment[i]] += p.seconds[i, assignment[i]]
    reached = np.full(d_count, -1, dtype=np.int64)
    for t in range(len(p.tensor_producer)):
        source = assignment[p.tensor_producer[t]]
        size = p.transfer_size[t]
        sent = False
        for e in range(p.consumer_offsets[t], p.consumer_offsets[t + 1]):
            d = assignment[p.consumers[e]]
            if d == source or reached[d] == t:
                continue
            reached[d] = t
            device[d] += p.boundary_s[d]
            if not staged:
                link[source, d] += p.link_latency_s[source, d] + size * p.link_s_per_byte[source, d]
                continue
            if d != 0:
                device[d] += p.link_latency_s[0, d] + size * p.link_s_per_byte[0, d]
            if source != 0 and not sent:
                sent = True
                device[source] += p.link_latency_s[source, 0] + size * p.link_s_per_byte[source, 0]
    load = 0.0
    for d in range(d_count):
        load = max(load, device[d] / p.streams[d])
        for other in range(d_count):
            load = max(load, link[d, other])
    return load


@njit(cache=True, nogil=True)
def sequential_schedule(p: ProblemArrays, assignment: Ints, s: State) -> float:
    """Record one request run op by op, each tensor moved before its first reader, into ``s``."""
    n, d_count = len(assignment), len(p.boundary_s)
    there = np.zeros((len(p.tensor_producer), d_count), dtype=np.bool_)
    s.counts[:] = 0
    now = 0.0
    for i in range(n):
        d = assignment[i]
        for j in range(p.input_offsets[i], p.input_offsets[i + 1]):
            t = p.inputs[j]
            source = assignment[p.tensor_producer[t]]
            if source == d or there[t, d]:
                continue
            there[t, d] = True
            k = s.counts[TRANSFERS]
            s.moved[k, 0], s.moved[k, 1], s.moved[k, 2], s.moved[k, 3] = t, source, d, -1
            s.moved_s[k, 0] = now
            now += p.link_latency_s[source, d] + p.transfer_size[t] * p.link_s_per_byte[source, d]
            s.moved_s[k, 1] = now
            s.counts[TRANSFERS] += 1
            now += p.boundary_s[d]
        s.start_s[i] = now
        now += p.seconds[i, d]
        s.end_s[i] = now
    return now
