"""Numba kernels of list scheduling: ranks, optimistic costs, and two ways to pick what is next.

Arrays: ``N`` ops in topological order, ``T`` tensors, ``D`` devices, ``U`` units.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from numba import njit

from situs.graph.arrays import Bools, Floats, Ints


class Arrays(NamedTuple):
    """A problem as flat arrays, in the form that the kernels take."""

    op_tensors: Ints
    offsets: Ints
    readers: Ints
    in_offsets: Ints
    in_tensors: Ints
    producer: Ints
    units: Ints
    unit_allowed: Bools
    unit_bytes: Floats
    seconds: Floats
    size: Floats
    latency_s: Floats
    per_byte_s: Floats


@njit(cache=True, nogil=True)
def upward_rank(
    op_tensors: Ints, offsets: Ints, readers: Ints, mean_s: Floats, tensor_s: Floats
) -> Floats:
    """Longest way from the start of each op to the end, by mean costs."""
    n = len(mean_s)
    rank = np.zeros(n)
    for i in range(n - 1, -1, -1):
        best = 0.0
        for t in range(op_tensors[i], op_tensors[i + 1]):
            for e in range(offsets[t], offsets[t + 1]):
                best = max(best, tensor_s[t] + rank[readers[e]])
        rank[i] = mean_s[i] + best
    return rank


@njit(cache=True, nogil=True)
def downward_rank(
    op_tensors: Ints, offsets: Ints, readers: Ints, mean_s: Floats, tensor_s: Floats
) -> Floats:
    """Longest way from the beginning to the start of each op, by mean costs."""
    n = len(mean_s)
    rank = np.zeros(n)
    for i in range(n):
        for t in range(op_tensors[i], op_tensors[i + 1]):
            for e in range(offsets[t], offsets[t + 1]):
                reached = rank[i] + mean_s[i] + tensor_s[t]
                rank[readers[e]] = max(rank[readers[e]], reached)
    return rank


@njit(cache=True, nogil=True)
def optimistic_costs(
    op_tensors: Ints, offsets: Ints, readers: Ints, seconds: Floats, tensor_s: Floats
) -> Floats:
    """``[N, D]`` shortest way from the end of each op on each device to the end of the graph."""
    n, d = seconds.shape
    table = np.zeros((n, d))
    for i in range(n - 1, -1, -1):
        for t in range(op_tensors[i], op_tensors[i + 1]):
            for e in range(offsets[t], offsets[t + 1]):
                j = readers[e]
                cheapest = np.inf
                for q in range(d):
                    cheapest = min(cheapest, table[j, q] + seconds[j, q])
                for p in range(d):
                    stay = table[j, p] + seconds[j, p]
                    table[i, p] = max(table[i, p], min(stay, cheapest + tensor_s[t]))
    return table


@njit(cache=True, nogil=True)
def _start(
    i: int,
    d: int,
    x: Arrays,
    device: Ints,
    finish: Floats,
    arrival: Floats,
    link_free: Floats,
    shared: bool,
) -> float:
    """Earliest moment at which all inputs of op ``i`` are on device ``d``."""
    ready = 0.0
    for e in range(x.in_offsets[i], x.in_offsets[i + 1]):
        t = x.in_tensors[e]
        p = x.producer[t]
        a = device[p]
        if a == d:
            ready = max(ready, finish[p])
        elif arrival[t, d] < np.inf:
            ready = max(ready, arrival[t, d])
        else:
            begin = max(finish[p], link_free[a, d]) if shared else finish[p]
            ready = max(ready, begin + x.latency_s[a, d] + x.size[t] * x.per_byte_s[a, d])
    return ready


@njit(cache=True, nogil=True)
def _send(
    i: int,
    d: int,
    x: Arrays,
    device: Ints,
    finish: Floats,
    arrival: Floats,
    link_free: Floats,
    shared: bool,
) -> float:
    """Book the transfers that op ``i`` on device ``d`` needs; when the last one arrives."""
    ready = 0.0
    for e in range(x.in_offsets[i], x.in_offsets[i + 1]):
        t = x.in_tensors[e]
        p = x.producer[t]
        a = device[p]
        if a == d:
            ready = max(ready, finish[p])
            continue
        if arrival[t, d] == np.inf:
            begin = max(finish[p], link_free[a, d]) if shared else finish[p]
            arrival[t, d] = begin + x.latency_s[a, d] + x.size[t] * x.per_byte_s[a, d]
            link_free[a, d] = arrival[t, d]
        ready = max(ready, arrival[t, d])
    return ready


@njit(cache=True, nogil=True)
def _gap(begin: Floats, end: Floats, count: int, ready: float, length: float) -> tuple[float, int]:
    """Earliest start >= ``ready`` on a device whose busy spans are sorted, and its position."""
    k = int(np.searchsorted(end[:count], ready, side="right"))
    start = ready
    while k < count:
        if start + length <= begin[k]:
            return start, k
        start = max(start, end[k])
        k += 1
    return start, count


@njit(cache=True, nogil=True)
def schedule_by_priority(
    priority: Floats,
    bonus: Floats,
    x: Arrays,
    memory_bytes: Floats,
    shared: bool,
    insertion: bool,
) -> Ints:
    """Ready op of highest ``priority`` first, on the device of least finish + ``bonus[N, D]``.

    The first op of a unit chooses for the whole unit; a device without room is not a choice while
    another has room.
    """
    n, devices = x.seconds.shape
    device = np.full(n, -1, dtype=np.int32)
    unit_device = np.full(len(x.unit_bytes), -1, dtype=np.int32)
    free = memory_bytes.copy()
    finish = np.zeros(n)
    arrival = np.full((len(x.producer), devices), np.inf)
    link_free = np.zeros((devices, devices))
    begins = np.zeros((devices, n))
    ends = np.zeros((devices, n))
    counts = np.zeros(devices, dtype=np.int64)
    waiting = np.zeros(n, dtype=np.int64)
    for i in range(n):
        waiting[i] = x.in_offsets[i + 1] - x.in_offsets[i]
    heap = [(0.0, np.int64(0))]
    heap.pop()
    for i in range(n):
        if waiting[i] == 0:
            heapq.heappush(heap, (-priority[i], np.int64(i)))
    while len(heap) > 0:
        _, popped = heapq.heappop(heap)
        i = int(popped)
        unit = x.units[i]
        chosen = int(unit_device[unit])
        if chosen < 0:
            roomy = False
            for d in range(devices):
                if x.unit_allowed[unit, d] and free[d] >= x.unit_bytes[unit]:
                    roomy = True
            best = np.inf
            for d in range(devices):
                if not x.unit_allowed[unit, d] or (roomy and free[d] < x.unit_bytes[unit]):
                    continue
                ready = _start(
                    i,
                    d,
                    x,
                    device,
                    finish,
                    arrival,
                    link_free,
                    shared,
                )
                if insertion:
                    ready, _ = _gap(begins[d], ends[d], int(counts[d]), ready, x.seconds[i, d])
                elif counts[d]:
                    ready = max(ready, ends[d, counts[d] - 1])
                score = ready + x.seconds[i, d] + bonus[i, d]
                if chosen < 0 or score < best:
                    best, chosen = score, d
            unit_device[unit] = chosen
            free[chosen] -= x.unit_bytes[unit]
        d = chosen
        ready = _send(
            i,
            d,
            x,
            device,
            finish,
            arrival,
            link_free,
            shared,
        )
        device[i] = d
        at = int(counts[d])
        if insertion:
            ready, at = _gap(begins[d], ends[d], int(counts[d]), ready, x.seconds[i, d])
        elif counts[d]:
            ready = max(ready, ends[d, counts[d] - 1])
        finish[i] = ready + x.seconds[i, d]
        for k in range(counts[d], at, -1):
            begins[d, k], ends[d, k] = begins[d, k - 1], ends[d, k - 1]
        begins[d, at], ends[d, at] = ready, finish[i]
        counts[d] += 1
        for t in range(x.op_tensors[i], x.op_tensors[i + 1]):
            for e in range(x.offsets[t], x.offsets[t + 1]):
                j = np.int64(x.readers[e])
                waiting[j] -= 1
                if waiting[j] == 0:
                    heapq.heappush(heap, (-priority[j], j))
    return device


@njit(cache=True, nogil=True)
def schedule_earliest(
    level: Floats,
    favourite: Ints,
    x: Arrays,
    memory_bytes: Floats,
    shared: bool,
) -> Ints:
    """The ready (op, device) pair that can start first; ties by higher ``level``.

    ``favourite[i]`` is the one child that op ``i`` wants on its own device, or -1: the child waits
    there as long as it starts no later than it could finish elsewhere.
    Starts only move later, so that a heap of lower bounds, renewed when popped, finds the first.
    """
    n, devices = x.seconds.shape
    device = np.full(n, -1, dtype=np.int32)
    unit_device = np.full(len(x.unit_bytes), -1, dtype=np.int32)
    free = memory_bytes.copy()
    finish = np.zeros(n)
    arrival = np.full((len(x.producer), devices), np.inf)
    link_free = np.zeros((devices, devices))
    busy = np.zeros(devices)
    parent = np.full(n, -1, dtype=np.int32)
    for i in range(n):
        if favourite[i] >= 0:
            parent[favourite[i]] = i
    waiting = np.zeros(n, dtype=np.int64)
    heap = [(0.0, 0.0, np.int64(0), np.int64(0))]
    heap.pop()
    for i in range(n):
        waiting[i] = x.in_offsets[i + 1] - x.in_offsets[i]
        if waiting[i] == 0:
            heapq.heappush(heap, (0.0, -level[i], np.int64(i), np.int64(-1)))
    while len(heap) > 0:
        key, tie, popped, known = heapq.heappop(heap)
        i = int(popped)
        if device[i] >= 0:
            continue
        unit = x.units[i]
        roomy = False
        for d in range(devices):
            if x.unit_allowed[unit, d] and free[d] >= x.unit_bytes[unit]:
                roomy = True
        chosen, best, best_end = -1, np.inf, np.inf
        home = int(device[parent[i]]) if parent[i] >= 0 else -1
        home_start = np.inf
        for d in range(devices):
            if unit_device[unit] >= 0:
                if d != unit_device[unit]:
                    continue
            elif not x.unit_allowed[unit, d] or (roomy and free[d] < x.unit_bytes[unit]):
                continue
            start = max(
                busy[d],
                _start(
                    i,
                    d,
                    x,
                    device,
                    finish,
                    arrival,
                    link_free,
                    shared,
                ),
            )
            if d == home:
                home_start = start
            end = start + x.seconds[i, d]
            if chosen < 0 or start < best or (start == best and end < best_end):
                chosen, best, best_end = d, start, end
        if home_start < np.inf and home_start <= best_end:
            chosen, best = home, home_start
        if known < 0 or best > key:
            heapq.heappush(heap, (best, tie, np.int64(i), np.int64(chosen)))
            continue
        d = chosen
        if unit_device[unit] < 0:
            unit_device[unit] = d
            free[d] -= x.unit_bytes[unit]
        ready = _send(
            i,
            d,
            x,
            device,
            finish,
            arrival,
            link_free,
            shared,
        )
        device[i] = d
        finish[i] = max(ready, busy[d]) + x.seconds[i, d]
        busy[d] = finish[i]
        for t in range(x.op_tensors[i], x.op_tensors[i + 1]):
            for e in range(x.offsets[t], x.offsets[t + 1]):
                j = np.int64(x.readers[e])
                waiting[j] -= 1
                if waiting[j] == 0:
                    heapq.heappush(heap, (float(finish[i]), float(-level[j]), j, np.int64(-1)))
    return device
