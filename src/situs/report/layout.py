"""Positions of a graph in layers, for drawing; the layout itself is fast-sugiyama's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from situs.errors import MissingExtraError
from situs.graph.arrays import Floats, frozen

# A row of a layer is this much higher than two neighbours are apart, so that edges stay readable.
_STRETCH = 0.6


@dataclass(frozen=True, eq=False)
class Layout:
    """A drawing of ``N`` nodes.

    Attributes:
        x: ``float64[N]``; neighbours of a layer are at least 1 apart.
        y: ``float64[N]``; later layers have smaller values.
        edges: Producer and reader of each edge.
        lines: Points of each edge from producer to reader, with its bends around nodes.
    """

    x: Floats
    y: Floats
    edges: tuple[tuple[int, int], ...]
    lines: tuple[tuple[tuple[float, float], ...], ...]


def layered(num_nodes: int, edges: Iterable[tuple[int, int]]) -> Layout:
    """Lay a directed acyclic graph out in layers.

    Args:
        num_nodes: Number of nodes ``N``.
        edges: Pairs of node numbers, producer first; repeated ones count once.

    Raises:
        MissingExtraError: If fast-sugiyama is not installed.

    Source: Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system
    structures", IEEE Trans. SMC 11(2), 1981.
    """
    try:
        from fast_sugiyama import from_edges
    except ImportError as error:
        raise MissingExtraError("fast-sugiyama", "report") from error
    pairs = sorted({(int(a), int(b)) for a, b in edges if a != b})
    joined = sorted({node for pair in pairs for node in pair})
    # Bends get the numbers after the largest node's, so that the nodes are numbered densely.
    dense = {node: k for k, node in enumerate(joined)}
    links = [(dense[a], dense[b]) for a, b in pairs]
    found = from_edges(links, vertex_spacing=1, dummy_vertices=True) if links else None
    at: dict[int, tuple[float, float]] = {}
    lines: list[tuple[tuple[int, int], tuple[tuple[float, float], ...]]] = []
    right = 0.0
    for positions, width, _, segments in found or []:
        spots = {int(node): (float(x), float(y)) for node, (x, y) in positions}
        left, top = min(x for x, _ in spots.values()), max(y for _, y in spots.values())
        # Components stand side by side, their first layers level.
        spots = {n: (x - left + right, (y - top) * _STRETCH) for n, (x, y) in spots.items()}
        right += float(width) + 2.0
        at |= {joined[node]: spot for node, spot in spots.items() if node < len(joined)}
        lines += _lines(spots, [(int(a), int(b)) for a, b in segments or []], joined)
    for node in range(num_nodes):
        if node not in dense:
            at[node] = (right, 0.0)
            right += 1.0
    xy = np.array([at[node] for node in range(num_nodes)], dtype=np.float64).reshape(-1, 2)
    return Layout(
        frozen(xy[:, 0], np.float64),
        frozen(xy[:, 1], np.float64),
        tuple(edge for edge, _ in lines),
        tuple(points for _, points in lines),
    )


def _lines(
    spots: dict[int, tuple[float, float]], segments: list[tuple[int, int]], joined: list[int]
) -> list[tuple[tuple[int, int], tuple[tuple[float, float], ...]]]:
    """Edges by their nodes, with the segments between bends joined."""
    nodes = len(joined)
    after = {a: b for a, b in segments if a >= nodes}
    lines = []
    for a, b in segments:
        if a >= nodes:
            continue
        points = [spots[a], spots[b]]
        while b >= nodes:
            b = after[b]
            points.append(spots[b])
        lines.append(((joined[a], joined[b]), tuple(points)))
    return lines
