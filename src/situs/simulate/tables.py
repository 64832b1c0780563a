"""The flat arrays of a problem that every kernel reads, built once per problem."""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from situs.core import Problem
from situs.graph.arrays import Floats, Ints


class Tables(NamedTuple):
    """Arrays of one problem. Axes: ``N`` ops, ``T`` tensors, ``E`` edges, ``D`` devices.

    Attributes:
        seconds: ``float64[N, D]`` op times, s; ``inf`` where the op is not allowed.
        leader: ``int32[N]`` first op of each op's unit.
        op_tensors: ``int32[N + 1]`` tensors of each op.
        producer: ``int32[T]``.
        consumer_offsets: ``int32[T + 1]``.
        consumers: ``int32[E]``.
        num_inputs: ``int32[N]`` edges into each op.
        size: ``float64[T]`` transfer size, B.
        latency: ``float64[D, D]`` link latency, s.
        per_byte: ``float64[D, D]`` link time per byte, s/B.
        boundary: ``float64[D]`` start-up of a sub-graph, s.
        streams: ``int32[D]``.
    """

    seconds: Floats
    leader: Ints
    op_tensors: Ints
    producer: Ints
    consumer_offsets: Ints
    consumers: Ints
    num_inputs: Ints
    size: Floats
    latency: Floats
    per_byte: Floats
    boundary: Floats
    streams: Ints


_CACHE: WeakKeyDictionary[Problem, Tables] = WeakKeyDictionary()


def tables(problem: Problem) -> Tables:
    """The arrays of a problem; kept as long as the problem lives."""
    found = _CACHE.get(problem)
    if found is None:
        graph, costs = problem.graph, problem.costs
        first = np.zeros(problem.num_units, dtype=np.int32)
        first[problem.units[::-1]] = np.arange(problem.num_ops - 1, -1, -1, dtype=np.int32)
        streams = [device.streams for device in problem.cluster.devices]
        found = Tables(
            np.where(problem.allowed, costs.seconds, np.inf),
            first[problem.units],
            graph.op_tensors,
            graph.tensor_producer,
            graph.consumer_offsets,
            graph.consumer_ops,
            np.bincount(graph.consumer_ops, minlength=problem.num_ops).astype(np.int32),
            costs.transfer_size,
            costs.link_latency_s,
            costs.link_s_per_byte,
            costs.boundary_s,
            np.array(streams, dtype=np.int32),
        )
        for array in found:
            array.flags.writeable = False
        _CACHE[problem] = found
    return found
