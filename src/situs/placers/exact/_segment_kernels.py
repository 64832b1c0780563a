"""The dynamic programme over consecutive segments of one order."""

from __future__ import annotations

import numpy as np
from numba import njit

from situs.graph.arrays import Floats, Longs


@njit(cache=True, nogil=True)
def segment_split(
    seconds: Floats,
    barred: Longs,
    held_bytes: Floats,
    base_s: Floats,
    room_bytes: Floats,
    crossing: Floats,
    from_fixed: Floats,
    to_fixed: Floats,
    fixed: int,
    latency_s: Floats,
    per_byte_s: Floats,
    boundary_s: Floats,
    pipeline: bool,
) -> tuple[Floats, Longs]:
    """Best value and parent of ``(nodes placed, devices used, last device)``.

    Args:
        seconds: ``[V + 1, D]`` prefix sums of node times, 0 where a node may not run.
        barred: ``[V + 1, D]`` prefix counts of nodes that may not run there.
        held_bytes: ``[V + 1]`` prefix sums of node bytes.
        base_s: ``[D]`` load that is there from the start, s.
        room_bytes: ``[D]`` memory.
        crossing: ``[2, V + 1, V + 1]`` bytes and number of tensors that enter nodes ``i..j``.
        from_fixed: ``[2, V + 1, V + 1]`` those of them that the fixed unit makes.
        to_fixed: ``[2, V + 1]`` prefix sums of what nodes send to the fixed unit.
        fixed: Device of the fixed unit; -1 = none.
        latency_s: ``[D, D]``.
        per_byte_s: ``[D, D]``.
        boundary_s: ``[D]``.
        pipeline: Whether the value is the largest load; else the sum.
    """
    nodes, devices = seconds.shape[0] - 1, seconds.shape[1]
    masks = 1 << devices
    value = np.full((nodes + 1, masks, devices), np.inf)
    parent = np.full((nodes + 1, masks, devices), -1, dtype=np.int64)
    start = base_s.max() if pipeline else base_s.sum()
    for i in range(nodes):
        for mask in range(masks):
            for p in range(devices):
                if i == 0 and (mask > 0 or p > 0):
                    break
                before = start if i == 0 else value[i, mask, p]
                if before == np.inf:
                    continue
                for d in range(devices):
                    if mask & (1 << d):
                        continue
                    bit = mask | (1 << d)
                    for j in range(i + 1, nodes + 1):
                        if held_bytes[j] - held_bytes[i] > room_bytes[d]:
                            break
                        work = seconds[j, d] - seconds[i, d]
                        if barred[j, d] > barred[i, d]:
                            break
                        way = go = back = 0.0
                        entries = sent = 0.0
                        if i > 0:
                            entries = crossing[1, i, j]
                            way = entries * latency_s[p, d] + crossing[0, i, j] * per_byte_s[p, d]
                        if fixed >= 0 and fixed != d:
                            made = from_fixed[1, i, j]
                            entries += made
                            go = made * latency_s[fixed, d]
                            go += from_fixed[0, i, j] * per_byte_s[fixed, d]
                            sent = to_fixed[1, j] - to_fixed[1, i]
                            back = sent * latency_s[d, fixed]
                            back += (to_fixed[0, j] - to_fixed[0, i]) * per_byte_s[d, fixed]
                        if pipeline:
                            if p == fixed and i > 0:
                                go += way
                            load = work + base_s[d] + entries * boundary_s[d]
                            total = max(max(before, load), max(way, max(go, back)))
                        else:
                            total = before + work + way + go + back
                            total += entries * boundary_s[d]
                            if fixed >= 0:
                                total += sent * boundary_s[fixed]
                        if total < value[j, bit, d]:
                            value[j, bit, d] = total
                            parent[j, bit, d] = (i * masks + mask) * devices + p
    return value, parent
