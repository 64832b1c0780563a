"""Upward ranks: the priority of an op is the mean work on its longest way to the end."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
from numba import njit

from situs.core import Dataflow, Problem
from situs.graph.arrays import Floats, Ints

_KEYS: WeakKeyDictionary[Problem, Floats] = WeakKeyDictionary()


def upward_ranks(problem: Problem) -> Floats:
    """``float64[N]`` upward rank of every op, s.

    ``rank(i) = mean op time + max over tensors t of i and readers j of (mean transfer + rank(j))``;
    means over allowed devices, and over the ordered pairs of devices that have a link.

    Source: Topcuoglu, Hariri, Wu, "Performance-effective and low-complexity task scheduling for
    heterogeneous computing", IEEE TPDS 13(3), 2002, eq. 7-8.
    """
    costs, graph = problem.costs, problem.graph
    allowed = problem.allowed
    times = np.where(allowed, costs.seconds, 0.0).sum(axis=1) / np.maximum(allowed.sum(axis=1), 1)
    d = problem.num_devices
    linked = np.isfinite(costs.link_latency_s) & ~np.eye(d, dtype=np.bool_)
    if linked.any():
        latency = float(costs.link_latency_s[linked].mean())
        per_byte = float(costs.link_s_per_byte[linked].mean())
        transfer = latency + costs.transfer_size * per_byte
    else:
        transfer = np.zeros(graph.num_tensors)
    ranks = np.zeros(graph.num_ops)
    _ranks(times, transfer, graph.op_tensors, graph.consumer_offsets, graph.consumer_ops, ranks)
    return ranks


def flow_options(model: Dataflow) -> tuple[bool, bool, bool]:
    """``(fifo, shared, per_edge)``."""
    return model.dispatch == "fifo", model.links == "shared", model.charge == "edge"


def dispatch_keys(problem: Problem) -> Floats:
    """``float64[N]`` order in which ready ops start under ``priority``: least first."""
    found = _KEYS.get(problem)
    if found is None:
        found = _KEYS[problem] = -upward_ranks(problem)
    return found


@njit(cache=True)
def _ranks(
    times: Floats, transfer: Floats, op_tensors: Ints, offsets: Ints, consumers: Ints, ranks: Floats
) -> None:
    for i in range(len(times) - 1, -1, -1):
        longest = 0.0
        for t in range(op_tensors[i], op_tensors[i + 1]):
            for e in range(offsets[t], offsets[t + 1]):
                longest = max(longest, transfer[t] + ranks[consumers[e]])
        ranks[i] = times[i] + longest
