"""Kernel of the ``sequential`` model."""

from __future__ import annotations

import numpy as np
from numba import njit

from situs.graph.arrays import Floats, Ints
from situs.simulate.tables import Tables


@njit(cache=True)
def broken(assignment: Ints, seconds: Floats, leader: Ints) -> bool:
    """Whether an op is on a device that it must not use, or away from its unit."""
    for i in range(len(assignment)):
        d = assignment[i]
        if d != assignment[leader[i]] or seconds[i, d] == np.inf:
            return True
    return False


@njit(cache=True, nogil=True)
def sequential(assignments: Ints, tables: Tables, out: Floats) -> None:
    """Write the latency of each of ``int32[B, N]`` assignments to ``out[B]``, s."""
    seconds, leader, _, producer, offsets, consumers, _, size, latency, per_byte, boundary, _ = (
        tables
    )
    mark = np.empty(len(boundary), dtype=np.int64)
    for b in range(len(assignments)):
        a = assignments[b]
        if broken(a, seconds, leader):
            out[b] = np.inf
            continue
        total = 0.0
        for i in range(len(a)):
            total += seconds[i, a[i]]
        mark[:] = -1
        for t in range(len(producer)):
            source = a[producer[t]]
            for e in range(offsets[t], offsets[t + 1]):
                target = a[consumers[e]]
                if target != source and mark[target] != t:
                    mark[target] = t
                    total += (
                        latency[source, target]
                        + size[t] * per_byte[source, target]
                        + boundary[target]
                    )
        out[b] = total
