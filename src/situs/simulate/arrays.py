"""A problem as the flat arrays that the kernels read."""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from situs.core import Problem
from situs.graph.arrays import Bools, Floats, Ints, Longs, frozen
from situs.simulate._rank_kernels import upward_rank


class ProblemArrays(NamedTuple):
    """Read-only. Axes: ``N`` ops, ``T`` tensors, ``E`` edges, ``C`` constants, ``D`` devices.

    A NamedTuple, because Numba takes it as one argument.

    Attributes:
        seconds: ``float64[N, D]`` op times, s; ``inf`` where the op's unit may not go.
        transfer_size: ``float64[T]`` amount that moving each tensor sends, B.
        link_latency_s: ``float64[D, D]``, s; ``inf`` = no link.
        link_s_per_byte: ``float64[D, D]``, s/B.
        boundary_s: ``float64[D]`` time that a device needs to take in a tensor, s.
        streams: ``int64[D]`` ops that each device runs at once.
        tensor_producer: ``int32[T]`` op that writes each tensor.
        op_tensors: ``int32[N + 1]`` tensors that each op writes.
        consumer_offsets: ``int32[T + 1]`` CSR offsets into ``consumers``.
        consumers: ``int32[E]`` ops that read each tensor.
        input_offsets: ``int32[N + 1]`` CSR offsets into ``inputs``.
        inputs: ``int32[E]`` tensors that each op reads.
        unit_head: ``int32[N]`` first op of each op's unit.
        rank_s: ``float64[N]`` upward rank, s.
        tensor_bytes: ``float64[T]`` memory of each tensor, B.
        constant_bytes: ``float64[C]`` memory of each constant, B.
        reader_offsets: ``int32[C + 1]`` CSR offsets into ``readers``.
        readers: ``int32[R]`` ops that read each constant.
        memory_bytes: ``float64[D]`` limit of each device, B.
        limited: Whether any limit is finite.
    """

    seconds: Floats
    transfer_size: Floats
    link_latency_s: Floats
    link_s_per_byte: Floats
    boundary_s: Floats
    streams: Longs
    tensor_producer: Ints
    op_tensors: Ints
    consumer_offsets: Ints
    consumers: Ints
    input_offsets: Ints
    inputs: Ints
    unit_head: Ints
    rank_s: Floats
    tensor_bytes: Floats
    constant_bytes: Floats
    reader_offsets: Ints
    readers: Ints
    memory_bytes: Floats
    limited: bool


_CACHE: WeakKeyDictionary[Problem, ProblemArrays] = WeakKeyDictionary()


def problem_arrays(problem: Problem) -> ProblemArrays:
    """The arrays of a problem, computed once for as long as the problem lives."""
    arrays = _CACHE.get(problem)
    if arrays is None:
        arrays = _CACHE[problem] = _build(problem)
    return arrays


def mean_transfer_s(problem: Problem) -> Floats:
    """``float64[T]`` mean time to move each tensor over the links that exist, s."""
    costs = problem.costs
    linked: Bools = ~np.eye(costs.num_devices, dtype=np.bool_) & np.isfinite(costs.link_latency_s)
    if not linked.any():
        return np.zeros(len(costs.transfer_size))
    latency, per_byte = costs.link_latency_s[linked].mean(), costs.link_s_per_byte[linked].mean()
    return np.asarray(latency + costs.transfer_size * per_byte, dtype=np.float64)


def mean_op_s(seconds: Floats) -> Floats:
    """``float64[N]`` mean op time over the devices where it is finite, s."""
    finite = np.isfinite(seconds)
    total = np.where(finite, seconds, 0.0).sum(axis=1)
    return np.asarray(total / np.maximum(finite.sum(axis=1), 1), dtype=np.float64)


def _build(problem: Problem) -> ProblemArrays:
    graph, costs = problem.graph, problem.costs
    input_offsets, inputs = graph.inputs
    seconds = np.where(problem.unit_allowed[problem.units], costs.seconds, np.inf)
    rank = upward_rank(
        graph.op_tensors,
        graph.consumer_offsets,
        graph.consumer_ops,
        mean_op_s(seconds),
        mean_transfer_s(problem),
    )
    return ProblemArrays(
        seconds=frozen(seconds, np.float64),
        transfer_size=costs.transfer_size,
        link_latency_s=costs.link_latency_s,
        link_s_per_byte=costs.link_s_per_byte,
        boundary_s=costs.boundary_s,
        streams=frozen([device.streams for device in problem.cluster.devices], np.int64),
        tensor_producer=graph.tensor_producer,
        op_tensors=graph.op_tensors,
        consumer_offsets=graph.consumer_offsets,
        consumers=graph.consumer_ops,
        input_offsets=input_offsets,
        inputs=inputs,
        unit_head=frozen(problem.unit_heads[problem.units], np.int32),
        rank_s=frozen(rank, np.float64),
        tensor_bytes=frozen(graph.tensor_bytes, np.float64),
        constant_bytes=frozen(graph.constant_bytes, np.float64),
        reader_offsets=graph.reader_offsets,
        readers=graph.reader_ops,
        memory_bytes=problem.memory_bytes,
        limited=bool(np.isfinite(problem.memory_bytes).any()),
    )
