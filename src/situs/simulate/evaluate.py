"""Latency of placements under the problem's execution model."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from situs.core import Dataflow, Offload, Pipeline, Problem, count_subgraphs
from situs.errors import ProblemError
from situs.graph.arrays import Floats, Ints
from situs.simulate import _batch_kernels as kernels
from situs.simulate.arrays import problem_arrays

# Below this many op evaluations a second thread costs more than it saves.
_OPS_PER_THREAD = 100_000
_MASK_BITS = 64


def evaluate(problem: Problem, assignments: Ints, threads: int | None = None) -> Floats:
    """Latency of ``B`` placements.

    Args:
        problem: What is placed, and the execution model that says what latency means.
        assignments: ``int32[B, N]`` device of each op, each in ``0 .. D - 1``.
        threads: Most threads to use; None = as many as there are cores to run on.

    Returns:
        ``float64[B]``, s; ``inf`` where an op is not allowed on its device, a unit is split, a
        memory limit is broken, there are too many sub-graphs, a missing link is needed,
        ``Pipeline.contiguous`` is broken, or calls of ``Offload`` wait for each other.

    Raises:
        ProblemError: If the shape or a device number is wrong.
    """
    assignments = checked(problem, assignments)
    out = np.empty(len(assignments))
    if threads is None:
        threads = len(os.sched_getaffinity(0))
    parts = max(1, min(threads, len(assignments), assignments.size // _OPS_PER_THREAD))
    if parts == 1:
        _evaluate_into(problem, assignments, out)
        return out
    # More slices than threads, so that one slow core does not hold up the rest.
    bounds = np.linspace(0, len(assignments), 4 * parts + 1).astype(int)
    with ThreadPoolExecutor(parts) as pool:
        for done in [
            pool.submit(_evaluate_into, problem, assignments[a:b], out[a:b])
            for a, b in pairwise(bounds)
        ]:
            done.result()
    return out


def checked(problem: Problem, assignments: Ints) -> Ints:
    """``int32[B, N]`` contiguous, with device numbers that exist.

    Raises:
        ProblemError: If the shape or a device number is wrong.
    """
    array: Ints = np.ascontiguousarray(assignments, dtype=np.int32)
    if array.ndim != 2 or array.shape[1] != problem.num_ops:
        raise ProblemError(
            f"assignments have shape {array.shape}; expected [placements, {problem.num_ops} ops]"
        )
    if array.size and (array.min() < 0 or array.max() >= problem.num_devices):
        raise ProblemError(f"a device number is outside 0..{problem.num_devices - 1}")
    return array


def _evaluate_into(problem: Problem, assignments: Ints, out: Floats) -> None:
    p, model = problem_arrays(problem), problem.model
    if isinstance(model, Dataflow):
        kernels.dataflow_batch(
            p,
            assignments,
            model.dispatch == "fifo",
            model.links == "shared",
            model.charge == "edge",
            out,
        )
    elif isinstance(model, Pipeline):
        sets = problem.num_devices * (2 if model.backward_types else 1)
        if model.contiguous and sets > _MASK_BITS:
            raise ProblemError(f"contiguous pipelines are checked for up to {_MASK_BITS} sets")
        types = problem.graph.op_types
        backward = np.array([kind in model.backward_types for kind in types], dtype=np.bool_)
        staged = model.transfers == "staged"
        kernels.pipeline_batch(p, assignments, staged, model.contiguous, backward, out)
    elif isinstance(model, Offload):
        kernels.offload_batch(p, assignments, model.calls, out)
    else:
        kernels.sequential_batch(p, assignments, out)
    most = problem.limits.max_subgraphs
    if most is not None:
        for k in np.flatnonzero(np.isfinite(out)):
            if count_subgraphs(problem.graph, assignments[k]) > most:
                out[k] = np.inf
