"""Latency of many placements: hard rules, the execution model, then memory."""

from __future__ import annotations

import numpy as np
from numba import njit

from situs.graph.arrays import Bools, Floats, Ints
from situs.simulate._dataflow_kernels import dataflow, new_state
from situs.simulate._kernels import keeps_units, pipeline, sequential
from situs.simulate._memory_kernels import (
    dataflow_peak,
    offload_peak,
    pipeline_peak,
    sequential_peak,
)
from situs.simulate._offload_kernels import new_buffers, offload
from situs.simulate.arrays import ProblemArrays


@njit(cache=True, nogil=True)
def sequential_batch(p: ProblemArrays, assignments: Ints, out: Floats) -> None:
    """Latencies into ``out``, s; ``inf`` where a rule or a memory limit is broken."""
    for b in range(len(assignments)):
        a = assignments[b]
        out[b] = sequential(p, a) if keeps_units(p, a) else np.inf
        if p.limited and out[b] < np.inf and (sequential_peak(p, a) > p.memory_bytes).any():
            out[b] = np.inf


@njit(cache=True, nogil=True)
def dataflow_batch(
    p: ProblemArrays, assignments: Ints, fifo: bool, shared: bool, per_edge: bool, out: Floats
) -> None:
    """Makespans into ``out``, s; ``inf`` where a rule or a memory limit is broken."""
    recorded = len(p.consumers) if p.limited else 0
    s = new_state(assignments.shape[1], len(p.boundary_s), recorded)
    for b in range(len(assignments)):
        a = assignments[b]
        out[b] = dataflow(p, a, s, fifo, shared, per_edge) if keeps_units(p, a) else np.inf
        if p.limited and out[b] < np.inf and (dataflow_peak(p, a, s) > p.memory_bytes).any():
            out[b] = np.inf


@njit(cache=True, nogil=True)
def pipeline_batch(
    p: ProblemArrays,
    assignments: Ints,
    staged: bool,
    contiguous: bool,
    backward: Bools,
    out: Floats,
) -> None:
    """Loads of the busiest part into ``out``, s; ``inf`` where a rule or a limit is broken."""
    for b in range(len(assignments)):
        a = assignments[b]
        out[b] = pipeline(p, a, staged, contiguous, backward) if keeps_units(p, a) else np.inf
        if p.limited and out[b] < np.inf and (pipeline_peak(p, a) > p.memory_bytes).any():
            out[b] = np.inf


@njit(cache=True, nogil=True)
def offload_batch(p: ProblemArrays, assignments: Ints, calls: int, out: Floats) -> None:
    """Latencies into ``out``, s; ``inf`` where a rule or a memory limit is broken."""
    buffers = new_buffers(assignments.shape[1], len(p.boundary_s))
    for b in range(len(assignments)):
        a = assignments[b]
        out[b] = offload(p, a, calls, buffers) if keeps_units(p, a) else np.inf
        if p.limited and out[b] < np.inf and (offload_peak(p, a, calls) > p.memory_bytes).any():
            out[b] = np.inf
