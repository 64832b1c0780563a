"""Read-only arrays and compressed sparse rows (CSR), the storage of every frozen value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def frozen(values: Any, dtype: DTypeLike) -> NDArray[Any]:
    """Contiguous read-only array of ``dtype``; copies unless ``values`` is one already."""
    array = np.ascontiguousarray(values, dtype=dtype)
    if array.flags.writeable:
        if array is values or array.base is not None:
            array = array.copy()
        array.flags.writeable = False
    return array


def csr(rows: Sequence[Iterable[int]]) -> tuple[Ints, Ints]:
    """Pack lists into ``(offsets[rows + 1], values)``, both int32."""
    lists = [list(row) for row in rows]
    offsets = np.zeros(len(lists) + 1, dtype=np.int32)
    np.cumsum([len(row) for row in lists], out=offsets[1:])
    values = np.fromiter((v for row in lists for v in row), dtype=np.int32, count=int(offsets[-1]))
    return frozen(offsets, np.int32), frozen(values, np.int32)


def csr_from_pairs(rows: Ints, values: Ints, count: int) -> tuple[Ints, Ints]:
    """Pack pairs ``(row, value)`` into CSR with ``count`` rows; the order within a row is kept."""
    offsets = np.zeros(count + 1, dtype=np.int32)
    np.cumsum(np.bincount(rows, minlength=count), out=offsets[1:])
    order = np.argsort(rows, kind="stable")
    return frozen(offsets, np.int32), frozen(values[order], np.int32)


def csr_rows(offsets: Ints) -> Ints:
    """Row number of every CSR value: ``int32[values]``."""
    counts = np.diff(offsets)
    return np.repeat(np.arange(len(counts), dtype=np.int32), counts)
