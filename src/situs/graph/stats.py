"""Counts and sizes that describe a graph to a person."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from situs.graph.graph import Graph


@dataclass(frozen=True, slots=True)
class GraphStats:
    """Summary of a graph; ``depth`` counts ops on the longest path, ``width`` ops at one depth."""

    ops: int
    tensors: int
    edges: int
    inputs: int
    outputs: int
    units: int
    depth: int
    width: int
    constant_bytes: int
    activation_bytes: int
    flop: float
    op_types: tuple[tuple[str, int], ...]


def op_depths(graph: Graph) -> np.ndarray:
    """``int32[N]`` number of ops on the longest path that ends before each op."""
    depth = np.zeros(graph.num_ops, dtype=np.int32)
    offsets, tensors = graph.inputs
    producer = graph.tensor_producer
    for op in range(graph.num_ops):
        read = tensors[offsets[op] : offsets[op + 1]]
        if len(read):
            depth[op] = depth[producer[read]].max() + 1
    return depth


def stats(graph: Graph) -> GraphStats:
    """Count ops, tensors, edges, depth, width, bytes and FLOP of a graph."""
    depths = op_depths(graph)
    return GraphStats(
        ops=graph.num_ops,
        tensors=graph.num_tensors,
        edges=graph.num_edges,
        inputs=int(graph.is_input.sum()),
        outputs=int(graph.is_output.sum()),
        units=int(graph.units.max()) + 1 if graph.num_ops else 0,
        depth=int(depths.max()) + 1 if graph.num_ops else 0,
        width=int(np.bincount(depths).max()) if graph.num_ops else 0,
        constant_bytes=int(graph.constant_bytes.sum()),
        activation_bytes=int(graph.tensor_bytes.sum()),
        flop=float(graph.op_flop.sum()),
        op_types=tuple(Counter(graph.op_types).most_common()),
    )
