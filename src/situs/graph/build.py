"""Build a Graph from ops and edges in any order, sorting them topologically."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from situs.errors import GraphError
from situs.graph.arrays import csr
from situs.graph.graph import Graph


@dataclass(slots=True)
class OpSpec:
    """One op as an importer sees it; sources are ``(op, port)`` with op numbers in list order."""

    name: str
    type: str
    sources: list[tuple[int, int]] = field(default_factory=list)
    output_shapes: list[tuple[int, ...]] = field(default_factory=list)
    output_dtypes: list[str] = field(default_factory=list)
    output_bytes: list[int] = field(default_factory=list)
    constants: list[int] = field(default_factory=list)
    flop: float = 0.0
    colocation: int = -1
    is_input: bool = False
    is_output: bool = False


def topological_order(num_ops: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Order ops so that each comes after its producers; ties by the smallest number.

    Raises:
        GraphError: If the edges form a cycle.

    Source: Kahn, "Topological sorting of large networks", CACM 5(11), 1962.
    """
    if all(u < v for u, v in edges):
        return list(range(num_ops))  # What the heap would find: importers list ops in order.
    successors: list[list[int]] = [[] for _ in range(num_ops)]
    waiting = [0] * num_ops
    for u, v in edges:
        successors[u].append(v)
        waiting[v] += 1
    ready = [i for i in range(num_ops) if waiting[i] == 0]
    order: list[int] = []
    while ready:
        u = heapq.heappop(ready)
        order.append(u)
        for v in successors[u]:
            waiting[v] -= 1
            if waiting[v] == 0:
                heapq.heappush(ready, v)
    if len(order) != num_ops:
        raise GraphError(f"the graph has a cycle through {num_ops - len(order)} of its ops")
    return order


def build_graph(name: str, ops: Sequence[OpSpec], constant_bytes: Sequence[int] = ()) -> Graph:
    """Build a Graph; ``OpSpec.constants`` index into ``constant_bytes``.

    Raises:
        GraphError: If a source names an op or port that does not exist, or there is a cycle.
    """
    for op in ops:
        for source, port in op.sources:
            if not 0 <= source < len(ops) or not 0 <= port < len(ops[source].output_bytes):
                raise GraphError(f"op {op.name!r} reads output {port} of op {source}: none such")
    order = topological_order(
        len(ops), sorted({(s, i) for i, op in enumerate(ops) for s, _ in op.sources})
    )
    position = {old: new for new, old in enumerate(order)}
    tensor_of: dict[tuple[int, int], int] = {}
    producers: list[int] = []
    ports: list[int] = []
    for old in order:
        for port in range(len(ops[old].output_bytes)):
            tensor_of[old, port] = len(producers)
            producers.append(position[old])
            ports.append(port)
    consumers: list[set[int]] = [set() for _ in producers]
    readers: list[set[int]] = [set() for _ in constant_bytes]
    for old, op in enumerate(ops):
        for read in op.sources:
            consumers[tensor_of[read]].add(position[old])
        for constant in op.constants:
            readers[constant].add(position[old])
    consumer_offsets, consumer_ops = csr([sorted(c) for c in consumers])
    reader_offsets, reader_ops = csr([sorted(r) for r in readers])
    sorted_ops = [ops[old] for old in order]
    return Graph(
        name=name,
        op_names=tuple(op.name for op in sorted_ops),
        op_types=tuple(op.type for op in sorted_ops),
        tensor_producer=np.array(producers, dtype=np.int32),
        tensor_port=np.array(ports, dtype=np.int32),
        tensor_dtype=tuple(d for op in sorted_ops for d in op.output_dtypes),
        tensor_shape=tuple(s for op in sorted_ops for s in op.output_shapes),
        tensor_bytes=np.array([b for op in sorted_ops for b in op.output_bytes], dtype=np.int64),
        consumer_offsets=consumer_offsets,
        consumer_ops=consumer_ops,
        constant_bytes=np.array(constant_bytes, dtype=np.int64),
        reader_offsets=reader_offsets,
        reader_ops=reader_ops,
        op_flop=np.array([op.flop for op in sorted_ops], dtype=np.float64),
        colocation=np.array([op.colocation for op in sorted_ops], dtype=np.int32),
        is_input=np.array([op.is_input for op in sorted_ops], dtype=np.bool_),
        is_output=np.array([op.is_output for op in sorted_ops], dtype=np.bool_),
    )
