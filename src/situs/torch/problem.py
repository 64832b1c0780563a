"""Blocks on a machine as a ``Problem``: seconds of a whole request, bytes that stay."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from situs.core import ExecutionModel, Limits, Pipeline, Problem, Sequential
from situs.costs import MODELLED, CostTable, link_matrices
from situs.errors import ParameterError
from situs.graph.arrays import Floats, Ints, csr_rows
from situs.hardware import Device
from situs.importers.torch.blocks import Blocks
from situs.torch.machine import Machine

Goal = Literal["latency", "throughput", "fit"]
Counting = Literal["run", "weights"]
GOALS: tuple[Goal, ...] = ("latency", "throughput", "fit")


@dataclass(frozen=True, eq=False)
class Case:
    """Blocks on one machine. Axes: ``N`` blocks, ``D`` devices.

    Attributes:
        blocks: What is placed.
        machine: On what.
        counting: Whether cache and activations must fit beside the weights.
    """

    blocks: Blocks
    machine: Machine
    counting: Counting

    @cached_property
    def limits(self) -> Floats:
        """``float64[D]`` memory, B."""
        return np.array(self.machine.limits)

    @cached_property
    def safe_room(self) -> Floats:
        """``float64[D]`` what may be filled with weights and cache whatever else is needed, B."""
        names = self.machine.cluster.names
        held = np.zeros(len(names))
        for d, name in enumerate(names):
            if self.counting == "run" and name not in self.machine.streamed:
                held[d] += self.blocks.workspace_bytes.max(initial=0.0)
            if name == self.machine.main:
                held[d] += self.blocks.weight_bytes.max(initial=0.0)
                if self.counting == "run":
                    held[d] += self.blocks.cache_bytes.sum()
        return np.maximum(self.limits - held, 0.0)

    def problem(self, goal: Goal, room: Floats | None = None) -> Problem:
        """The problem whose value is the goal's: latency, time per request, or share of memory.

        Args:
            goal: What its value means.
            room: ``float64[D]`` bytes for weights and cache; None = no limit. With all of
                ``limits`` it is a relaxation: no map that fits is left out.
        """
        graph = replace(
            self.blocks.graph,
            # Activations are counted apart: they are not there all at once, as weights are.
            tensor_bytes=np.zeros(self.blocks.graph.num_tensors, dtype=np.int64),
        )
        if self.cache_stays:
            cached = np.flatnonzero(self.blocks.cache_bytes)
            offsets = graph.reader_offsets
            graph = replace(
                graph,
                constant_bytes=np.concatenate(
                    [graph.constant_bytes, self.blocks.cache_bytes[cached].astype(np.int64)]
                ),
                reader_offsets=np.concatenate(
                    [offsets, offsets[-1] + 1 + np.arange(len(cached), dtype=np.int32)]
                ),
                reader_ops=np.concatenate([graph.reader_ops, cached.astype(np.int32)]),
            )
        costs = self.shares if goal == "fit" else self.costs
        model: ExecutionModel = Sequential() if goal == "latency" else Pipeline()
        memory = np.full(len(self.limits), np.inf) if room is None else room
        return Problem(graph, self.machine.cluster, costs, model, Limits(memory_bytes=memory))

    @property
    def cache_stays(self) -> bool:
        """Whether each block's cache is where its weights are: always, unless they are copied."""
        return self.counting == "run" and self.machine.main is None

    def used_bytes(self, assignment: Ints) -> Floats:
        """``float64[D]`` all that ``int32[N]`` needs: weights, cache, activations, copies, B.

        The cache and activations of a block whose weights are copied are on the main device, and
        there is room for the largest copy.
        """
        names = self.machine.cluster.names
        used = self.blocks.graph.constants_read(assignment, len(names)).copy()
        runs = assignment.copy()
        copied = 0.0
        for d, name in enumerate(names):
            if name in self.machine.streamed and self.machine.main is not None:
                there = assignment == d
                copied = max(copied, self.blocks.weight_bytes[there].max(initial=0.0))
                runs[there] = names.index(self.machine.main)
        if self.machine.main is not None:
            used[names.index(self.machine.main)] += copied
        if self.counting == "run":
            np.add.at(used, runs, self.blocks.cache_bytes)
            for d in np.unique(runs):
                used[d] += self.blocks.workspace_bytes[runs == d].max(initial=0.0)
        return used

    @cached_property
    def costs(self) -> CostTable:
        """Seconds of the whole request: one prefill and every decode step."""
        blocks, cluster = self.blocks, self.machine.cluster
        steps = blocks.request.new_tokens if blocks.decode else 0
        seconds = np.zeros((blocks.graph.num_ops, len(cluster.devices)))
        for d, device in enumerate(cluster.devices):
            price = _roofline(device)
            seconds[:, d] = [price(kernels) for kernels in blocks.prefill]
            calls = np.array([float(len(kernels) > 0) for kernels in blocks.prefill])
            if steps:
                seconds[:, d] += [steps * price(kernels) for kernels in blocks.decode]
                calls += [steps * float(len(kernels) > 0) for kernels in blocks.decode]
            if device.name in self.machine.streamed:
                latency_s, per_byte = self.machine.streamed[device.name]
                once = np.where(blocks.weight_bytes > 0, latency_s, 0.0)
                seconds[:, d] += calls * (once + blocks.weight_bytes * per_byte)
        sizes = blocks.graph.tensor_bytes.astype(np.float64)
        latency, per_byte_s = link_matrices(cluster)
        return CostTable(
            seconds=seconds,
            transfer_size=sizes + steps * blocks.decode_bytes,
            # A tensor that decoding does not move is charged the latency of its steps all the same.
            link_latency_s=latency * (1 + steps),
            link_s_per_byte=per_byte_s,
            boundary_s=np.array([device.boundary_s * (1 + steps) for device in cluster.devices]),
            source=MODELLED,
            notes=(("model", "roofline per kernel"), ("cluster", cluster.name)),
        )

    @cached_property
    def shares(self) -> CostTable:
        """The share of each device's room that a block takes: the pipeline value is the fullest."""
        graph, blocks = self.blocks.graph, self.blocks
        readers = np.diff(graph.reader_offsets)
        rows = csr_rows(graph.reader_offsets)
        # A weight that several blocks hold is there once: its bytes are shared out.
        each = graph.constant_bytes[rows] / readers[rows]
        taken = np.zeros(graph.num_ops)
        np.add.at(taken, graph.reader_ops, each)
        if self.cache_stays:
            taken += blocks.cache_bytes
        room = self.limits
        d = len(room)
        share = np.where(room > 0, taken[:, None] / np.where(room > 0, room, 1.0), 0.0)
        return CostTable(
            seconds=share,
            transfer_size=np.zeros(graph.num_tensors),
            link_latency_s=np.zeros((d, d)),
            link_s_per_byte=np.zeros((d, d)),
            boundary_s=np.zeros(d),
            source=MODELLED,
            notes=(("model", "share of memory"),),
        )


def _roofline(device: Device) -> Callable[[Floats], float]:
    """Seconds of a block's kernels (``float64[K, 2]``: FLOP, bytes) on a device."""
    rate = device.efficiency * device.peak_flop_per_s
    if rate <= 0 or device.memory_bytes_per_s <= 0:
        raise ParameterError(
            f"device {device.name}: peak_flop_per_s and memory_bytes_per_s are needed to model it"
        )

    def price(kernels: Floats) -> float:
        busy = np.maximum(kernels[:, 0] / rate, kernels[:, 1] / device.memory_bytes_per_s)
        return math.fsum(busy) + len(kernels) * device.op_overhead_s

    return price
