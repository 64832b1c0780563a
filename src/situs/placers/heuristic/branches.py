"""Groups of units that the structure of the graph suggests to move together."""

from __future__ import annotations

import numpy as np

from situs.core import Problem
from situs.graph.arrays import Ints, csr_from_pairs, csr_rows, frozen
from situs.placers.heuristic._neighbour_kernels import branches, immediate_dominators


def branch_groups(problem: Problem, largest: int) -> tuple[Ints, Ints]:
    """CSR of units: every branch of 2 to ``largest`` ops between a fork and its join."""
    graph = problem.graph
    n = graph.num_ops
    u, v = graph.edge_producer, graph.consumer_ops
    ahead, back = csr_from_pairs(u, v, n), csr_from_pairs(v, u, n)
    idom = immediate_dominators(*back, n)
    # Post-dominators are the dominators of the graph read backwards, op i being n - 1 - i.
    mirrored = immediate_dominators(*csr_from_pairs(n - 1 - u, n - 1 - v, n), n)
    ipdom = frozen(n - 1 - mirrored[::-1], np.int32)
    offsets, ops = branches(ahead, back, idom, ipdom, largest)
    pairs = np.unique(np.stack([csr_rows(offsets), problem.units[ops]], axis=1), axis=0)
    return csr_from_pairs(pairs[:, 0], pairs[:, 1], len(offsets) - 1)
