"""Kernel of the ``pipeline`` model."""

from __future__ import annotations

import numpy as np
from numba import njit

from situs.graph.arrays import Bools, Floats, Ints, Longs
from situs.simulate._sequential_kernels import broken
from situs.simulate.tables import Tables


@njit(cache=True)
def pipeline_loads(
    a: Ints, tables: Tables, staged: bool, device_s: Floats, link_s: Floats, mark: Longs
) -> float:
    """Fill the loads ``device_s[D]`` and ``link_s[D, D]`` of one assignment; the largest, s."""
    seconds, _, _, producer, offsets, consumers, _, size, latency, per_byte, boundary, streams = (
        tables
    )
    device_s[:] = 0.0
    link_s[:] = 0.0
    mark[:] = -1
    for i in range(len(a)):
        device_s[a[i]] += seconds[i, a[i]]
    for t in range(len(producer)):
        source = a[producer[t]]
        out = False
        for e in range(offsets[t], offsets[t + 1]):
            target = a[consumers[e]]
            if target == source or mark[target] == t:
                continue
            mark[target] = t
            if not staged:
                device_s[target] += boundary[target]
                link_s[source, target] += (
                    latency[source, target] + size[t] * per_byte[source, target]
                )
                continue
            if source != 0 and not out:
                out = True
                device_s[source] += latency[source, 0] + size[t] * per_byte[source, 0]
            if target != 0:
                device_s[target] += (
                    boundary[target] + latency[0, target] + size[t] * per_byte[0, target]
                )
    most = 0.0
    for d in range(len(device_s)):
        device_s[d] /= streams[d]
        most = max(most, device_s[d])
        for other in range(len(device_s)):
            most = max(most, link_s[d, other])
    return most


@njit(cache=True)
def convex(a: Ints, part: Bools, tables: Tables, left: Longs) -> bool:
    """Whether each device's ops of each part form a convex set.

    ``left[i]`` is the bit set of those sets that some path to op ``i`` has begun in and left; a
    word of 62 sets at a time.
    """
    producer, offsets, consumers = tables[3], tables[4], tables[5]
    sets = 2 * len(tables[10])
    for word in range(0, sets, 62):
        left[:] = 0
        for t in range(len(producer)):
            u = producer[t]
            own = 2 * a[u] + part[u]
            if word <= own < word + 62 and (left[u] >> (own - word)) & 1:
                return False
            for e in range(offsets[t], offsets[t + 1]):
                v = consumers[e]
                left[v] |= left[u]
                if 2 * a[v] + part[v] != own and word <= own < word + 62:
                    left[v] |= np.int64(1) << (own - word)
        for i in range(len(a)):
            own = 2 * a[i] + part[i]
            if word <= own < word + 62 and (left[i] >> (own - word)) & 1:
                return False
    return True


@njit(cache=True, nogil=True)
def pipeline(
    assignments: Ints, tables: Tables, staged: bool, contiguous: bool, part: Bools, out: Floats
) -> None:
    """Write the seconds per request of ``int32[B, N]`` assignments to ``out[B]``."""
    n, d = tables[0].shape
    device_s = np.empty(d)
    link_s = np.empty((d, d))
    mark = np.empty(d, dtype=np.int64)
    left = np.empty(n if contiguous else 0, dtype=np.int64)
    for b in range(len(assignments)):
        a = assignments[b]
        if broken(a, tables[0], tables[1]) or (contiguous and not convex(a, part, tables, left)):
            out[b] = np.inf
        else:
            out[b] = pipeline_loads(a, tables, staged, device_s, link_s, mark)
