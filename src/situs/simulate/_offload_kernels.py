"""Kernel of the ``offload`` model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from situs.graph.arrays import Floats, Ints, Longs
from situs.simulate.arrays import ProblemArrays


class Buffers(NamedTuple):
    """What one run needs; axes: ``N`` ops, ``D`` devices."""

    took: Floats
    ready: Floats
    mark: Longs
    waits: Longs
    base: Longs
    members: Ints
    missing: Ints
    start: Floats
    queue: Longs


@njit(cache=True, nogil=True)
def new_buffers(n: int, d: int) -> Buffers:
    """Buffers for ``n`` ops and ``d`` devices."""
    return Buffers(
        np.empty(d),
        np.empty(d),
        np.empty(d, dtype=np.int64),
        np.empty(d, dtype=np.int64),
        np.empty(d + 1, dtype=np.int64),
        np.empty(n, dtype=np.int32),
        np.empty(n, dtype=np.int32),
        np.empty(n),
        np.empty(n + d, dtype=np.int64),
    )


@njit(cache=True, nogil=True)
def offload(p: ProblemArrays, a: Ints, calls: int, buffers: Buffers) -> float:
    """Latency of one assignment, s; ``inf`` if calls wait for each other."""
    took, ready, mark, waits, base, members, missing, start, queue = buffers
    seconds, op_tensors, producer = p.seconds, p.op_tensors, p.tensor_producer
    offsets, consumers, size = p.consumer_offsets, p.consumers, p.transfer_size
    latency, per_byte, boundary = p.link_latency_s, p.link_s_per_byte, p.boundary_s
    n, d = seconds.shape
    # Queue entries below d are calls, the others host ops; everything enters once.
    ready[:] = 0.0
    took[:] = 0.0
    waits[:] = 0
    mark[:] = -1
    base[:] = 0
    for i in range(n):
        base[a[i] + 1] += 1
        took[a[i]] += seconds[i, a[i]]
        missing[i] = p.input_offsets[i + 1] - p.input_offsets[i]
        start[i] = 0.0
    for k in range(d):
        if base[k + 1] > 0:
            took[k] += boundary[k]
        if k > 0 and (k - 1) % calls:
            waits[k] += 1
    for k in range(d):
        base[k + 1] += base[k]
    for i in range(n - 1, -1, -1):
        base[a[i] + 1] -= 1
        members[base[a[i] + 1]] = i
    # Filling from the back left every offset one device too low.
    for k in range(d):
        base[k] = base[k + 1]
    base[d] = n
    for t in range(len(producer)):
        source = a[producer[t]]
        leaves = False
        for e in range(offsets[t], offsets[t + 1]):
            target = a[consumers[e]]
            if target == source:
                continue
            leaves = True
            if target > 0:
                waits[target] += 1
                if mark[target] != t:
                    mark[target] = t
                    took[target] += latency[0, target] + size[t] * per_byte[0, target]
        if leaves and source > 0:
            took[source] += latency[source, 0] + size[t] * per_byte[source, 0]
    filled = 0
    for k in range(1, d):
        if waits[k] == 0:
            queue[filled] = k
            filled += 1
    for i in range(n):
        if a[i] == 0 and missing[i] == 0:
            queue[filled] = d + i
            filled += 1
    done, makespan, head = 0, 0.0, 0
    while head < filled:
        entry = queue[head]
        head += 1
        first, last = entry - d, entry - d + 1
        if entry < d:
            first, last = base[entry], base[entry + 1]
            finish = ready[entry] + took[entry]
            if entry + 1 < d and entry % calls:
                ready[entry + 1] = max(ready[entry + 1], finish)
                waits[entry + 1] -= 1
                if waits[entry + 1] == 0:
                    queue[filled] = entry + 1
                    filled += 1
        for m in range(first, last):
            i = members[m] if entry < d else m
            if entry >= d:
                finish = start[i] + seconds[i, 0]
            makespan = max(makespan, finish)
            done += 1
            for t in range(op_tensors[i], op_tensors[i + 1]):
                for e in range(offsets[t], offsets[t + 1]):
                    c = consumers[e]
                    target = a[c]
                    if target > 0:
                        if target != a[i]:
                            ready[target] = max(ready[target], finish)
                            waits[target] -= 1
                            if waits[target] == 0:
                                queue[filled] = target
                                filled += 1
                        continue
                    start[c] = max(start[c], finish)
                    missing[c] -= 1
                    if missing[c] == 0:
                        queue[filled] = d + c
                        filled += 1
    return makespan if done == n else np.inf
