"""A model's nodes as plain lists, read from OpenVINO in one pass."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from situs.importers.flop import OpShapes, op_flop

if TYPE_CHECKING:
    import openvino as ov

SINKS = frozenset(("Result", "Assign"))
_TIED_BYTES = 1024
BODIES = frozenset(("If", "Loop", "TensorIterator"))
_VARY = frozenset(("Parameter", "ReadValue", "RandomUniform", "Multinomial"))


@dataclass(frozen=True, slots=True)
class Tensor:
    """An output of a node; ``shape`` is an upper bound, 0 where there is none."""

    dtype: str
    shape: tuple[int, ...]
    size_bytes: int
    open_rank: bool


@dataclass(slots=True)
class Row:
    """A node; ``sources`` are ``(row, port)``.

    It ``varies`` if it depends on an input, a state or chance, and is ``placed`` if it is an op of
    the graph, not part of a constant. ``constants`` are the keys and sizes of a Constant itself,
    or of those inside an op's bodies.
    """

    node: ov.Node
    name: str
    type: str
    sources: list[tuple[int, int]]
    outputs: list[Tensor]
    varies: bool
    placed: bool
    flop: float = 0.0
    constants: dict[Any, int] = field(default_factory=dict)


def varies(node: Any, kind: str) -> bool:
    """Whether the value of a node of this type depends on more than its inputs."""
    if kind in BODIES:
        inside = ((n, n.get_type_name()) for body in bodies(node) for n in body.get_ops())
        return any(inner != "Parameter" and varies(n, inner) for n, inner in inside)
    return kind in _VARY


def bodies(node: Any) -> list[Any]:
    """The models inside an If, Loop or TensorIterator."""
    if node.get_type_name() == "If":
        return [node.get_then_body(), node.get_else_body()]
    return [node.get_function()]


def read_table(model: ov.Model) -> list[Row]:
    """Rows in topological order."""
    rows: list[Row] = []
    number: dict[int, int] = {}
    tensors: dict[tuple[str, str], Tensor] = {}
    for node in model.get_ordered_ops():
        kind = node.get_type_name()
        values = () if kind in ("Constant", "Parameter") else node.input_values()
        sources = [(number[v.get_node().get_instance_id()], v.get_index()) for v in values]
        changes = any(rows[s].varies for s, _ in sources) or varies(node, kind)
        row = Row(
            node,
            node.get_friendly_name(),
            kind,
            sources,
            [_tensor(node, i, tensors) for i in range(node.get_output_size())],
            changes,
            changes or kind in SINKS,
        )
        if kind == "Constant":
            row.constants = _constant(node, row.outputs[0])
        elif kind in BODIES:
            _add_bodies(row, rows)
        elif row.varies:
            row.flop = op_flop(_shapes(row, rows))
        number[node.get_instance_id()] = len(rows)
        rows.append(row)
    return rows


def _shapes(row: Row, rows: list[Row]) -> OpShapes:
    return OpShapes(
        row.type,
        [rows[s].outputs[port].shape for s, port in row.sources],
        [tensor.shape for tensor in row.outputs],
        row.node.get_attributes,
    )


def _tensor(node: ov.Node, port: int, known: dict[tuple[str, str], Tensor]) -> Tensor:
    partial = node.get_output_partial_shape(port)
    element = node.get_output_element_type(port)
    # Taking a shape apart costs ten times as much as its text, and most shapes repeat.
    key = partial.to_string(), element.get_type_name()
    if key not in known:
        if partial.rank.is_dynamic:
            shape: tuple[int, ...] = (0,)
        else:
            shape = tuple(max(0, dimension.get_max_length()) for dimension in partial)
        size = -(-math.prod(shape) * element.bitwidth // 8)
        known[key] = Tensor(key[1], shape, size, partial.rank.is_dynamic)
    return known[key]


def _constant(node: Any, tensor: Tensor) -> dict[Any, int]:
    size = int(node.get_byte_size())
    # Tied weights are separate nodes over one piece of memory: it is counted once. Taking the
    # address is slow, and small constants do not matter.
    if size < _TIED_BYTES or tensor.dtype == "string":
        return {node.get_instance_id(): size}
    address = node.data.__array_interface__["data"][0]
    return {(address, size): size}


def _add_bodies(row: Row, rows: list[Row]) -> None:
    """Add what an If, Loop or TensorIterator holds inside: constants, FLOP, chance."""
    runs = 1 if row.type == "If" else _iterations(row, rows)
    flop = 0.0
    for body in bodies(row.node):
        inner = read_table(body)
        for inside in inner:
            row.constants.update(inside.constants)
        flop = max(flop, sum(inside.flop for inside in inner))
    row.flop = runs * flop


def _iterations(row: Row, rows: list[Row]) -> int:
    """Trip count: of the sliced input, else of the constant that a Loop reads, else 1."""
    node: Any = row.node
    for description in node.get_input_descriptions():
        if hasattr(description, "axis"):
            source, port = row.sources[description.input_index]
            shape = rows[source].outputs[port].shape
            if shape:
                extent = shape[description.axis]
                return int(max(1, -(-extent // max(1, abs(description.part_size)))))
    if row.type == "Loop" and row.sources and rows[row.sources[0][0]].type == "Constant":
        constant: Any = rows[row.sources[0][0]].node
        count = int(constant.data.reshape(-1)[0])
        return count if 0 < count < 1 << 31 else 1
    return 1
