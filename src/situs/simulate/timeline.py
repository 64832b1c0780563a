"""When every op and transfer of a placement starts and ends, and what the latency hangs on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from situs.core import Dataflow, Offload, Pipeline, Problem, violation
from situs.errors import PlacementError, ProblemError
from situs.graph.arrays import Floats, Ints, frozen
from situs.simulate._dataflow_kernels import TRANSFERS, dataflow, new_state
from situs.simulate._kernels import sequential_schedule
from situs.simulate.arrays import problem_arrays
from situs.simulate.evaluate import checked


@dataclass(frozen=True, eq=False)
class Timeline:
    """A simulated schedule. Axes: ``N`` ops, ``M`` transfers.

    Attributes:
        problem: What was placed.
        assignment: ``int32[N]`` device of each op.
        start_s: ``float64[N]`` start of each op, s.
        end_s: ``float64[N]`` end of each op, s.
        tensor: ``int32[M]`` tensor that each transfer moves, in order of start.
        source: ``int32[M]`` device that it leaves.
        target: ``int32[M]`` device that it reaches.
        transfer_start_s: ``float64[M]``, s.
        transfer_end_s: ``float64[M]``, s; the target's ``boundary_s`` comes after it.
        critical_path: ``int32[K]`` ops, first to last, each of which had to end for the next to
            start: its tensor was awaited, or its device or link was in use.
    """

    problem: Problem
    assignment: Ints
    start_s: Floats
    end_s: Floats
    tensor: Ints
    source: Ints
    target: Ints
    transfer_start_s: Floats
    transfer_end_s: Floats
    critical_path: Ints

    @property
    def seconds(self) -> float:
        """Latency: when the last op ends, s."""
        return float(self.end_s.max(initial=0.0))


def timeline(problem: Problem, assignment: Ints) -> Timeline:
    """Simulate ``int32[N]`` and keep the schedule.

    Under ``sequential`` ops run in topological order, and a tensor is moved just before its first
    reader on the other device.

    Raises:
        ProblemError: If the model is ``pipeline``, whose steady state has loads but no schedule.
        PlacementError: If an op is not allowed, a unit is split, or a link is missing.
    """
    model, p = problem.model, problem_arrays(problem)
    if isinstance(model, Pipeline | Offload):
        kind = type(model).__name__.lower()
        raise ProblemError(f"{kind} has no timeline; simulate sequential or dataflow")
    array = checked(problem, np.asarray(assignment)[np.newaxis])[0]
    broken = violation(problem, array)
    if broken is not None:
        raise PlacementError(f"no timeline: {broken}")
    s = new_state(problem.num_ops, problem.num_devices, problem.graph.num_edges)
    if isinstance(model, Dataflow):
        per_edge = model.charge == "edge"
        latency = dataflow(p, array, s, model.dispatch == "fifo", model.links == "shared", per_edge)
    else:
        latency = sequential_schedule(p, array, s)
    if np.isinf(latency):
        raise PlacementError("no timeline: a tensor must move between devices that have no link")
    count = int(s.counts[TRANSFERS])
    order = np.argsort(s.moved_s[:count, 0], kind="stable")
    moved, moved_s = s.moved[order], s.moved_s[order]
    path = (
        _critical_path(problem, array, s.start_s, s.end_s, moved, moved_s)
        if isinstance(model, Dataflow)
        else list(range(problem.num_ops))
    )
    return Timeline(
        problem,
        frozen(array, np.int32),
        frozen(s.start_s, np.float64),
        frozen(s.end_s, np.float64),
        frozen(moved[:, 0], np.int32),
        frozen(moved[:, 1], np.int32),
        frozen(moved[:, 2], np.int32),
        frozen(moved_s[:, 0], np.float64),
        frozen(moved_s[:, 1], np.float64),
        frozen(path, np.int32),
    )


def _critical_path(
    problem: Problem, a: Ints, start: Floats, end: Floats, moved: Ints, moved_s: Floats
) -> list[int]:
    """Walk back from the op that ends last, to what ended when it could start."""
    producer = problem.graph.tensor_producer
    offsets, inputs = problem.graph.inputs
    by_tensor: dict[int, list[int]] = {}
    by_link_end: dict[tuple[int, int, float], int] = {}
    for k, (t, source, target, _) in enumerate(moved.tolist()):
        by_tensor.setdefault(t, []).append(k)
        if moved_s[k, 1] > moved_s[k, 0]:
            by_link_end[source, target, float(moved_s[k, 1])] = k
    by_device_end: dict[tuple[int, float], list[int]] = {}
    for i in range(problem.num_ops):
        by_device_end.setdefault((int(a[i]), float(end[i])), []).append(i)

    def awaited(i: int) -> int | None:
        """The op whose tensor, or whose turn on link or device, let ``i`` start."""
        for t in inputs[offsets[i] : offsets[i + 1]].tolist():
            u = int(producer[t])
            if a[u] == a[i]:
                if end[u] == start[i]:
                    return u
                continue
            for k in by_tensor[t]:
                d, reader = int(moved[k, 2]), int(moved[k, 3])
                if d != a[i] or reader not in (-1, i):
                    continue
                if moved_s[k, 1] + problem.costs.boundary_s[d] == start[i]:
                    while moved_s[k, 0] > end[producer[moved[k, 0]]]:
                        k = by_link_end[int(moved[k, 1]), d, float(moved_s[k, 0])]
                    return int(producer[moved[k, 0]])
        before = by_device_end.get((int(a[i]), float(start[i])), [])
        return next((j for j in before if j not in seen), None)

    last = int(np.argmax(end)) if len(end) else None
    path: list[int] = []
    seen: set[int] = set()
    while last is not None:
        path.append(last)
        seen.add(last)
        last = awaited(last) if start[last] > 0 else None
    return path[::-1]
