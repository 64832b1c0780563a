"""The order in which a contiguous split may cut a problem: units, their precedence, its ideals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from situs.core import Problem
from situs.graph.arrays import Bools, Floats, Ints, csr, frozen
from situs.graph.build import topological_order
from situs.placers.exact._ideal_kernels import list_ideals, tensor_states

BACKWARD = "Backward"


@dataclass(frozen=True, eq=False)
class StageGraph:
    """Nodes that move as one, numbered topologically, and what moves between them.

    Axes: ``V`` nodes, ``T`` tensors that leave a node, ``N`` ops.

    Attributes:
        problem: What it was made of.
        node_of_op: ``int32[N]`` node of each op; -1 = the op costs nothing wherever it is.
        predecessors: ``V`` lists of nodes.
        producer: ``int32[T]`` node that makes each tensor; -1 = it is there from the start.
        consumers: CSR ``(offsets[T + 1], nodes)`` of the other nodes that read it.
        tensor: ``int32[T]`` a tensor of the graph; equal ones are summed into ``weight``.
        weightless: ``bool[N]`` ops that followed a neighbour and whose bytes do not count.
        merged: ``T`` lists of all graph tensors that each stands for.
    """

    problem: Problem
    node_of_op: Ints
    predecessors: tuple[tuple[int, ...], ...]
    producer: Ints
    consumers: tuple[Ints, Ints]
    weightless: Bools
    merged: tuple[tuple[int, ...], ...]

    @property
    def num_nodes(self) -> int:
        """Number of nodes ``V``."""
        return len(self.predecessors)

    def per_node(self, per_op: Floats) -> Floats:
        """``[V, K]`` sums over the ops of each node of ``[N, K]`` figures."""
        total = np.zeros((self.num_nodes, per_op.shape[1]))
        kept = self.node_of_op >= 0
        np.add.at(total, self.node_of_op[kept], per_op[kept])
        return total

    def per_tensor(self, per_graph_tensor: Floats) -> Floats:
        """``[T, K]`` sums over the merged tensors of ``[graph tensors, K]`` figures."""
        if not self.merged:
            return np.zeros((0, per_graph_tensor.shape[1]))
        return np.stack([per_graph_tensor[list(group)].sum(axis=0) for group in self.merged])

    @cached_property
    def seconds(self) -> Floats:
        """``float64[V, D]`` run time of each node, s; ``inf`` where not allowed."""
        return self.per_node(np.where(self.problem.allowed, self.problem.costs.seconds, np.inf))

    @cached_property
    def node_bytes(self) -> Floats:
        """``float64[V]`` least bytes of each node: constants, each at its first reader."""
        graph = self.problem.graph
        read = np.diff(graph.reader_offsets) > 0
        first = graph.reader_ops[graph.reader_offsets[:-1][read]]
        per_op = np.bincount(first, graph.constant_bytes[read], self.problem.num_ops)
        per_op[self.weightless] = 0.0
        return self.per_node(per_op[:, None].astype(np.float64))[:, 0]

    @cached_property
    def most_bytes(self) -> Floats:
        """``float64[V]`` bytes that each node adds at most: its constants and its tensors."""
        graph = self.problem.graph
        made = np.bincount(graph.tensor_producer, graph.tensor_bytes, self.problem.num_ops)
        taken = np.bincount(
            graph.consumer_ops, graph.tensor_bytes[graph.edge_tensor], self.problem.num_ops
        )
        total = graph.op_constant_bytes + made + taken
        return self.per_node(total[:, None].astype(np.float64))[:, 0]

    def assignment(self, node_device: Ints, stage: Ints | None = None) -> Ints:
        """Device of every op. Free ops go to device 0, or where their first ``stage`` is."""
        problem = self.problem
        device = np.zeros(problem.num_ops, dtype=np.int32)
        kept = self.node_of_op >= 0
        device[kept] = node_device[self.node_of_op[kept]]
        if stage is None:
            return device
        offsets, readers = problem.graph.consumer_offsets, problem.graph.consumer_ops
        spans = problem.graph.op_tensors
        for op in np.flatnonzero(~kept):
            nodes = self.node_of_op[readers[offsets[spans[op]] : offsets[spans[op + 1]]]]
            nodes = nodes[nodes >= 0]
            if len(nodes):
                device[op] = node_device[nodes[np.argmin(stage[nodes])]]
        return device


@dataclass(frozen=True, eq=False)
class Ideals:
    """The ideals of a stage graph. Axes: ``I`` ideals, ``V`` nodes, ``T`` tensors.

    Attributes:
        sets: ``uint64[I, words]`` bit sets.
        visit: ``int32[I]`` ideals by number of nodes.
        made: ``uint8[T, I]`` producer inside.
        read: ``uint16[T, I]`` consumers inside.
        bits: ``float64[I, V]`` membership.
    """

    sets: np.ndarray
    visit: Ints
    made: np.ndarray
    read: np.ndarray
    bits: Floats

    @property
    def full(self) -> int:
        """The ideal that holds every node."""
        return int(self.visit[-1])

    def crossing(self, degree: Ints) -> Bools:
        """``bool[T, I]`` tensor has ends on both sides of the border."""
        inside = self.read + self.made.astype(np.uint16)
        crosses: Bools = (inside > 0) & (inside < degree[:, None] + 1)
        return crosses


def ideals_of(stages: StageGraph, sort_by: Floats, limit: int) -> Ideals | None:
    """List the ideals by their sum of ``sort_by`` (``float64[V]``); None if over ``limit``."""
    offsets, values = csr(stages.predecessors)
    sets, count = list_ideals(offsets, values, limit, (stages.num_nodes + 63) // 64)
    if count > limit:
        return None
    return _described(stages, sets[:count], sort_by)


def chain_of(stages: StageGraph, sort_by: Floats) -> Ideals:
    """The ideals of one topological order: its prefixes."""
    n = stages.num_nodes
    bits = np.tril(np.ones((n + 1, n), dtype=np.uint8), -1)
    padded = np.zeros((n + 1, (n + 63) // 64 * 64), dtype=np.uint8)
    padded[:, :n] = bits
    sets = np.packbits(padded, axis=1, bitorder="little").view(np.uint64)
    return _described(stages, sets, sort_by)


def _described(stages: StageGraph, sets: np.ndarray, sort_by: Floats) -> Ideals:
    raw = np.unpackbits(sets.view(np.uint8), axis=1, bitorder="little")[:, : stages.num_nodes]
    bits = raw.astype(np.float64)
    order = np.lexsort((bits.sum(axis=1), bits @ sort_by))
    sets, bits = np.ascontiguousarray(sets[order]), np.ascontiguousarray(bits[order])
    made, read = tensor_states(sets, stages.producer, *stages.consumers)
    visit = np.argsort(bits.sum(axis=1), kind="stable").astype(np.int32)
    return Ideals(sets, visit, made, read, bits)


def backward_ops(problem: Problem) -> Bools | None:
    """Mask of a training graph's backward ops, by their type; None if it has none."""
    mask = np.array([kind == BACKWARD for kind in problem.graph.op_types], dtype=np.bool_)
    return mask if mask.any() else None


def stage_graph(
    problem: Problem,
    backward: Bools | None = None,
    given: Bools | None = None,
    weightless: bool = False,
) -> StageGraph:
    """Contract units, and what every contiguous split must keep together, into nodes.

    Edges between ``backward`` ops count reversed (a pipeline runs the backward pass through its
    stages from last to first) and edges from forward to backward ops do not order stages, unless
    the graph as it is keeps more nodes apart (some files write the backward pass like the forward).
    Ops without work follow their only neighbour; free sources, and the ops ``given`` as done on
    device 0, are left out. With ``weightless``, idle ops follow even where memory may bind, and
    their bytes do not count: a relaxation.
    """
    graph = problem.graph
    given = np.zeros(problem.num_ops, dtype=np.bool_) if given is None else given
    label, dropped = _fold(problem, problem.units, weightless)
    dropped = dropped | given
    u, v = graph.edge_producer, graph.consumer_ops
    followed = label != problem.units
    strong = _strong_components(label, u, v)
    if backward is not None:
        both, neither = backward[u] & backward[v], ~backward[u] & ~backward[v]
        tail, head = np.where(both, v, u)[both | neither], np.where(both, u, v)[both | neither]
        turned = _strong_components(label, tail, head)
        if turned.max() > strong.max():
            u, v, strong = tail, head, turned
    label = strong
    kept = ~(dropped[u] | dropped[v])
    edges = {(int(a), int(b)) for a, b in zip(label[u[kept]], label[v[kept]], strict=True)}
    alive = sorted({int(x) for x in label[~dropped]})
    rank = {x: i for i, x in enumerate(alive)}
    pairs = sorted({(rank[a], rank[b]) for a, b in edges if a != b})
    position = np.empty(len(alive), dtype=np.int32)
    position[topological_order(len(alive), pairs)] = np.arange(len(alive))
    node = np.array([position[rank[int(x)]] if int(x) in rank else -1 for x in label], np.int32)
    node[dropped] = -1
    predecessors: list[set[int]] = [set() for _ in alive]
    for a, b in pairs:
        predecessors[position[b]].add(int(position[a]))
    groups: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for t in range(graph.num_tensors):
        maker = int(node[graph.tensor_producer[t]])
        span = graph.consumer_ops[graph.consumer_offsets[t] : graph.consumer_offsets[t + 1]]
        readers = tuple(sorted({int(x) for x in node[span]} - {maker, -1}))
        if readers and (maker >= 0 or given[graph.tensor_producer[t]]):
            groups.setdefault((maker, readers), []).append(t)
    return StageGraph(
        problem,
        frozen(node, np.int32),
        tuple(tuple(sorted(p)) for p in predecessors),
        frozen([maker for maker, _ in groups], np.int32),
        csr([readers for _, readers in groups]),
        frozen(followed & weightless, np.bool_),
        tuple(tuple(group) for group in groups.values()),
    )


def _fold(problem: Problem, label: Ints, weightless: bool) -> tuple[Ints, Bools]:
    """Join units without work to their only neighbour; mark sources that cost nothing anywhere.

    Both keep every optimum: moving such a unit to its neighbour never adds load.
    """
    graph, costs, units = problem.graph, problem.costs, problem.units
    produced = np.bincount(
        graph.tensor_producer, weights=graph.tensor_bytes, minlength=problem.num_ops
    )
    held = graph.op_constant_bytes + produced
    roomy = bool((problem.memory_bytes >= held.sum() + produced.sum()).all())
    busy_op = (
        (costs.seconds != 0).any(axis=1)
        | ~problem.allowed.all(axis=1)
        | ((held > 0) & (not roomy and not weightless))
    )
    idle = np.bincount(units, weights=busy_op, minlength=problem.num_units) == 0
    u, v = units[graph.edge_producer], units[graph.consumer_ops]
    apart = np.stack([u, v], axis=1)[u != v]
    pairs = np.unique(apart, axis=0) if len(apart) else apart
    makers: list[set[int]] = [set() for _ in range(problem.num_units)]
    readers: list[set[int]] = [set() for _ in range(problem.num_units)]
    for a, b in pairs.tolist():
        makers[b].add(a)
        readers[a].add(b)
    sent = np.bincount(
        units[graph.tensor_producer], weights=costs.transfer_size, minlength=problem.num_units
    )
    free_links = not costs.link_latency_s.any()
    target = np.arange(problem.num_units, dtype=np.int32)
    dropped = np.zeros(problem.num_units, dtype=np.bool_)
    for unit in np.flatnonzero(idle).tolist():
        around = makers[unit] | readers[unit]
        if not makers[unit] and readers[unit] and free_links and sent[unit] == 0:
            dropped[unit] = True
        elif len(around) == 1 and not idle[min(around)]:
            target[unit] = min(around)
    return target[label], dropped[units]


def _strong_components(label: Ints, u: Ints, v: Ints) -> Ints:
    count = int(label.max()) + 1 if len(label) else 0
    joined = coo_array((np.ones(len(u)), (label[u], label[v])), shape=(count, count))
    _, component = connected_components(joined, connection="strong")
    merged: Ints = component[label].astype(np.int32)
    return merged
