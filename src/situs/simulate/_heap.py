"""Binary min-heaps on flat arrays, ordered by key and then by number; several share one array."""

from __future__ import annotations

from numba import njit

from situs.graph.arrays import Floats, Ints


@njit(cache=True, inline="always")
def push(keys: Floats, items: Ints, base: int, size: int, key: float, item: int) -> None:
    """Add an entry to the heap of ``size`` entries that begins at ``base``."""
    k = size
    while k > 0:
        up = (k - 1) >> 1
        other = keys[base + up]
        if key > other or (key == other and item > items[base + up]):
            break
        keys[base + k] = other
        items[base + k] = items[base + up]
        k = up
    keys[base + k] = key
    items[base + k] = item


@njit(cache=True, inline="always")
def pop(keys: Floats, items: Ints, base: int, size: int) -> int:
    """Remove the least entry of a heap of ``size`` > 0 entries; its number."""
    top = items[base]
    last = size - 1
    key, item = keys[base + last], items[base + last]
    k = 0
    while True:
        child = 2 * k + 1
        if child >= last:
            break
        if child + 1 < last:
            a, b = keys[base + child], keys[base + child + 1]
            if b < a or (b == a and items[base + child + 1] < items[base + child]):
                child += 1
        other = keys[base + child]
        if key < other or (key == other and item < items[base + child]):
            break
        keys[base + k] = other
        items[base + k] = items[base + child]
        k = child
    keys[base + k] = key
    items[base + k] = item
    return int(top)
