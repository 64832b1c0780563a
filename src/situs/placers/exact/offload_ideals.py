"""Ideals of an offload problem, and what a shortest way through them must know."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from situs.core import Problem
from situs.graph.arrays import Bools, Floats, Ints, csr, frozen
from situs.placers.exact._barrier_kernels import Stages
from situs.placers.exact.calls import OffloadArrays
from situs.placers.exact.stages import Ideals, StageGraph, ideals_of, stage_graph


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a way through the ideals; ``calls`` < 0: a region step with ``-1 - calls``."""

    before: int
    after: int
    calls: int
    seconds: float


def cut_nodes(stages: StageGraph) -> Bools:
    """``bool[V]`` nodes that come before or after every other node."""
    n = stages.num_nodes
    after = np.zeros((n, n), dtype=np.bool_)
    for v in range(n - 1, -1, -1):
        after[v, v] = True
        for p in stages.predecessors[v]:
            after[p] |= after[v]
    for v in range(n - 1, -1, -1):
        for p in stages.predecessors[v]:
            after[p] |= after[v]
    return frozen(after.sum(axis=0) + after.sum(axis=1) == n + 1, np.bool_)


@dataclass(frozen=True, eq=False)
class OffloadIdeals:
    """Everything that the shortest-way programme needs, for equal accelerators."""

    stages: StageGraph
    ideals: Ideals
    data: OffloadArrays
    accelerators: int

    def nodes(self, step: Step) -> Ints:
        """Nodes between the two ideals of a step."""
        bits = self.ideals.bits
        between = np.flatnonzero((bits[step.after] > 0) & (bits[step.before] == 0))
        chosen: Ints = frozen(between, np.int32)
        return chosen

    @cached_property
    def arrays(self) -> Stages:
        """The kernels' form."""
        data, ideals, stages = self.data, self.ideals, self.stages
        bits = ideals.bits
        degree = np.diff(stages.consumers[0]).astype(np.int32)
        out_s = np.array([t[2] for t in data.tensors], dtype=np.float64)
        in_s = np.array([t[3] for t in data.tensors], dtype=np.float64)
        weight = np.where(ideals.made.astype(np.bool_), out_s[:, None], in_s[:, None])
        barred = ~np.isfinite(data.accelerator_s)
        work = np.where(barred, 0.0, data.accelerator_s)
        group = (bits @ cut_nodes(stages)).astype(np.int32)
        offsets, preds = csr(stages.predecessors)
        return Stages(
            ideals.sets,
            ideals.visit,
            ideals.made,
            ideals.read,
            degree,
            bits @ work,
            (weight * ideals.crossing(degree)).sum(axis=0),
            out_s,
            in_s,
            bits @ data.node_bytes,
            data.limit_bytes,
            (bits @ barred).astype(np.int32),
            offsets,
            preds,
            np.asarray(data.cpu_s, dtype=np.float64),
            np.minimum(data.cpu_s, data.accelerator_s),
            np.asarray(data.release_s, dtype=np.float64),
            group,
            np.concatenate(([0], np.cumsum(np.bincount(group)))).astype(np.int32),
            np.lexsort((bits.sum(axis=1), group)).astype(np.int32),
        )


def given_ops(problem: Problem) -> Bools:
    """``bool[N]`` ops that only the CPU may run and that wait for no accelerator."""
    graph = problem.graph
    given = ~np.asarray(problem.allowed[:, 1:].any(axis=1))
    for u, v in zip(graph.edge_producer.tolist(), graph.consumer_ops.tolist(), strict=True):
        given[v] &= given[u]
    return frozen(given, np.bool_)


def _release(problem: Problem, stages: StageGraph, given: Bools) -> Floats:
    """``float64[V]`` when the given ops that each node reads are done, s."""
    graph = problem.graph
    end = np.where(given, problem.costs.seconds[:, 0], 0.0)
    release = np.zeros(stages.num_nodes)
    for u, v in zip(graph.edge_producer.tolist(), graph.consumer_ops.tolist(), strict=True):
        if given[u] and given[v]:
            end[v] = max(end[v], end[u] + problem.costs.seconds[v, 0])
        elif given[u] and stages.node_of_op[v] >= 0:
            node = stages.node_of_op[v]
            release[node] = max(release[node], end[u])
    return release


def offload_ideals(problem: Problem, limit: int) -> OffloadIdeals | None:
    """The programme of a problem whose units act as one; None if over ``limit`` ideals.

    Where there are too many, idle ops follow their neighbours without counting their bytes.
    """
    exact = _ideals_with(problem, limit, weightless=False)
    return _ideals_with(problem, limit, weightless=True) if exact is None else exact


def _ideals_with(problem: Problem, limit: int, weightless: bool) -> OffloadIdeals | None:
    given = given_ops(problem)
    stages = stage_graph(problem, given=given, weightless=weightless)
    costs = problem.costs
    every = np.arange(len(costs.transfer_size))[:, None]
    moved = stages.per_tensor(
        np.concatenate([costs.transfer_s(every, 1, 0), costs.transfer_s(every, 0, 1)], axis=1)
    )
    offsets, readers = stages.consumers
    tensors = tuple(
        (
            int(maker),
            tuple(readers[offsets[t] : offsets[t + 1]].tolist()),
            float(moved[t, 0]) if maker >= 0 else 0.0,
            float(moved[t, 1]),
        )
        for t, maker in enumerate(stages.producer)
    )
    data = OffloadArrays(
        _release(problem, stages, given),
        stages.seconds[:, 0],
        stages.seconds[:, 1],
        stages.node_bytes,
        float(problem.memory_bytes[1]),
        stages.predecessors,
        tensors,
    )
    ideals = ideals_of(stages, data.node_bytes, limit)
    if ideals is None:
        return None
    return OffloadIdeals(stages, ideals, data, problem.num_devices - 1)
