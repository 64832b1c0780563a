"""Latency of placements under the problem's execution model."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise

import numpy as np

from situs.core import Dataflow, Offload, Pipeline, Problem, Sequential
from situs.errors import PlacementError
from situs.graph.arrays import Bools, Floats, Ints
from situs.simulate._dataflow_kernels import dataflow
from situs.simulate._offload_kernels import offload
from situs.simulate._pipeline_kernels import pipeline
from situs.simulate._sequential_kernels import sequential
from situs.simulate.memory import over_limits
from situs.simulate.ranks import dispatch_keys, flow_options
from situs.simulate.tables import tables

_PARALLEL_OPS = 20_000  # Below this much work, handing it to threads costs more than it saves.


def evaluate(problem: Problem, assignments: Ints, threads: int | None = None) -> Floats:
    """Simulate placements; see the execution models in ``core`` for what the value means.

    Args:
        problem: The problem.
        assignments: ``int32[B, N]``.
        threads: Threads to share the batch among, without the interpreter lock; None = one for
            each core that this process may use.

    Returns:
        ``float64[B]`` s; ``inf`` where a hard rule (allowed devices, co-location) or a limit is
        broken.

    Raises:
        PlacementError: If the shape is not ``[B, N]`` or a device number is out of range.
    """
    out = latency(problem, assignments, threads)
    for b in np.flatnonzero(np.isfinite(out) & over_limits(problem, assignments)):
        out[b] = np.inf
    return out


def latency(problem: Problem, assignments: Ints, threads: int | None = None) -> Floats:
    """``evaluate`` without the limits on memory and number of sub-graphs."""
    batch = checked(problem, assignments)
    out = np.empty(len(batch))
    run = kernel(problem)
    workers = min(threads or len(os.sched_getaffinity(0)), len(batch))
    if workers < 2 or batch.size < _PARALLEL_OPS:
        run(batch, out)
    else:
        edges = [k * len(batch) // workers for k in range(workers + 1)]
        spans = [slice(a, b) for a, b in pairwise(edges)]
        for _ in _pool(workers).map(lambda span: run(batch[span], out[span]), spans):
            pass
    return out


def checked(problem: Problem, assignments: Ints) -> Ints:
    """A writable ``int32[B, N]`` copy of assignments that kernels may index with.

    Raises:
        PlacementError: If the shape is not ``[B, N]`` or a device number is out of range.
    """
    batch = np.array(assignments, dtype=np.int32, order="C")
    if batch.ndim != 2 or batch.shape[1] != problem.num_ops:
        raise PlacementError(
            f"assignments must have shape [placements, {problem.num_ops}]; got {batch.shape}"
        )
    if batch.size and (batch.min() < 0 or batch.max() >= problem.num_devices):
        raise PlacementError(f"a device number is outside 0..{problem.num_devices - 1}")
    return batch


def kernel(problem: Problem) -> Callable[[Ints, Floats], None]:
    """The kernel of the problem's model, with everything but ``(assignments, out)`` filled in."""
    flat, model = tables(problem), problem.model
    if isinstance(model, Sequential):
        return lambda batch, out: sequential(batch, flat, out)
    if isinstance(model, Dataflow):
        keys, options = dispatch_keys(problem), flow_options(model)
        return lambda batch, out: dataflow(batch, flat, keys, *options, out)
    if isinstance(model, Offload):
        return lambda batch, out: offload(batch, flat, model.calls, out)
    staged, contiguous = model.transfers == "staged", model.contiguous
    part = backward_part(problem)
    return lambda batch, out: pipeline(batch, flat, staged, contiguous, part, out)


def backward_part(problem: Problem) -> Bools:
    """``bool[N]`` ops of a pipeline's backward types."""
    types = problem.model.backward_types if isinstance(problem.model, Pipeline) else ()
    return np.array([kind in types for kind in problem.graph.op_types], dtype=np.bool_)


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="situs-simulate")
