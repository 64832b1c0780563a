"""The best contiguous split of a pipeline: a dynamic programme over ideals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from situs.core import Objective, Pipeline, Problem, RealClock, Result, Stop
from situs.errors import ParameterError
from situs.graph.arrays import Floats, Ints, Longs
from situs.placers.candidates import best_of, with_bound
from situs.placers.exact._ideal_kernels import split
from situs.placers.exact.stages import (
    Ideals,
    StageGraph,
    backward_ops,
    chain_of,
    ideals_of,
    stage_graph,
)
from situs.placers.limits import why_infeasible
from situs.placers.parameters import parameter_texts
from situs.simulate import bound


@dataclass(frozen=True, slots=True)
class Contiguous:
    """The smallest largest load when devices follow each other along the graph.

    Every split whose devices can be ordered so that tensors only flow forward is a chain of
    ideals (down-sets); all chains are searched. Graphs with more than ``max_ideals`` ideals are
    split along one topological order, which proves nothing.

    Attributes:
        max_ideals: Largest number of ideals to list; >= 2.

    Source: Tarnawski et al., "Efficient algorithms for device placement of DNN graph operators",
    NeurIPS 2020, section 5.1.1.

    Differs: A stage's load is told from tensors that cross its lower border only; only stages
    within the incumbent are looked at; equal devices count once; idle ops are folded first.
    """

    name: ClassVar[str] = "contiguous"
    max_ideals: int = 60_000

    def __post_init__(self) -> None:
        if self.max_ideals < 2:
            raise ParameterError("contiguous: max_ideals must be >= 2")

    def supports(self, problem: Problem) -> str | None:
        """Pipelines whose transfers are staged through device 0."""
        if not isinstance(problem.model, Pipeline) or problem.model.transfers != "staged":
            return "contiguous splits the staged pipeline model only; use milp or search"
        costs = problem.costs
        if np.isinf(costs.link_latency_s[0]).any() or np.isinf(costs.link_latency_s[:, 0]).any():
            return "contiguous needs links between device 0 and every other device"
        return None

    def __call__(
        self, problem: Problem, objective: Objective, stop: Stop, rng: np.random.Generator
    ) -> Result:
        """Search along one order, then along all; value the answer."""
        started_s = RealClock().now()
        best = best_split(problem, self.max_ideals)
        candidates = [*best.assignments, *(assignment for _, assignment in problem.uniform())]
        orders = f"over {best.ideals} ideals" if best.exact else "along one topological order"
        result = best_of(
            problem, objective, candidates, self.name, parameter_texts(self), started_s
        )
        if result.placement is None:
            return replace(result, detail=why_infeasible(problem) or "no split that was tried fits")
        proof = f"; ordered splits take at least {best.bound_s:.6g} s" if best.exact else ""
        bounded = with_bound(result, bound(problem).seconds, started_s)
        return replace(bounded, detail=f"best contiguous split {orders}{proof}")


@dataclass(frozen=True, eq=False)
class Split:
    """Contiguous splits found, best last.

    Attributes:
        assignments: ``int32[N]`` each.
        bound_s: Least load of any split whose devices can be ordered, s; 0 unless ``exact``.
        exact: Whether all ideals were looked at.
        ideals: How many ideals were looked at.
    """

    assignments: tuple[Ints, ...]
    bound_s: float
    exact: bool
    ideals: int


def best_split(problem: Problem, max_ideals: int) -> Split:
    """Split along one order, then along all of them if there are at most ``max_ideals`` ideals."""
    stages = stage_graph(problem, backward_ops(problem))
    classes = device_classes(stages)
    found: list[Ints] = []
    upper_s = np.inf
    chain = chain_of(stages, classes.seconds[0])
    every = ideals_of(stages, classes.seconds[0], max_ideals)
    listings = [(chain, stages.node_bytes)] + (
        [] if every is None else [(every, stages.node_bytes)]
    )
    ideals = chain if every is None else every
    for listing, node_bytes in listings:
        value_s, device = _solve(classes, stages, listing, node_bytes, upper_s)
        if device is not None:
            upper_s = value_s
            found.append(stages.assignment(*device))
    if np.isfinite(problem.memory_bytes).any():
        # What fits by the least count may not fit with tensors and shared constants; this does.
        _, device = _solve(classes, stages, ideals, stages.most_bytes, np.inf)
        if device is not None:
            found.append(stages.assignment(*device))
    bound_s = upper_s if every is not None and np.isfinite(upper_s) else 0.0
    return Split(tuple(found), bound_s, every is not None, len(ideals.sets))


@dataclass(frozen=True, eq=False)
class DeviceClasses:
    """Devices that cost the same everywhere. Axes: ``C`` classes, ``V`` nodes, ``T`` tensors.

    Attributes:
        members: Devices of each class.
        seconds: ``float64[C, V]`` node times, s; 0 where not allowed.
        barred: ``float64[C, V]`` 1 where not allowed.
        out_s: ``float64[C, T]`` seconds to bring each tensor from the device to device 0.
        in_s: ``float64[C, T]`` seconds to bring it from device 0.
        limit_bytes: ``float64[C]`` memory.
    """

    members: tuple[tuple[int, ...], ...]
    seconds: Floats
    barred: Floats
    out_s: Floats
    in_s: Floats
    limit_bytes: Floats


def device_classes(stages: StageGraph) -> DeviceClasses:
    """Group the devices of a staged pipeline."""
    problem, costs = stages.problem, stages.problem.costs
    d = problem.num_devices
    every = np.arange(len(costs.transfer_size))[:, None]
    streams = np.array([device.streams for device in problem.cluster.devices], dtype=np.float64)
    out_s = stages.per_tensor(costs.transfer_s(every, np.arange(d), 0)) / streams
    arrival_s = costs.transfer_s(every, 0, np.arange(d)) + costs.boundary_s
    in_s = stages.per_tensor(arrival_s) / streams
    seconds = stages.seconds / streams
    groups: dict[bytes, list[int]] = {}
    for device in range(d):
        key = b"".join(
            np.ascontiguousarray(column).tobytes()
            for column in (
                seconds[:, device],
                out_s[:, device],
                in_s[:, device],
                problem.memory_bytes[device],
                np.bool_(device == 0),
            )
        )
        groups.setdefault(key, []).append(device)
    members = sorted(groups.values(), key=lambda group: (-len(group), group))
    first = [group[0] for group in members]
    finite = np.isfinite(seconds)
    return DeviceClasses(
        tuple(tuple(group) for group in members),
        np.where(finite, seconds, 0.0).T[first],
        (~finite).T[first].astype(np.float64),
        np.ascontiguousarray(out_s.T[first]),
        np.ascontiguousarray(in_s.T[first]),
        problem.memory_bytes[first],
    )


def _solve(
    classes: DeviceClasses, stages: StageGraph, ideals: Ideals, node_bytes: Floats, upper_s: float
) -> tuple[float, tuple[Ints, Ints] | None]:
    """Smallest bottleneck below ``upper_s`` and device and stage of every node, or None."""
    bits = ideals.bits
    degree = np.diff(stages.consumers[0]).astype(np.int32)
    crossing = ideals.crossing(degree)
    inside = ideals.made.astype(np.bool_)
    cross = np.stack(
        [
            (np.where(inside, out[:, None], into[:, None]) * crossing).sum(axis=0)
            for out, into in zip(classes.out_s, classes.in_s, strict=True)
        ]
    )
    work = np.ascontiguousarray(classes.seconds @ bits.T)
    sizes = np.array([len(group) + 1 for group in classes.members], dtype=np.int32)
    strides = np.concatenate(([1], np.cumprod(sizes)[:-1])).astype(np.int32)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(
            (classes.seconds[0] > 0) & (classes.barred == 0),
            classes.seconds[0] / classes.seconds,
            0.0,
        )
    window = ratio.max(axis=1, initial=0.0)
    if (classes.barred[0] > 0).any():
        window[:] = np.inf
    start_s = min(upper_s, float(work[:, ideals.full].sum() + cross.max(initial=0.0) * 2 + 1))
    value, parent = split(
        ideals.sets, ideals.visit, ideals.made, ideals.read, degree, work, cross, classes.out_s,
        classes.in_s, node_bytes @ bits.T, classes.limit_bytes,
        (classes.barred @ bits.T).astype(np.int32), sizes, strides, window, start_s,
    )  # fmt: skip
    state = int(np.argmin(value[ideals.full]))
    best_s = float(value[ideals.full, state])
    if best_s >= start_s:
        return best_s, None
    return best_s, _walk(classes, ideals, parent, sizes, strides, state)


def _walk(
    classes: DeviceClasses, ideals: Ideals, parent: Longs, sizes: Ints, strides: Ints, state: int
) -> tuple[Ints, Ints]:
    """Device and stage of the nodes, from the last stage back to the first."""
    device = np.zeros(ideals.bits.shape[1], dtype=np.int32)
    stage = np.zeros(len(device), dtype=np.int32)
    free = [list(group) for group in classes.members]
    at = ideals.full
    while at != int(ideals.visit[0]):
        code = int(parent[at, state])
        before, c = code // len(sizes), code % len(sizes)
        inside = (ideals.bits[at] > 0) & (ideals.bits[before] == 0)
        device[inside] = free[c].pop()
        stage[inside] = int(ideals.bits[before].sum())
        at, state = before, state - int(strides[c])
    return device, stage
