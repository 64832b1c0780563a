"""Cut a placed graph into acyclic segments: what is compiled and run as one."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from situs.errors import CompileError
from situs.graph import Graph
from situs.graph.arrays import Floats, Ints, frozen


@dataclass(frozen=True, eq=False)
class Segments:
    """A partition of the ops that is acyclic between its parts. ``S`` segments.

    Attributes:
        of_op: ``int32[N]`` segment of each op; -1 for inputs and outputs of the model, which are
            handed over directly and belong to no segment.
        device: ``int32[S]`` device of each segment.
        predecessors: Segments that must end before each one starts.
    """

    of_op: Ints
    device: Ints
    predecessors: tuple[frozenset[int], ...]

    @property
    def count(self) -> int:
        """Number of segments ``S``."""
        return len(self.device)


@dataclass(frozen=True, slots=True)
class SegmentCosts:
    """What the choice of segments weighs: seconds of each op where it is placed, and per segment.

    Attributes:
        op_s: ``float64[N]`` seconds of each op on its device.
        segment_s: Fixed seconds of starting one segment.
        handover_s: Fixed seconds of handing results to another device.
    """

    op_s: Floats
    segment_s: float = 5e-5
    handover_s: float = 2e-5


def finest_segments(graph: Graph, assignment: Ints, units: Ints) -> Segments:
    """The coarsest partition that delays nothing: no op waits for a tensor that it does not need.

    Ops share a segment if they are on one device, depend on the same tensors that cross between
    devices, and are needed by the same ones. Along any path the first set can only grow and the
    second only shrink, and a path that leaves the device changes one of them, so no path leaves a
    segment and comes back.

    Args:
        graph: The graph.
        assignment: ``int32[N]`` device of each op.
        units: ``int32[N]`` ops of one unit stay in one segment.

    Raises:
        CompileError: If a path between two ops of a unit passes through another device.
    """
    inner = ~(graph.is_input | graph.is_output)
    node_of = _acyclic_nodes(graph, units, inner)
    count = int(node_of.max(initial=-1)) + 1
    device = np.zeros(count, dtype=np.int32)
    device[node_of[inner]] = assignment[inner]
    split = np.flatnonzero(inner)[device[node_of[inner]] != assignment[inner]]
    if len(split):
        raise CompileError(
            f"op {graph.op_names[split[0]]!r} must stay in one sub-graph with ops on another "
            "device; place them together"
        )
    edges = inner[graph.edge_producer] & inner[graph.consumer_ops]
    p, c = node_of[graph.edge_producer[edges]], node_of[graph.consumer_ops[edges]]
    tensors = graph.edge_tensor[edges]
    between = p != c
    p, c, tensors = p[between], c[between], tensors[between]
    crossing = device[p] != device[c]
    bit = {int(t): 1 << k for k, t in enumerate(np.unique(tensors[crossing]))}
    arcs = [
        (a, b, bit[t] if x else 0)
        for a, b, t, x in zip(
            p.tolist(), c.tolist(), tensors.tolist(), crossing.tolist(), strict=True
        )
    ]
    order = _topological(count, arcs)
    rank = np.empty(count, dtype=np.int64)
    rank[order] = np.arange(count)
    needs, needed = [0] * count, [0] * count
    for a, b, cross in sorted(arcs, key=lambda arc: rank[arc[0]]):
        needs[b] |= needs[a] | cross
    for a, b, cross in sorted(arcs, key=lambda arc: -rank[arc[1]]):
        needed[a] |= needed[b] | cross
    number: dict[tuple[int, int, int], int] = {}
    part = np.zeros(count, dtype=np.int32)
    for node in order:
        key = (int(device[node]), needs[node], needed[node])
        part[node] = number.setdefault(key, len(number))
    of_op = np.full(graph.num_ops, -1, dtype=np.int32)
    of_op[inner] = part[node_of[inner]]
    part_device = np.array([key[0] for key in number], dtype=np.int32)
    return _with_predecessors(graph, of_op, part_device)


def _acyclic_nodes(graph: Graph, units: Ints, inner: np.ndarray) -> Ints:
    """``int32[N]`` node of each inner op: its unit, joined with all units on a cycle with it."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count = int(units.max(initial=-1)) + 1
    edges = inner[graph.edge_producer] & inner[graph.consumer_ops]
    a, b = units[graph.edge_producer[edges]], units[graph.consumer_ops[edges]]
    joined = coo_array((np.ones(len(a)), (a, b)), shape=(count, count))
    _, strong = connected_components(joined, directed=True, connection="strong")
    node = np.full(graph.num_ops, -1, dtype=np.int32)
    _, dense = np.unique(strong[units[inner]], return_inverse=True)
    node[inner] = dense
    return node


def _topological(count: int, arcs: list[tuple[int, int, int]]) -> list[int]:
    from situs.graph import topological_order

    return topological_order(count, [(a, b) for a, b, _ in arcs])


def _with_predecessors(graph: Graph, of_op: Ints, device: Ints) -> Segments:
    a, b = of_op[graph.edge_producer], of_op[graph.consumer_ops]
    real = (a >= 0) & (b >= 0) & (a != b)
    before: list[set[int]] = [set() for _ in device]
    for s, t in zip(a[real].tolist(), b[real].tolist(), strict=True):
        before[t].add(s)
    return Segments(
        frozen(of_op, np.int32), frozen(device, np.int32), tuple(map(frozenset, before))
    )


def makespan_s(segments: Segments, seconds: Floats, costs: SegmentCosts) -> float:
    """Seconds of one request when each device runs one segment at a time, longest path first."""
    after: list[list[int]] = [[] for _ in range(segments.count)]
    waiting = [len(before) for before in segments.predecessors]
    for t, before in enumerate(segments.predecessors):
        for s in before:
            after[s].append(t)
    device = segments.device.tolist()
    duration = (seconds + costs.segment_s).tolist()
    tail = [0.0] * segments.count
    order = [s for s in range(segments.count) if waiting[s] == 0]
    left = waiting.copy()
    for s in order:
        for t in after[s]:
            left[t] -= 1
            if left[t] == 0:
                order.append(t)
    for s in reversed(order):
        tail[s] = duration[s] + max((tail[t] for t in after[s]), default=0.0)
    ready_at = [0.0] * segments.count
    free_at: dict[int, float] = {}
    queue = [(0.0, -tail[s], s) for s in range(segments.count) if waiting[s] == 0]
    heapq.heapify(queue)
    end = 0.0
    while queue:
        ready, _, s = heapq.heappop(queue)
        start = max(ready, free_at.get(device[s], 0.0))
        if start > ready:
            # Others may become ready before the device is free, with a longer path behind them.
            heapq.heappush(queue, (start, -tail[s], s))
            continue
        finish = start + duration[s]
        free_at[device[s]] = finish
        end = max(end, finish)
        for t in after[s]:
            handover = costs.handover_s if device[t] != device[s] else 0.0
            ready_at[t] = max(ready_at[t], finish + handover)
            waiting[t] -= 1
            if waiting[t] == 0:
                heapq.heappush(queue, (ready_at[t], -tail[t], t))
    return end


def merged_segments(
    graph: Graph, segments: Segments, costs: SegmentCosts, most_tries: int = 4000
) -> Segments:
    """Merge segments of one device while the predicted makespan grows by 0.1 % at most.

    A merge must keep the quotient acyclic: no path between the two may pass through a third.
    """
    seconds = _segment_seconds(segments, costs)
    best_s = makespan_s(segments, seconds, costs)
    # Each segment costs time to compile too, so a tenth of a percent is given for fewer of them.
    allowed_s = best_s * 1.001
    tries = 0
    improved = True
    while improved and tries < most_tries:
        improved = False
        for a, b in _mergeable(segments):
            tries += 1
            trial = _merge(graph, segments, a, b)
            trial_seconds = _segment_seconds(trial, costs)
            value = makespan_s(trial, trial_seconds, costs)
            if value <= allowed_s:
                segments, seconds = trial, trial_seconds
                allowed_s = min(allowed_s, value * 1.001)
                improved = True
                break
            if tries >= most_tries:
                break
    return segments


def _segment_seconds(segments: Segments, costs: SegmentCosts) -> Floats:
    inner = segments.of_op >= 0
    sums = np.bincount(segments.of_op[inner], weights=costs.op_s[inner], minlength=segments.count)
    return sums.astype(np.float64)


def _mergeable(segments: Segments) -> list[tuple[int, int]]:
    """Pairs on one device with no path between them through a third; neighbours first."""
    count = segments.count
    arcs = [(s, t, 0) for t, before in enumerate(segments.predecessors) for s in before]
    order = _topological(count, arcs)
    above = [0] * count
    for t in order:
        for s in segments.predecessors[t]:
            above[t] |= above[s] | (1 << s)
    direct: list[tuple[int, int]] = []
    apart: list[tuple[int, int]] = []
    for i, a in enumerate(order):
        for b in order[i + 1 :]:
            if segments.device[a] != segments.device[b]:
                continue
            through = any(above[s] >> a & 1 for s in segments.predecessors[b] if s != a)
            if through:
                continue
            (direct if a in segments.predecessors[b] else apart).append((a, b))
    return direct + apart


def _merge(graph: Graph, segments: Segments, a: int, b: int) -> Segments:
    of_op = segments.of_op.copy()
    of_op[of_op == b] = a
    of_op[of_op > b] -= 1
    return _with_predecessors(graph, of_op, np.delete(segments.device, b))
