"""The best split of one order into segments, one per device, for latency or throughput."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from situs.core import Objective, Pipeline, Problem, RealClock, Result, Sequential, Stop
from situs.errors import ParameterError
from situs.graph.arrays import Ints
from situs.placers.candidates import best_of, with_bound
from situs.placers.exact._segment_kernels import segment_split
from situs.placers.limits import why_infeasible
from situs.placers.parameters import parameter_texts
from situs.simulate import bound


@dataclass(frozen=True, slots=True)
class Segments:
    """Devices take consecutive ops of the graph's order, within their memory, in any sequence.

    One unit may be spread over the order (an embedding and the head that is tied to it): every
    device is tried for it, and the rest is split around it. Memory counts constants.

    Attributes:
        max_devices: Largest number of devices; the table has ``2 ** devices`` columns; 1 to 12.

    Source: Tarnawski et al., NeurIPS 2020, section 5.1.1, for graphs that are nearly a chain.

    Differs: One topological order instead of all; latency beside throughput; unequal links. Data
    from before the previous segment is priced as if it came from there; the answers are valued by
    the objective, so that this can only cost quality.
    """

    name: ClassVar[str] = "segments"
    max_devices: int = 10

    def __post_init__(self) -> None:
        if not 1 <= self.max_devices <= 12:
            raise ParameterError("segments: max_devices must be from 1 to 12")

    def supports(self, problem: Problem) -> str | None:
        """Sequential and pipelines by links, on few devices, with at most one spread-out unit."""
        model = problem.model
        if not isinstance(model, Sequential) and not (
            isinstance(model, Pipeline) and model.transfers == "link"
        ):
            return "segments is for the sequential model and for pipelines with links"
        if problem.num_devices > self.max_devices:
            return f"segments takes at most {self.max_devices} devices; use milp or search"
        if len(_spread(problem)) > 1:
            return "segments takes one unit that is spread over the order; use milp or search"
        return None

    def __call__(
        self, problem: Problem, objective: Objective, stop: Stop, rng: np.random.Generator
    ) -> Result:
        """Split for every device of the spread-out unit; value the answers and uniform ones."""
        started_s = RealClock().now()
        candidates = [*best_splits(problem), *(assignment for _, assignment in problem.uniform())]
        result = best_of(
            problem, objective, candidates, self.name, parameter_texts(self), started_s
        )
        if result.placement is None:
            return replace(result, detail=why_infeasible(problem) or "no split of the order fits")
        bounded = with_bound(result, bound(problem).seconds, started_s)
        return replace(bounded, detail="best split of one order")


def best_splits(problem: Problem) -> list[Ints]:
    """``int32[N]`` the best split for every device of the spread-out unit; none if none fits.

    Args:
        problem: One that ``Segments`` supports.
    """
    spread = _spread(problem)
    fixed = [-1] if not len(spread) else _distinct(problem)
    return [a for d in fixed if (a := _split(problem, spread, d)) is not None]


def _spread(problem: Problem) -> Ints:
    """Units whose ops do not follow each other."""
    units = problem.units
    changes = np.flatnonzero(np.diff(units) != 0)
    starts = units[np.concatenate(([0], changes + 1))] if len(units) else units
    number, runs = np.unique(starts, return_counts=True)
    return number[runs > 1]


def _distinct(problem: Problem) -> list[int]:
    """One of each set of devices that differ in nothing but their names, and links alike."""
    costs = problem.costs
    kinds: dict[tuple[object, ...], int] = {}
    for d in range(problem.num_devices):
        ways = [
            sorted(np.delete(matrix, d).tolist())
            for table in (costs.link_latency_s, costs.link_s_per_byte)
            for matrix in (table[d], table[:, d])
        ]
        key = (costs.seconds[:, d].tobytes(), problem.memory_bytes[d], str(ways))
        kinds.setdefault((*key, problem.allowed[:, d].tobytes(), costs.boundary_s[d]), d)
    return list(kinds.values())


def _split(problem: Problem, spread: Ints, fixed: int) -> Ints | None:
    """``int32[N]`` best segments with the spread-out unit on device ``fixed``; None if none fit."""
    graph, costs, d = problem.graph, problem.costs, problem.num_devices
    units = problem.units
    chained = ~np.isin(units, spread)
    order, first = np.unique(units[chained], return_index=True)
    order = order[np.argsort(first)]
    node_of_unit = np.full(problem.num_units, -1, dtype=np.int32)
    node_of_unit[order] = np.arange(len(order))
    node = node_of_unit[units]
    nodes = len(order)
    streams = (
        np.array([device.streams for device in problem.cluster.devices], dtype=np.float64)
        if isinstance(problem.model, Pipeline)
        else np.ones(d)
    )
    base_s, room = np.zeros(d), problem.memory_bytes.copy()
    unit_bytes = problem.unit_constant_bytes
    if fixed >= 0:
        base_s[fixed] = problem.unit_seconds[spread[0], fixed] / streams[fixed]
        room[fixed] -= unit_bytes[spread[0]]
        if room[fixed] < 0 or np.isinf(base_s[fixed]):
            return None
    allowed = np.isfinite(problem.unit_seconds[order])
    seconds = np.zeros((nodes + 1, d))
    seconds[1:] = np.cumsum(np.where(allowed, problem.unit_seconds[order], 0.0), axis=0) / streams
    barred = np.zeros((nodes + 1, d), dtype=np.int64)
    barred[1:] = np.cumsum(~allowed, axis=0)
    held = np.concatenate(([0.0], np.cumsum(unit_bytes[order])))
    crossing, from_fixed = np.zeros((2, nodes + 1, nodes + 1)), np.zeros((2, nodes + 1, nodes + 1))
    to_fixed = np.zeros((2, nodes + 1))
    for t in range(graph.num_tensors):
        maker = int(node[graph.tensor_producer[t]])
        span = slice(graph.consumer_offsets[t], graph.consumer_offsets[t + 1])
        readers = np.unique(node[graph.consumer_ops[span]])
        size = np.array([costs.transfer_size[t], 1.0])
        if maker >= 0 and (readers == -1).any():
            to_fixed[:, maker + 1] += size
        readers = readers[(readers >= 0) & (readers != maker)]
        table = crossing if maker >= 0 else from_fixed
        for low, reader in itertools.pairwise([maker, *readers.tolist()]):
            # Segments that begin after ``low`` meet ``reader`` first.
            table[:, low + 1 : reader + 1, reader + 1] += size[:, None]
    value, parent = segment_split(
        seconds,
        barred,
        held,
        base_s,
        room,
        np.cumsum(crossing, axis=2),
        np.cumsum(from_fixed, axis=2),
        np.cumsum(to_fixed, axis=1),
        fixed,
        costs.link_latency_s,
        costs.link_s_per_byte,
        costs.boundary_s / streams,
        isinstance(problem.model, Pipeline),
    )
    device = np.full(problem.num_ops, fixed, dtype=np.int32)
    if nodes == 0:
        return device
    mask, last = (int(x) for x in np.unravel_index(np.argmin(value[nodes]), value[nodes].shape))
    if np.isinf(value[nodes, mask, last]):
        return None
    at, masks = nodes, value.shape[1]
    while at > 0:
        code = int(parent[at, mask, last])
        begin = code // (masks * d)
        device[(node >= begin) & (node < at)] = last
        at, mask, last = begin, code // d % masks, code % d
    return device
