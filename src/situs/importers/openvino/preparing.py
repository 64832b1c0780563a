"""The prepared model: static inputs, folded constants, unique names."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from situs.errors import ModelError
from situs.importers.openvino.folding import fold
from situs.importers.openvino.reading import first_line
from situs.importers.openvino.table import Row, read_table

if TYPE_CHECKING:
    import openvino as ov


def prepare(
    model: ov.Model, shapes: Mapping[str, Sequence[int]], what: str, own: bool
) -> tuple[ov.Model, list[Row]]:
    """Return ``model`` (``own``) or a clone of it, ready to be placed, and its rows.

    Raises:
        ModelError: If an input's shape is open or a given shape does not fit; ``what`` names the
            model in the message.
    """
    prepared = model if own else model.clone()
    _fix_shapes(prepared, shapes, what)
    rows = read_table(prepared)
    nodes = [row.node for row in rows] if own else model.get_ordered_ops()
    unnamed = {name for node in nodes if (name := node.get_friendly_name()) == node.get_name()}
    if fold(prepared, rows):
        rows = read_table(prepared)
    _name_uniquely(rows, unnamed)
    return prepared, rows


def _fix_shapes(model: ov.Model, shapes: Mapping[str, Sequence[int]], what: str) -> None:
    import openvino as ov

    ports: dict[str, int] = {}
    names: list[str] = []
    for i, port in enumerate(model.inputs):
        aliases = [*sorted(port.get_names()), port.get_node().get_friendly_name()]
        names.append(aliases[0])
        ports.update((alias, i) for alias in aliases)
    wanted: dict[int, Sequence[int]] = {}
    for name, shape in shapes.items():
        if name == "" and len(names) == 1:
            wanted[0] = shape
        elif name in ports:
            wanted[ports[name]] = shape
        else:
            near = difflib.get_close_matches(name, ports, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ModelError(
                f"{what} has no input {name!r}; its inputs: {', '.join(names) or 'none'}{hint}"
            )
        if any(isinstance(d, bool) or int(d) != d or d < 0 for d in shape):
            raise ModelError(
                f"input {name!r}: shape {list(shape)} must be whole numbers of at least 0"
            )
    if wanted:
        try:
            model.reshape(
                {
                    model.inputs[i]: ov.PartialShape([int(d) for d in shape])
                    for i, shape in wanted.items()
                }
            )
        except RuntimeError as error:
            given = ", ".join(f"{names[i]}={list(s)}" for i, s in wanted.items())
            raise ModelError(
                f"{what} does not take the shape {given}: {first_line(error)}; give another --shape"
            ) from error
    for name, port in zip(names, model.inputs, strict=True):
        shape = port.get_partial_shape()
        if shape.is_dynamic:
            raise ModelError(
                f"{what}: input {name!r} has the open shape {shape}; "
                f"fix it with --shape {name}={_example(shape)}"
            )


def _example(shape: ov.PartialShape) -> str:
    if shape.rank.is_dynamic:
        return "1,3,224,224"
    return ",".join("1" if d.is_dynamic else str(d.get_length()) for d in shape)


def _name_uniquely(rows: list[Row], unnamed: set[str]) -> None:
    """Rename the rows and their nodes: a node without a name of its own by type and position."""
    # Constants come last, so that an op keeps its name where a constant bears the same one.
    order = sorted(rows, key=lambda row: row.type == "Constant")
    taken: set[str] = set()
    renamed: list[tuple[int, Row, str]] = []
    for i, row in enumerate(order):
        # A node without a friendly name shows its process-wide number instead.
        if row.name in unnamed or row.name == row.node.get_name():
            renamed.append((i, row, row.type))
        elif row.name in taken:
            renamed.append((i, row, row.name))
        else:
            taken.add(row.name)
    for i, row, stem in renamed:
        name = f"{stem}_{i}"
        while name in taken:
            name += "_"
        taken.add(name)
        row.name = name
        row.node.set_friendly_name(name)
