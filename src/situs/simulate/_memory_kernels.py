"""Peak bytes per device: constants once per device, and tensors while they are needed.

A tensor occupies a half-open interval of time on each device that holds it; memory that is freed
at an instant is there for what begins at that instant.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from situs.graph.arrays import Floats, Ints
from situs.simulate._dataflow_kernels import TRANSFERS, State
from situs.simulate.arrays import ProblemArrays


@njit(cache=True, nogil=True)
def constant_bytes(p: ProblemArrays, assignment: Ints) -> Floats:
    """``float64[D]`` constants that each device holds, B."""
    held = np.zeros(len(p.boundary_s))
    seen = np.full(len(held), -1, dtype=np.int64)
    for c in range(len(p.constant_bytes)):
        for r in range(p.reader_offsets[c], p.reader_offsets[c + 1]):
            d = assignment[p.readers[r]]
            if seen[d] != c:
                seen[d] = c
                held[d] += p.constant_bytes[c]
    return held


@njit(cache=True, nogil=True)
def _add_peaks(
    held: Floats, device: Ints, size: Floats, start: Floats, end: Floats, count: int
) -> None:
    """Add the largest sum of the intervals' sizes on each device to ``held``."""
    times = np.empty(2 * count)
    # Ends stand before starts, and the sort is stable: at one instant memory is freed first.
    times[:count] = end[:count]
    times[count:] = start[:count]
    live = np.zeros(len(held))
    peak = np.zeros(len(held))
    for k in np.argsort(times, kind="mergesort"):
        if k < count:
            if end[k] > start[k]:
                live[device[k]] -= size[k]
        else:
            j = k - count
            if end[j] > start[j]:
                live[device[j]] += size[j]
                peak[device[j]] = max(peak[device[j]], live[device[j]])
    held += peak


@njit(cache=True, nogil=True)
def sequential_peak(p: ProblemArrays, assignment: Ints) -> Floats:
    """``float64[D]`` peak when ops run one by one in their order, B.

    Op ``i`` runs from ``i`` to ``i + 1``. A tensor is moved just before its first reader on the
    other device; its source keeps it until then, and each device until its last reader there.
    """
    held = constant_bytes(p, assignment)
    room = len(p.tensor_producer) + len(p.consumers)
    device = np.empty(room, dtype=np.int32)
    size, start, end = np.empty(room), np.empty(room), np.empty(room)
    copy = np.empty(len(held), dtype=np.int64)
    count = 0
    for t in range(len(p.tensor_producer)):
        i = p.tensor_producer[t]
        own = count
        device[own], size[own] = assignment[i], p.tensor_bytes[t]
        start[own], end[own] = i, i + 1
        count += 1
        copy[:] = -1
        copy[assignment[i]] = own
        for e in range(p.consumer_offsets[t], p.consumer_offsets[t + 1]):
            v = p.consumers[e]
            k = copy[assignment[v]]
            if k < 0:
                k = copy[assignment[v]] = count
                device[k], size[k], start[k] = assignment[v], p.tensor_bytes[t], v
                end[own] = max(end[own], v)
                count += 1
            end[k] = v + 1
    _add_peaks(held, device, size, start, end, count)
    return held


@njit(cache=True, nogil=True)
def dataflow_peak(p: ProblemArrays, assignment: Ints, s: State) -> Floats:
    """``float64[D]`` peak of a recorded schedule, B.

    A tensor is held from the start of its producer until its producer, its readers there and its
    transfers have ended; a copy from the start of its transfer until its readers there have ended.
    """
    held = constant_bytes(p, assignment)
    tensors, moves = len(p.tensor_producer), s.counts[TRANSFERS]
    room = tensors + moves
    device = np.empty(room, dtype=np.int32)
    size, start, end = np.empty(room), np.empty(room), np.empty(room)
    for t in range(tensors):
        i = p.tensor_producer[t]
        device[t], size[t] = assignment[i], p.tensor_bytes[t]
        start[t], end[t] = s.start_s[i], s.end_s[i]
        for e in range(p.consumer_offsets[t], p.consumer_offsets[t + 1]):
            v = p.consumers[e]
            if assignment[v] == assignment[i]:
                end[t] = max(end[t], s.end_s[v])
    for m in range(moves):
        k = tensors + m
        t, d, reader = s.moved[m, 0], s.moved[m, 2], s.moved[m, 3]
        device[k], size[k] = d, p.tensor_bytes[t]
        start[k], end[k] = s.moved_s[m, 0], s.moved_s[m, 1]
        end[t] = max(end[t], s.moved_s[m, 1])
        for e in range(p.consumer_offsets[t], p.consumer_offsets[t + 1]):
            v = p.consumers[e]
            if v == reader or (reader < 0 and assignment[v] == d):
                end[k] = max(end[k], s.end_s[v])
    _add_peaks(held, device, size, start, end, room)
    return held


@njit(cache=True, nogil=True)
def pipeline_peak(p: ProblemArrays, assignment: Ints) -> Floats:
    """``float64[D]`` constants and all tensors that a device writes or takes in, B."""
    held = constant_bytes(p, assignment)
    seen = np.full(len(held), -1, dtype=np.int64)
    for t in range(len(p.tensor_producer)):
        source = assignment[p.tensor_producer[t]]
        seen[source] = t
        held[source] += p.tensor_bytes[t]
        for e in range(p.consumer_offsets[t], p.consumer_offsets[t + 1]):
            d = assignment[p.consumers[e]]
            if seen[d] != t:
                seen[d] = t
                held[d] += p.tensor_bytes[t]
    return held


@njit(cache=True, nogil=True)
def offload_peak(p: ProblemArrays, assignment: Ints, calls: int) -> Floats:
    """``float64[D]`` as ``pipeline_peak``; each call shows the sum over its accelerator, B."""
    held = pipeline_peak(p, assignment)
    for first in range(1, len(held), calls):
        held[first : first + calls] = held[first : first + calls].sum()
    return held
