"""Node features of the paper, each of which can be switched off, and node costs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situs.core import Problem
from situs.errors import ParameterError
from situs.graph import Graph
from situs.graph.arrays import Floats, Ints, csr_from_pairs
from situs.placers.learned import _kernels as kernels
from situs.placers.learned.nodes import NodeGraph, node_seconds

Features = NDArray[np.float32]

PAPER = ("type", "degree", "fractal", "position", "shape")
ALL = (*PAPER, "cost")
_MAX_DEGREE = 7
_POSITION = 16
_RANK = 6
# A search for the fractal dimension ends once it has seen this many nodes: at most 1e9 steps on
# 100,000 nodes, and never reached on graphs of up to 10,000.
_MOST_NODES = 10_000


def feature_names(without: str, given: tuple[str, ...]) -> tuple[str, ...]:
    """The features of ``given`` that ``without`` (names joined by ``+``) leaves.

    Raises:
        ParameterError: For a name that is not a feature, or if none is left.
    """
    out = [name.strip() for name in without.split("+") if name.strip()]
    for name in out:
        if name not in ALL:
            raise ParameterError(f"without={name}: features are {', '.join(ALL)}; join with +")
    left = tuple(name for name in given if name not in out)
    if not left:
        raise ParameterError(f"without={without} leaves no feature; keep one of {', '.join(given)}")
    return left


def node_features(problem: Problem, nodes: NodeGraph, use: tuple[str, ...] = PAPER) -> Features:
    """Features of every node, side by side in the order of ``use``: ``float32[V, F]``.

    ``type``: share of each op type in the node. ``degree``: one-hot in- and out-degree of the node,
    capped at 7. ``fractal``: fractal dimension on the undirected node graph. ``position``: sin/cos
    code of the node's index in topological order. ``shape``: largest output of the node's ops,
    log(1 + extent), padded to rank 6, and its rank. ``cost``: seconds of the node on each device as
    a share of its slowest, and the log of its own and its outputs' weight in the whole graph.

    Source: Duan et al., NeurIPS 2024, section 2.3; fractal dimension after Song et al., 2005.
    Differs: ``cost`` is ours; the fractal dimension is undirected, for on the directed graph
    unreachable nodes make it degenerate; shapes are log-scaled.
    """
    parts = {
        "type": lambda: _types(problem.graph, nodes),
        "degree": lambda: _degrees(nodes),
        "fractal": lambda: fractal_dimensions(nodes)[:, None],
        "position": lambda: position_code(nodes.num_nodes),
        "shape": lambda: _shapes(problem.graph, nodes),
        "cost": lambda: _costs(problem, nodes),
    }
    return np.concatenate([parts[name]() for name in use], axis=1).astype(np.float32)


def feature_width(use: tuple[str, ...], num_devices: int) -> int:
    """Columns of ``node_features`` for features that are as wide in every graph: all but types."""
    widths = {
        "degree": 2 * (_MAX_DEGREE + 1),
        "fractal": 1,
        "position": _POSITION,
        "shape": _RANK + 1,
        "cost": num_devices + 2,
    }
    return sum(widths[name] for name in use)


def _types(graph: Graph, nodes: NodeGraph) -> Floats:
    vocabulary, kind = np.unique(np.array(graph.op_types), return_inverse=True)
    share = np.zeros((nodes.num_nodes, len(vocabulary)))
    np.add.at(share, (nodes.node, kind), 1.0)
    share /= share.sum(axis=1, keepdims=True)
    return share


def _degrees(nodes: NodeGraph) -> Floats:
    hot = np.eye(_MAX_DEGREE + 1)
    ends = (nodes.target, nodes.source)
    counts = [np.bincount(end, minlength=nodes.num_nodes) for end in ends]
    return np.concatenate([hot[np.minimum(count, _MAX_DEGREE)] for count in counts], axis=1)


def neighbours(nodes: NodeGraph) -> tuple[Ints, Ints]:
    """CSR of the undirected node graph."""
    ends = np.concatenate([nodes.source, nodes.target])
    others = np.concatenate([nodes.target, nodes.source])
    return csr_from_pairs(ends, others, nodes.num_nodes)


def fractal_dimensions(nodes: NodeGraph) -> Floats:
    """Fractal dimension of every node, ``float64[V]``: growth of balls around it with radius."""
    dimension: Floats = kernels.fractal_dimension(*neighbours(nodes), _MOST_NODES)
    return dimension


def position_code(count: int, width: int = _POSITION) -> Floats:
    """``float64[count, width]``: sin(p / 10000^(2i / width)) at 2i, its cosine at 2i + 1.

    Source: Vaswani et al., "Attention is all you need", NeurIPS 2017, section 3.5.
    """
    angle = np.arange(count)[:, None] / 10000 ** (np.arange(0, width, 2) / width)
    code = np.empty((count, width))
    code[:, 0::2], code[:, 1::2] = np.sin(angle), np.cos(angle)
    return code


def _shapes(graph: Graph, nodes: NodeGraph) -> Floats:
    table = np.zeros((nodes.num_nodes, _RANK + 1))
    # Ascending by size, so that the largest tensor of a node is written last.
    for tensor in np.argsort(graph.tensor_bytes, kind="stable"):
        shape = graph.tensor_shape[tensor][-_RANK:]
        row = table[nodes.node[graph.tensor_producer[tensor]]]
        row[:] = 0.0
        row[: len(shape)] = np.log1p(shape) / 8
        row[_RANK] = len(shape) / _RANK
    return table


def _costs(problem: Problem, nodes: NodeGraph) -> Floats:
    seconds, weight = node_seconds(problem, nodes), np.zeros((nodes.num_nodes, 2))
    known = np.where(problem.allowed, problem.costs.seconds, 0.0)
    np.add.at(weight[:, 0], nodes.node, known.max(axis=1))
    producer = nodes.node[problem.graph.tensor_producer]
    np.add.at(weight[:, 1], producer, problem.costs.transfer_size)
    share = seconds / np.maximum(seconds.max(axis=1, keepdims=True), 1e-30)
    total = np.maximum(weight.sum(axis=0), 1e-30)
    return np.concatenate([share, np.log(1e-5 + weight / total) / 5 + 1], axis=1)
