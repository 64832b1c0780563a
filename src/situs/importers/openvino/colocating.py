"""Which ops must share a device, found from the model itself."""

from __future__ import annotations

import math
from typing import Any

from situs.importers.openvino.table import Row

SHAPE_PORTS: dict[str, tuple[int, ...]] = {
    "Reshape": (1,),
    "Broadcast": (1, 2),
    "Tile": (1,),
    "Pad": (1, 2),
    "Squeeze": (1,),
    "Unsqueeze": (1,),
    "StridedSlice": (1, 2, 3),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "VariadicSplit": (1, 2),
    "Interpolate": (1, 2, 3),
    "Range": (0, 1, 2),
    "OneHot": (1,),
    "TopK": (1,),
    "Eye": (0, 1, 2),
    "RandomUniform": (0,),
    "ConvolutionBackpropData": (2,),
    "GroupConvolutionBackpropData": (2,),
    "SpaceToBatch": (1, 2, 3),
    "BatchToSpace": (1, 2, 3),
    "NonMaxSuppression": (2,),
    "AdaptiveAvgPool": (1,),
    "AdaptiveMaxPool": (1,),
    "Transpose": (1,),
    "Col2Im": (1, 2),
}
"""Inputs whose *values* decide the shape of an op's output."""

_SHAPE_ELEMENTS = 64  # Larger tensors are data, whatever reads them.


class _Classes:
    """Union-find over row numbers, with path halving."""

    def __init__(self, count: int) -> None:
        self.parent = list(range(count))

    def find(self, a: int) -> int:
        parent = self.parent
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        return a

    def join(self, a: int, b: int) -> None:
        # The smaller number leads, so that classes do not depend on the order of joining.
        a, b = sorted((self.find(a), self.find(b)))
        self.parent[b] = a


def colocate(rows: list[Row]) -> list[int]:
    """Class of every row, named by its first member; -1 for a row alone or part of a constant.

    One class hold: a Result and its producer; a Parameter and its first reader; a state's
    ReadValue, Assign and all ops on paths between them; an op and the chain that computes its
    output's shape; producers and readers of strings or of tensors whose rank is open.
    """
    classes = _Classes(len(rows))
    parameters_read: set[int] = set()
    for i, row in enumerate(rows):
        if not row.placed:
            continue
        for source, port in row.sources:
            origin = rows[source]
            if not origin.placed:
                continue
            tensor = origin.outputs[port]
            first = origin.type == "Parameter" and source not in parameters_read
            if first or row.type == "Result" or tensor.open_rank or tensor.dtype == "string":
                classes.join(i, source)
            if first:
                parameters_read.add(source)
    _join_shape_chains(rows, classes)
    _join_states(rows, classes)
    leaders = [classes.find(i) if row.placed else -1 for i, row in enumerate(rows)]
    sizes: dict[int, int] = {}
    for leader in leaders:
        sizes[leader] = sizes.get(leader, 0) + 1
    return [leader if leader >= 0 and sizes[leader] > 1 else -1 for leader in leaders]


def _join_shape_chains(rows: list[Row], classes: _Classes) -> None:
    visited: set[int] = set()
    for i, row in enumerate(rows):
        if not row.placed:
            continue
        ports = SHAPE_PORTS.get(row.type, ())
        stack = [(i, row.sources[p]) for p in ports if p < len(row.sources)]
        while stack:
            reader, (source, port) = stack.pop()
            origin = rows[source]
            if not origin.placed or not _is_shape(origin, port):
                continue
            classes.join(reader, source)
            if source in visited or origin.type in ("ShapeOf", "Parameter"):
                continue
            visited.add(source)
            stack.extend((source, read) for read in origin.sources)


def _is_shape(row: Row, port: int) -> bool:
    tensor = row.outputs[port]
    return (
        not tensor.open_rank
        and len(tensor.shape) <= 1
        and math.prod(tensor.shape) <= _SHAPE_ELEMENTS
    )


def _join_states(rows: list[Row], classes: _Classes) -> None:
    """Join each state's ReadValue, Assign and the ops between (one bit per state, two sweeps)."""
    bits: dict[str, int] = {}
    reached, reaching = [0] * len(rows), [0] * len(rows)
    members: dict[int, int] = {}
    for i, row in enumerate(rows):
        mask = 0
        for source, _ in row.sources:
            mask |= reached[source]
        if row.type == "ReadValue":
            mask |= 1 << bits.setdefault(_variable(row.node), len(bits))
        reached[i] = mask
    if not bits:
        return
    for i in range(len(rows) - 1, -1, -1):
        row = rows[i]
        if row.type == "Assign" and _variable(row.node) in bits:
            reaching[i] |= 1 << bits[_variable(row.node)]
        for source, _ in row.sources:
            reaching[source] |= reaching[i]
    for i, row in enumerate(rows):
        both = reached[i] & reaching[i]
        if row.type in ("ReadValue", "Assign") and _variable(row.node) in bits:
            both |= 1 << bits[_variable(row.node)]
        while both and row.placed:
            bit = both & -both
            classes.join(i, members.setdefault(bit, i))
            both ^= bit


def _variable(node: Any) -> str:
    return str(node.get_attributes()["variable_id"])
