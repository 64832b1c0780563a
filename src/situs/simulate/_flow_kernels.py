"""Maximum flow on flat arrays: Dinic's algorithm, iterative, on integer capacities."""

from __future__ import annotations

import numpy as np
from numba import njit

from situs.graph.arrays import Bools, Ints, Longs


@njit(cache=True)
def residual_arcs(
    tails: Ints, heads: Ints, capacities: Longs, num_nodes: int
) -> tuple[Longs, Ints, Ints, Longs]:
    """CSR of arcs and their reverses: ``(offsets[V + 1], head[2M], twin[2M], residual[2M])``."""
    m = len(tails)
    offsets = np.zeros(num_nodes + 1, dtype=np.int64)
    for k in range(m):
        offsets[tails[k] + 1] += 1
        offsets[heads[k] + 1] += 1
    for v in range(num_nodes):
        offsets[v + 1] += offsets[v]
    place = offsets[:-1].copy()
    head = np.empty(2 * m, dtype=np.int32)
    twin = np.empty(2 * m, dtype=np.int32)
    residual = np.zeros(2 * m, dtype=np.int64)
    for k in range(m):
        a, b = place[tails[k]], place[heads[k]]
        place[tails[k]] += 1
        place[heads[k]] += 1
        head[a], head[b] = heads[k], tails[k]
        twin[a], twin[b] = b, a
        residual[a] = capacities[k]
    return offsets, head, twin, residual


@njit(cache=True)
def max_flow(
    offsets: Longs, head: Ints, twin: Ints, residual: Longs, source: int, sink: int
) -> tuple[int, Bools]:
    """Push a maximum flow through ``residual`` (changed in place).

    Returns:
        The value of the flow, and ``bool[V]``: the nodes still reachable from the source, which are
        the source side of a minimum cut.

    Source: Dinic, "Algorithm for solution of a problem of maximum flow", 1970.
    """
    n = len(offsets) - 1
    level = np.empty(n, dtype=np.int32)
    queue = np.empty(n, dtype=np.int32)
    arc = np.empty(n, dtype=np.int64)
    path = np.empty(n, dtype=np.int64)
    total = 0
    while True:
        # Levels are distances to the sink, so that the search below never enters a dead end
        # that a distance from the source would not exclude.
        level[:] = -1
        level[sink] = 0
        queue[0] = sink
        begin, end = 0, 1
        while begin < end:
            v = queue[begin]
            begin += 1
            for e in range(offsets[v], offsets[v + 1]):
                u = head[e]
                if level[u] < 0 and residual[twin[e]] > 0:
                    level[u] = level[v] + 1
                    queue[end] = u
                    end += 1
        if level[source] < 0:
            break
        arc[:] = offsets[:-1]
        depth = 0
        v = source
        while True:
            if v == sink:
                amount = residual[path[0]]
                for k in range(1, depth):
                    amount = min(amount, residual[path[k]])
                total += amount
                cut = depth
                for k in range(depth - 1, -1, -1):
                    e = path[k]
                    residual[e] -= amount
                    residual[twin[e]] += amount
                    if residual[e] == 0:
                        cut = k
                depth = cut
                v = head[twin[path[cut]]]
                continue
            advanced = False
            while arc[v] < offsets[v + 1]:
                e = arc[v]
                if residual[e] > 0 and level[head[e]] == level[v] - 1:
                    path[depth] = e
                    depth += 1
                    v = head[e]
                    advanced = True
                    break
                arc[v] += 1
            if advanced:
                continue
            if depth == 0:
                break
            depth -= 1
            v = head[twin[path[depth]]]
            arc[v] += 1
    side = np.zeros(n, dtype=np.bool_)
    side[source] = True
    queue[0] = source
    begin, end = 0, 1
    while begin < end:
        v = queue[begin]
        begin += 1
        for e in range(offsets[v], offsets[v + 1]):
            if residual[e] > 0 and not side[head[e]]:
                side[head[e]] = True
                queue[end] = head[e]
                end += 1
    return total, side
