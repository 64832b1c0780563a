"""Drawing many random moves at once, and the regions between forks and joins."""

from __future__ import annotations

import numpy as np
from numba import njit

from situs.graph.arrays import Bools, Floats, Ints, Longs


@njit(cache=True, nogil=True)
def draw_moves(
    device: Ints,
    allowed: Bools,
    free: Ints,
    adjacent: tuple[Ints, Ints],
    groups: tuple[Ints, Ints],
    random: Floats,
    largest: int,
) -> tuple[Longs, Ints, Ints]:
    """``K`` moves from ``random[K, 4]`` in [0, 1): offsets, units and targets.

    Half are single units; the others are runs of neighbours in topological order, connected
    regions of one device, and, where there are any, whole ``groups``.
    """
    count = len(random)
    offsets = np.zeros(count + 1, dtype=np.int64)
    units = np.empty(count * largest, dtype=np.int32)
    targets = np.empty(count, dtype=np.int32)
    seen = np.full(len(device), -1, dtype=np.int64)
    num_groups = len(groups[0]) - 1
    for k in range(count):
        kind = random[k, 0]
        start = int(random[k, 1] * len(free))
        # Geometric lengths of mean 7.
        length = min(1 + int(np.log(1 - random[k, 2]) / np.log(0.85)), largest)
        begin = size = offsets[k]
        if kind < 0.5:
            units[size] = free[start]
            size += 1
        elif kind < 0.7 or (kind >= 0.85 and num_groups == 0):
            for u in free[start : start + length]:
                units[size] = u
                size += 1
        elif kind < 0.85:
            seed = free[start]
            seen[seed] = k
            units[size] = seed
            size += 1
            head = begin
            while head < size and size - begin < length:
                u = units[head]
                head += 1
                for v in adjacent[1][adjacent[0][u] : adjacent[0][u + 1]]:
                    if seen[v] != k and device[v] == device[seed] and size - begin < length:
                        seen[v] = k
                        units[size] = v
                        size += 1
        else:
            g = int(random[k, 1] * num_groups)
            for u in groups[1][groups[0][g] : groups[0][g + 1]][:largest]:
                units[size] = u
                size += 1
        first = units[begin]
        others = 0
        for d in range(allowed.shape[1]):
            others += allowed[first, d] and d != device[first]
        left = int(random[k, 3] * others)
        target = device[first]
        for d in range(allowed.shape[1]):
            if allowed[first, d] and d != device[first]:
                if left == 0:
                    target = d
                    break
                left -= 1
        kept = begin
        for j in range(begin, size):
            if allowed[units[j], target]:
                units[kept] = units[j]
                kept += 1
        offsets[k + 1] = kept
        targets[k] = target
    return offsets, units[: offsets[count]].copy(), targets


@njit(cache=True, nogil=True)
def immediate_dominators(offsets: Ints, before: Ints, num_nodes: int) -> Ints:
    """``int32[N]`` immediate dominator of each node of a DAG in topological order.

    ``before`` are the predecessors (CSR). A virtual root, node ``-1``, leads to every source.

    Source: Cooper, Harvey, Kennedy, "A simple, fast dominance algorithm", 2001; one pass suffices
    on a DAG.
    """
    idom = np.full(num_nodes, -1, dtype=np.int32)
    for v in range(num_nodes):
        first = True
        for k in range(offsets[v], offsets[v + 1]):
            u = before[k]
            if first:
                idom[v] = u
                first = False
                continue
            w = idom[v]
            while u != w:
                if u > w:
                    u = idom[u]
                else:
                    w = idom[w]
            idom[v] = w
    return idom


@njit(cache=True, nogil=True)
def branches(
    ahead: tuple[Ints, Ints], back: tuple[Ints, Ints], idom: Ints, ipdom: Ints, largest: int
) -> tuple[Ints, Ints]:
    """Branches between each fork and its join, as CSR of ops; those over ``largest`` are left out.

    Op ``f`` is a fork and ``j`` its join if every way from ``f`` meets again at ``j`` and every way
    to ``j`` came through ``f``. A branch is a connected part of what lies between.
    """
    n = len(idom)
    offsets = [np.int32(0)]
    members = [np.int32(0) for _ in range(0)]
    seen = np.full(n, -1, dtype=np.int64)
    stack = np.empty(n, dtype=np.int32)
    for f in range(n):
        j = ipdom[f]
        if j >= n or idom[j] != f:
            continue
        seen[f] = f
        seen[j] = f
        for k in range(ahead[0][f], ahead[0][f + 1]):
            root = ahead[1][k]
            if seen[root] == f:
                continue
            seen[root] = f
            stack[0] = root
            size, head = 1, 0
            while head < size and size <= largest:
                v = stack[head]
                head += 1
                for table in (ahead, back):
                    for m in range(table[0][v], table[0][v + 1]):
                        w = table[1][m]
                        if f < w < j and seen[w] != f:
                            seen[w] = f
                            stack[size] = w
                            size += 1
            if 1 < size <= largest:
                members.extend(stack[:size])
                offsets.append(np.int32(len(members)))
    return np.array(offsets), np.array(members)
