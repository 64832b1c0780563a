"""Peak memory of a placement, and by how much it misses a limit."""

from __future__ import annotations

import numpy as np

from situs.core import Dataflow, Offload, Pipeline, Problem, Sequential, violation
from situs.errors import PlacementError
from situs.graph.arrays import Floats, Ints
from situs.simulate._dataflow_kernels import dataflow, new_state
from situs.simulate._memory_kernels import (
    constant_bytes,
    dataflow_peak,
    offload_peak,
    pipeline_peak,
    sequential_peak,
)
from situs.simulate.arrays import problem_arrays
from situs.simulate.evaluate import checked


def peak_memory(problem: Problem, assignment: Ints) -> Floats:
    """``float64[D]`` peak bytes per device of ``int32[N]``: constants and live tensors.

    ``sequential``: ops run in topological order. ``dataflow``: by the simulated schedule.
    ``pipeline``: every tensor that a device writes or takes in is there at once. ``offload``: so
    too, and each call shows the sum over its accelerator.

    Raises:
        PlacementError: If an op is not allowed on its device, or a unit is split.
    """
    p, model = problem_arrays(problem), problem.model
    array = checked(problem, assignment[np.newaxis])[0]
    broken = violation(problem, array)
    if broken is not None:
        raise PlacementError(f"no schedule to take memory from: {broken}")
    if isinstance(model, Sequential | Pipeline) and not problem.graph.tensor_bytes.any():
        # The schedule does not matter: nothing but constants is anywhere.
        peak: Floats = constant_bytes(p, array)
    elif isinstance(model, Dataflow):
        state = new_state(problem.num_ops, problem.num_devices, problem.graph.num_edges)
        per_edge = model.charge == "edge"
        dataflow(p, array, state, model.dispatch == "fifo", model.links == "shared", per_edge)
        peak = dataflow_peak(p, array, state)
    elif isinstance(model, Pipeline):
        peak = pipeline_peak(p, array)
    elif isinstance(model, Offload):
        peak = offload_peak(p, array, model.calls)
    else:
        peak = sequential_peak(p, array)
    return peak


def memory_shortfall(problem: Problem, assignment: Ints) -> str | None:
    """Say which device lacks most and how many bytes, or None where the placement fits."""
    peak = peak_memory(problem, assignment)
    over = peak - problem.memory_bytes
    if not (over > 0).any():
        return None
    d = int(np.argmax(over))
    return (
        f"{problem.cluster.names[d]} is short of {over[d]:.0f} B: "
        f"it needs {peak[d]:.0f} B and has {problem.memory_bytes[d]:.0f} B"
    )
