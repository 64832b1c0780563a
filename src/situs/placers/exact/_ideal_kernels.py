"""Numba kernels of the contiguous-split dynamic programme over ideals (down-sets)."""

from __future__ import annotations

import numpy as np
from numba import njit

from situs.graph.arrays import Bools, Floats, Ints, Longs


@njit(cache=True, nogil=True)
def list_ideals(
    pred_offsets: Ints, preds: Ints, capacity: int, words: int
) -> tuple[np.ndarray, int]:
    """All ideals of a DAG numbered topologically, as bit sets ``uint64[capacity, words]``.

    An ideal's largest member has no successor in it, so every ideal but the empty one has exactly
    one parent: itself without its largest member. Each is listed once, parents first. The count
    returned is ``capacity + 1`` when there are more.
    """
    n = len(pred_offsets) - 1
    ideals = np.zeros((capacity, words), dtype=np.uint64)
    last = np.full(capacity, -1, dtype=np.int32)
    count = 1
    head = 0
    while head < count:
        for v in range(last[head] + 1, n):
            inside = True
            for e in range(pred_offsets[v], pred_offsets[v + 1]):
                u = preds[e]
                if not (ideals[head, u >> 6] >> np.uint64(u & 63)) & np.uint64(1):
                    inside = False
                    break
            if inside:
                if count == capacity:
                    return ideals, capacity + 1
                for w in range(words):
                    ideals[count, w] = ideals[head, w]
                ideals[count, v >> 6] |= np.uint64(1) << np.uint64(v & 63)
                last[count] = v
                count += 1
        head += 1
    return ideals, count


@njit(cache=True, nogil=True)
def tensor_states(
    ideals: np.ndarray, producer: Ints, consumer_offsets: Ints, consumers: Ints
) -> tuple[np.ndarray, np.ndarray]:
    """Per tensor and ideal: whether the producer is inside (-1: always), how many consumers are."""
    tensors, count = len(producer), len(ideals)
    made = np.zeros((tensors, count), dtype=np.uint8)
    read = np.zeros((tensors, count), dtype=np.uint16)
    for t in range(tensors):
        p = producer[t]
        if p < 0:
            made[t] = 1
        for i in range(count if p >= 0 else 0):
            made[t, i] = (ideals[i, p >> 6] >> np.uint64(p & 63)) & np.uint64(1)
        for e in range(consumer_offsets[t], consumer_offsets[t + 1]):
            c = consumers[e]
            for i in range(count):
                read[t, i] += (ideals[i, c >> 6] >> np.uint64(c & 63)) & np.uint64(1)
    return made, read


@njit(cache=True, nogil=True)
def stage_loads(
    loads: Floats,
    lo: int,
    hi: int,
    base_s: float,
    work: Floats,
    cross: Floats,
    crossing: Ints,
    made_i: np.ndarray,
    read_i: np.ndarray,
    made: np.ndarray,
    read: np.ndarray,
    degree: Ints,
    out_s: Floats,
    in_s: Floats,
) -> None:
    """Load of the stage between ideal ``i`` and each ideal ``lo <= j < hi``.

    Only tensors that cross the border of ``i`` need a look: any other one counts exactly when it
    crosses the border of ``j``, which ``cross`` holds.
    """
    for j in range(lo, hi):
        loads[j] = work[j] - base_s + cross[j]
    for t in crossing:
        c0, p0, d = read_i[t], made_i[t], degree[t]
        w_out, w_in = out_s[t], in_s[t]
        if p0:
            for j in range(lo, hi):
                c1 = read[t, j]
                loads[j] += (w_in if c1 > c0 else 0.0) - (w_out if c1 < d else 0.0)
        else:
            for j in range(lo, hi):
                c1 = read[t, j]
                if made[t, j]:
                    loads[j] += w_out - (w_out if c1 < d else 0.0)
                else:
                    loads[j] += (w_in if c1 > c0 else 0.0) - w_in


@njit(cache=True, nogil=True)
def _relax(
    i: int,
    lo: int,
    hi: int,
    loads: Floats,
    value: Floats,
    parent: Longs,
    upper_s: float,
    stride: int,
    keep: Bools,
    ideals: np.ndarray,
    stage_bytes: Floats,
    limit_bytes: float,
    blocked: Ints,
    code: int,
) -> None:
    """Push the kept states of ideal ``i`` one stage further, onto one more device of a class."""
    words = ideals.shape[1]
    for j in range(lo, hi):
        load = loads[j]
        if load >= upper_s or stage_bytes[j] - stage_bytes[i] > limit_bytes:
            continue
        if j == i or blocked[j] != blocked[i]:
            continue
        subset = True
        for w in range(words):
            if ideals[i, w] & ~ideals[j, w]:
                subset = False
                break
        if not subset:
            continue
        for s in range(len(keep)):
            if keep[s]:
                reached = max(value[i, s], load)
                if reached < value[j, s + stride]:
                    value[j, s + stride] = reached
                    parent[j, s + stride] = code


@njit(cache=True, nogil=True)
def split(
    ideals: np.ndarray,
    visit: Ints,
    made: np.ndarray,
    read: np.ndarray,
    degree: Ints,
    work: Floats,
    cross: Floats,
    out_s: Floats,
    in_s: Floats,
    stage_bytes: Floats,
    limit_bytes: Floats,
    blocked: Ints,
    sizes: Ints,
    strides: Ints,
    window: Floats,
    upper_s: float,
) -> tuple[Floats, Longs]:
    """Smallest bottleneck of a chain of ideals, for every ideal and multiset of used devices.

    Axes: ``I`` ideals sorted by the work of class 0, ``C`` device classes, ``T`` tensors, ``S``
    states (how many devices of each class are used, mixed radix). ``visit`` lists ideals by size.
    ``window[c]`` bounds how much class-0 work a stage of class ``c`` can hold per second of load.
    Returns values ``float64[I, S]`` (``upper_s`` where nothing better was found) and, as
    ``parent ideal * C + class``, how each was reached.
    """
    count, classes = len(ideals), len(sizes)
    states = 1
    for c in range(classes):
        states *= sizes[c]
    value = np.full((count, states), upper_s)
    parent = np.full((count, states), -1, dtype=np.int64)
    value[visit[0], 0] = 0.0
    full = visit[count - 1]
    loads = np.empty(count)
    keep = np.zeros(states, dtype=np.bool_)
    crossing = np.empty(len(degree), dtype=np.int32)
    for i in visit:
        # Enough devices must be left to do what lies above this ideal within the incumbent.
        rest = work[0, full] - work[0, i]
        any_open = False
        for s in range(states):
            keep[s] = False
            if value[i, s] >= upper_s:
                continue
            capacity = 0.0
            for c in range(classes):
                left = sizes[c] - 1 - (s // strides[c]) % sizes[c]
                if left:
                    capacity += left * window[c] * upper_s
            keep[s] = rest <= capacity * (1 + 1e-12)
            any_open = any_open or keep[s]
        if not any_open:
            continue
        m = 0
        for t in range(len(degree)):
            inside = int(read[t, i]) + int(made[t, i])
            if 0 < inside < degree[t] + 1:
                crossing[m] = t
                m += 1
        for c in range(classes):
            usable = keep.copy()
            some = False
            for s in range(states):
                if usable[s] and (s // strides[c]) % sizes[c] == sizes[c] - 1:
                    usable[s] = False
                some = some or usable[s]
            if not some:
                continue
            lo = np.searchsorted(work[0], work[0, i] * (1 - 1e-12))
            hi = count
            if np.isfinite(window[c]):
                reach = (work[0, i] + upper_s * window[c]) * (1 + 1e-12)
                hi = np.searchsorted(work[0], reach, side="right")
            stage_loads(
                loads, lo, hi, work[c, i], work[c], cross[c], crossing[:m], made[:, i], read[:, i],
                made, read, degree, out_s[c], in_s[c],
            )  # fmt: skip
            _relax(
                i, lo, hi, loads, value, parent, upper_s, strides[c], usable, ideals, stage_bytes,
                limit_bytes[c], blocked[c], i * classes + c,
            )  # fmt: skip
        for s in range(states):
            if value[full, s] < upper_s:
                upper_s = value[full, s]
    return value, parent
