"""Numba kernels of the latency programme over ideals: calls as barriers, CPU work between them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from situs.graph.arrays import Floats, Ints, Longs
from situs.placers.exact._ideal_kernels import stage_loads


class Stages(NamedTuple):
    """A stage graph and its ideals as flat arrays. Ideals are sorted by ``stage_bytes``.

    ``group[i]`` counts the cut nodes inside ideal ``i``; ``members`` lists the ideals of each
    group by size.
    """

    sets: np.ndarray
    visit: Ints
    made: np.ndarray
    read: np.ndarray
    degree: Ints
    work: Floats
    cross: Floats
    out_s: Floats
    in_s: Floats
    stage_bytes: Floats
    limit_bytes: float
    blocked: Ints
    pred_offsets: Ints
    preds: Ints
    cpu_s: Floats
    least_s: Floats
    release_s: Floats
    group: Ints
    member_offsets: Ints
    members: Ints


@njit(cache=True, nogil=True)
def _call_loads(x: Stages, i: int, loads: Floats, crossing: Ints) -> tuple[int, int]:
    """Durations of the calls from ideal ``i`` to the ideals ``lo <= j < hi``, all that may fit."""
    m = 0
    for t in range(len(x.degree)):
        inside = int(x.read[t, i]) + int(x.made[t, i])
        if 0 < inside < x.degree[t] + 1:
            crossing[m] = t
            m += 1
    lo = np.searchsorted(x.stage_bytes, x.stage_bytes[i] * (1 - 1e-12))
    hi = len(x.sets)
    if np.isfinite(x.limit_bytes):
        reach = (x.stage_bytes[i] + x.limit_bytes) * (1 + 1e-12)
        hi = np.searchsorted(x.stage_bytes, reach, side="right")
    stage_loads(
        loads, lo, hi, x.work[i], x.work, x.cross, crossing[:m], x.made[:, i], x.read[:, i],
        x.made, x.read, x.degree, x.out_s, x.in_s,
    )  # fmt: skip
    return lo, hi


@njit(cache=True, nogil=True)
def _contains(sets: np.ndarray, j: int, i: int) -> bool:
    missing = np.uint64(0)
    for w in range(sets.shape[1]):
        missing |= sets[i, w] & ~sets[j, w]
    return bool(missing == np.uint64(0))


@njit(cache=True, nogil=True)
def _ends(x: Stages, i: int, weight: Floats, end: Floats) -> None:
    """Earliest end of each node outside ideal ``i`` when all of ``i`` is done at 0."""
    for v in range(len(weight)):
        if (x.sets[i, v >> 6] >> np.uint64(v & 63)) & np.uint64(1):
            end[v] = 0.0
            continue
        begin = 0.0
        for e in range(x.pred_offsets[v], x.pred_offsets[v + 1]):
            begin = max(begin, end[x.preds[e]])
        end[v] = begin + weight[v]


@njit(cache=True, nogil=True)
def _latest(sets: np.ndarray, i: int, j: int, end: Floats) -> float:
    """Largest ``end`` among the nodes of ideal ``j`` outside ideal ``i``."""
    latest = 0.0
    for w in range(sets.shape[1]):
        rest = sets[j, w] & ~sets[i, w]
        v = w * 64
        while rest:
            if rest & np.uint64(1):
                latest = max(latest, end[v])
            rest >>= np.uint64(1)
            v += 1
    return latest


@njit(cache=True, nogil=True)
def least_calls(x: Stages) -> Floats:
    """Least duration of a call that stays inside each group."""
    groups = len(x.member_offsets) - 1
    least = np.full(groups, np.inf)
    loads = np.empty(len(x.sets))
    crossing = np.empty(len(x.degree), dtype=np.int32)
    for i in range(len(x.sets)):
        lo, hi = _call_loads(x, i, loads, crossing)
        g = x.group[i]
        for k in range(x.member_offsets[g], x.member_offsets[g + 1]):
            j = x.members[k]
            shorter = lo <= j < hi and j != i and loads[j] < least[g]
            if shorter and x.blocked[j] == x.blocked[i] and _contains(x.sets, j, i):
                least[g] = loads[j]
    return least


@njit(cache=True, nogil=True)
def group_calls(x: Stages, g: int) -> Floats:
    """Duration ``[m, m]`` of the call between two ideals of a group; inf where there is none."""
    first, last = x.member_offsets[g], x.member_offsets[g + 1]
    m = last - first
    call = np.full((m, m), np.inf)
    loads = np.empty(len(x.sets))
    crossing = np.empty(len(x.degree), dtype=np.int32)
    for a in range(m):
        i = x.members[first + a]
        lo, hi = _call_loads(x, i, loads, crossing)
        for b in range(a + 1, m):
            j = x.members[first + b]
            if lo <= j < hi and x.blocked[j] == x.blocked[i] and _contains(x.sets, j, i):
                call[a, b] = loads[j]
    return call


@njit(cache=True, nogil=True)
def region_bounds(
    sets: np.ndarray,
    pred_masks: np.ndarray,
    cpu_s: Floats,
    least_s: Floats,
    least_call: float,
    call: Floats,
    rounds: int,
    rows: Longs,
) -> Floats:
    """Lower bounds ``[rows, m]`` on the time from ideals of a group to others, with calls inside.

    Each node may end by its CPU run or by the call that suits it best, as if calls could be
    repeated for every node; ``rounds`` of that recursion from below are each a valid bound. Nodes
    are the at most 64 that the group's ideals differ in, as the bits of ``sets`` (``uint64[m]``).
    """
    m, n = len(sets), len(cpu_s)
    one = np.uint64(1)
    bound = np.full((len(rows), m), np.inf)
    end, low, fresh = np.zeros(n), np.zeros(n), np.zeros(n)
    members = np.empty(m * m, dtype=np.uint64)
    inputs = np.empty(m * m, dtype=np.uint64)
    length = np.empty(m * m)
    for r in range(len(rows)):
        done = sets[rows[r]]
        for v in range(n):
            end[v] = low[v] = 0.0
            if not (done >> np.uint64(v)) & one:
                for u in range(v):
                    if (pred_masks[v] >> np.uint64(u)) & one:
                        end[v], low[v] = max(end[v], end[u]), max(low[v], low[u])
                end[v] += cpu_s[v]
                low[v] += least_s[v]
        longest = end.max()
        useful = 0
        for b in range(rows[r], m):
            if done & ~sets[b]:
                continue
            for c in range(b + 1, m):
                if call[b, c] < longest:
                    inside = sets[c] & ~sets[b]
                    needs = np.uint64(0)
                    late = 0.0
                    for v in range(n):
                        if (inside >> np.uint64(v)) & one:
                            needs |= pred_masks[v]
                            late = max(late, end[v])
                    if call[b, c] < late:
                        members[useful], length[useful] = inside, call[b, c]
                        inputs[useful] = needs & sets[b] & ~done
                        useful += 1
        for _ in range(rounds):
            for v in range(n):
                fresh[v] = 0.0
                if not (done >> np.uint64(v)) & one:
                    for u in range(v):
                        if (pred_masks[v] >> np.uint64(u)) & one:
                            fresh[v] = max(fresh[v], low[u])
                    fresh[v] += cpu_s[v]
            for k in range(useful):
                stop = 0.0
                for v in range(n):
                    if (inputs[k] >> np.uint64(v)) & one:
                        stop = max(stop, low[v])
                stop += length[k]
                for v in range(n):
                    if (members[k] >> np.uint64(v)) & one and stop < fresh[v]:
                        fresh[v] = stop
            change = 0.0
            for v in range(n):
                change = max(change, fresh[v] - low[v])
                low[v] = max(low[v], fresh[v])
            if change <= 0.0:
                break
        for b in range(rows[r] + 1, m):
            if not done & ~sets[b]:
                latest = least_call
                for v in range(n):
                    if ((sets[b] & ~done) >> np.uint64(v)) & one:
                        latest = max(latest, low[v])
                bound[r, b] = latest
    return bound


@njit(cache=True, nogil=True)
def barrier_split(
    x: Stages,
    accelerators: int,
    least_call: Floats,
    regions: Floats,
    region_offsets: Longs,
    extra_offsets: Longs,
    extra_target: Longs,
    extra_calls: Longs,
    extra_s: Floats,
    relaxed: bool,
) -> tuple[Floats, Longs, Longs]:
    """Shortest way through the ideals with 0 to ``accelerators`` calls.

    Steps: one call (everything else waits for it); CPU work between two cut nodes; one cut node
    on the CPU; and, if ``relaxed``, work between two cut nodes with one call or more in it, at a
    lower bound: ``regions[region_offsets[g] + a * m + b]`` where there is a table for the group,
    else the larger of its longest path and its least call; plus the ``extra`` steps of an ideal.
    Returns values ``[I, A + 1]``, the ideal before, and the calls of the step (-1 - calls for a
    region step).
    """
    count = len(x.sets)
    value = np.full((count, accelerators + 1), np.inf)
    parent = np.full((count, accelerators + 1), -1, dtype=np.int64)
    calls = np.zeros((count, accelerators + 1), dtype=np.int64)
    value[x.visit[0], 0] = 0.0
    loads = np.empty(count)
    crossing = np.empty(len(x.degree), dtype=np.int32)
    end, low = np.zeros(len(x.cpu_s)), np.zeros(len(x.cpu_s))
    rank = np.empty(count, dtype=np.int64)
    for g in range(len(x.member_offsets) - 1):
        for k in range(x.member_offsets[g], x.member_offsets[g + 1]):
            rank[x.members[k]] = k - x.member_offsets[g]
    last_release = x.release_s.max()
    for i in x.visit:
        if not np.isfinite(value[i].min()):
            continue
        lo, hi = _call_loads(x, i, loads, crossing)
        released = value[i].min() < last_release
        for j in range(lo, hi):
            if j == i or x.blocked[j] != x.blocked[i]:
                continue
            better = False
            for a in range(accelerators):
                better = better or value[i, a] + loads[j] < value[j, a + 1]
            if better and _contains(x.sets, j, i):
                release = _latest(x.sets, i, j, x.release_s) if released else 0.0
                for a in range(accelerators):
                    reached = max(value[i, a], release) + loads[j]
                    if reached < value[j, a + 1]:
                        value[j, a + 1], parent[j, a + 1], calls[j, a + 1] = reached, i, 1
        _ends(x, i, x.cpu_s, end)
        _ends(x, i, x.least_s, low)
        g = x.group[i]
        first, last = x.member_offsets[g], x.member_offsets[g + 1]
        m = last - first
        for k in range(first + rank[i] + 1, last):
            j = x.members[k]
            if not _contains(x.sets, j, i):
                continue
            cpu = _latest(x.sets, i, j, end)
            for a in range(accelerators + 1):
                reached = value[i, a] + cpu
                if reached < value[j, a]:
                    value[j, a], parent[j, a], calls[j, a] = reached, i, 0
            if not relaxed:
                continue
            if region_offsets[g] >= 0:
                bound = regions[region_offsets[g] + rank[i] * m + rank[j]]
            else:
                bound = max(least_call[g], _latest(x.sets, i, j, low))
            if bound < cpu:
                for a in range(accelerators):
                    reached = value[i, a] + bound
                    if reached < value[j, a + 1]:
                        value[j, a + 1], parent[j, a + 1], calls[j, a + 1] = reached, i, -2
        if relaxed:
            for k in range(extra_offsets[i], extra_offsets[i + 1]):
                j, used = extra_target[k], extra_calls[k]
                for a in range(accelerators + 1 - used):
                    reached = value[i, a] + extra_s[k]
                    if reached < value[j, a + used]:
                        value[j, a + used] = reached
                        parent[j, a + used], calls[j, a + used] = i, -1 - used
        if rank[i] == m - 1 and g + 2 < len(x.member_offsets):
            j = x.members[last]
            node_s = _latest(x.sets, i, j, end)
            for a in range(accelerators + 1):
                reached = value[i, a] + node_s
                if reached < value[j, a]:
                    value[j, a], parent[j, a], calls[j, a] = reached, i, 0
    return value, parent, calls
