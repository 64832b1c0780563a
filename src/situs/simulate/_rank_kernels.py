"""Upward rank: the length of the longest mean path from an op to an end of the graph."""

from __future__ import annotations

import numpy as np
from numba import njit

from situs.graph.arrays import Floats, Ints


@njit(cache=True, nogil=True)
def upward_rank(
    op_tensors: Ints, consumer_offsets: Ints, consumers: Ints, op_s: Floats, tensor_s: Floats
) -> Floats:
    """``float64[N]``: ``op_s[i]`` + the longest ``tensor_s[t] + rank`` over the readers, s.

    Source: Topcuoglu, Hariri, Wu, "Performance-effective and low-complexity task scheduling for
    heterogeneous computing", IEEE TPDS 13(3), 2002, equation (8).
    """
    n = len(op_s)
    rank = np.zeros(n)
    for i in range(n - 1, -1, -1):
        longest = 0.0
        for t in range(op_tensors[i], op_tensors[i + 1]):
            for e in range(consumer_offsets[t], consumer_offsets[t + 1]):
                longest = max(longest, tensor_s[t] + rank[consumers[e]])
        rank[i] = op_s[i] + longest
    return rank
