"""Compiled loops over small graphs: co-location, fractal dimension, parsing into groups."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from situs.graph.arrays import Bools, Floats, Ints


@njit(cache=True, nogil=True)
def root(parent: Ints, node: int) -> int:
    """Representative of a node's set; halves the path on the way."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@njit(cache=True, nogil=True)
def join(parent: Ints, allowed: Bools, u: int, v: int) -> bool:
    """Merge the sets of two nodes if some device is allowed to both; the smaller root stays."""
    a, b = root(parent, u), root(parent, v)
    if a == b:
        return True
    common = False
    for d in range(allowed.shape[1]):
        common |= allowed[a, d] and allowed[b, d]
    if not common:
        return False
    if a > b:
        a, b = b, a
    parent[b] = a
    for d in range(allowed.shape[1]):
        allowed[a, d] &= allowed[b, d]
    return True


@njit(cache=True, nogil=True)
def dense_labels(parent: Ints) -> Ints:
    """Number of each node's set, sets numbered by their first node."""
    n = len(parent)
    number = np.full(n, -1, dtype=np.int32)
    label = np.empty(n, dtype=np.int32)
    count = 0
    for node in range(n):
        r = root(parent, node)
        if number[r] < 0:
            number[r] = count
            count += 1
        label[node] = number[r]
    return label


@njit(cache=True, nogil=True)
def colocate(n: int, source: Ints, target: Ints, allowed: Bools) -> Ints:
    """Merge along every edge whose ends have no other successor and no other predecessor.

    ``source`` and ``target`` are distinct edges; ``allowed`` is changed. O(E).
    """
    successors = np.zeros(n, dtype=np.int32)
    predecessors = np.zeros(n, dtype=np.int32)
    for e in range(len(source)):
        successors[source[e]] += 1
        predecessors[target[e]] += 1
    parent = np.arange(n).astype(np.int32)
    for e in range(len(source)):
        if successors[source[e]] == 1 and predecessors[target[e]] == 1:
            join(parent, allowed, source[e], target[e])
    return dense_labels(parent)


@njit(cache=True, nogil=True)
def parse(n: int, source: Ints, target: Ints, score: Floats, allowed: Bools) -> Ints:
    """Groups joined by dominant edges.

    A node's dominant edge is its incident edge of highest score, the first of equal ones. Absorbing
    along dominant edges from the best one on until nothing changes gives the connected components
    of the dominant edges, so that one pass of a union-find is enough: O(E + N a(N)).
    Only where a join would leave a group without an allowed device does the order matter: better
    edges go first. ``allowed`` is changed.
    """
    dominant = np.full(n, -1, dtype=np.int64)
    for e in range(len(source)):
        for node in (source[e], target[e]):
            best = dominant[node]
            if best < 0 or score[e] > score[best]:
                dominant[node] = e
    used = np.unique(dominant[dominant >= 0])
    order = np.argsort(-score[used], kind="mergesort")
    parent = np.arange(n).astype(np.int32)
    for k in order:
        join(parent, allowed, source[used[k]], target[used[k]])
    return dense_labels(parent)


@njit(cache=True, nogil=True, parallel=True)
def fractal_dimension(offsets: Ints, neighbours: Ints, most: int) -> Floats:
    """Least-squares slope of log N(v, r) on log r, r = 1 .. the last radius that reaches anew.

    ``N(v, r)`` counts the nodes within ``r`` hops, ``v`` included. A search ends after the radius
    at which it has seen ``most`` nodes. 0 where fewer than two radii reach something new.
    """
    n = len(offsets) - 1
    dimension = np.zeros(n)
    parts = min(n, 64)
    for part in prange(parts):
        seen = np.full(n, -1, dtype=np.int32)
        queue = np.empty(n, dtype=np.int32)
        for v in range(part, n, parts):
            seen[v] = v
            queue[0] = v
            head, tail, radius = 0, 1, 0
            sx = sy = sxx = sxy = 0.0
            while tail < most:
                end = tail
                while head < end:
                    u = queue[head]
                    head += 1
                    for k in range(offsets[u], offsets[u + 1]):
                        w = neighbours[k]
                        if seen[w] != v:
                            seen[w] = v
                            queue[tail] = w
                            tail += 1
                if tail == end:
                    break
                radius += 1
                x, y = np.log(radius), np.log(tail)
                sx += x
                sy += y
                sxx += x * x
                sxy += x * y
            if radius > 1:
                dimension[v] = (radius * sxy - sx * sy) / (radius * sxx - sx * sx)
    return dimension
