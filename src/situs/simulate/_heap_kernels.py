"""Binary heaps of (key, id) pairs on slices of flat arrays; equal keys come by id."""

from __future__ import annotations

from numba import njit

from situs.graph.arrays import Floats, Ints


@njit(cache=True, nogil=True, inline="always")
def push(keys: Floats, ids: Ints, base: int, size: int, key: float, item: int) -> None:
    """Add a pair to the heap of ``size`` pairs at ``base``; the caller counts it."""
    i = size
    while i > 0:
        parent = (i - 1) >> 1
        above = keys[base + parent]
        if above < key or (above == key and ids[base + parent] < item):
            break
        keys[base + i] = above
        ids[base + i] = ids[base + parent]
        i = parent
    keys[base + i] = key
    ids[base + i] = item


@njit(cache=True, nogil=True, inline="always")
def pop(keys: Floats, ids: Ints, base: int, size: int) -> int:
    """Remove the least pair of the heap of ``size`` > 0 pairs and return its id."""
    first = ids[base]
    last = size - 1
    key, item = keys[base + last], ids[base + last]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= last:
            break
        right = child + 1
        if right < last:
            a, b = keys[base + child], keys[base + right]
            if b < a or (b == a and ids[base + right] < ids[base + child]):
                child = right
        below = keys[base + child]
        if key < below or (key == below and item < ids[base + child]):
            break
        keys[base + i] = below
        ids[base + i] = ids[base + child]
        i = child
    keys[base + i] = key
    ids[base + i] = item
    return int(first)
