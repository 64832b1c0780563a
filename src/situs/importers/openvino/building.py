"""From a prepared model to its graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from situs.graph import Graph, OpSpec, build_graph
from situs.importers.openvino.colocating import colocate
from situs.importers.openvino.folding import keeps_compressed
from situs.importers.openvino.table import Row


def build(rows: list[Row], name: str) -> tuple[Graph, dict[str, int]]:
    """The graph of a prepared model's rows, and the first reader of every other node by name."""
    classes = colocate(rows)
    position = {row: i for i, row in enumerate(i for i, r in enumerate(rows) if r.placed)}
    constant_number: dict[Any, int] = {}
    constant_bytes: list[int] = []

    def number(constants: Iterable[tuple[Any, int]]) -> list[int]:
        for key, size in constants:
            if key not in constant_number:
                constant_number[key] = len(constant_bytes)
                constant_bytes.append(size)
        return [constant_number[key] for key, _ in constants]

    stored = _stored(rows)
    specs = []
    for i in position:
        row = rows[i]
        read = dict(row.constants)
        for source, port in row.sources:
            if not rows[source].placed:
                read.update(_read(rows, stored, source, port))
        outputs = [] if row.type in ("Result", "Assign") else row.outputs
        specs.append(
            OpSpec(
                name=row.name,
                type=row.type,
                sources=[(position[s], port) for s, port in row.sources if s in position],
                output_shapes=[tensor.shape for tensor in outputs],
                output_dtypes=[tensor.dtype for tensor in outputs],
                output_bytes=[tensor.size_bytes for tensor in outputs],
                constants=number(list(read.items())),
                flop=row.flop,
                colocation=-1 if classes[i] < 0 else position[classes[i]],
                is_input=row.type == "Parameter",
                is_output=row.type == "Result",
            )
        )
    graph = build_graph(name, specs, constant_bytes)
    return graph, _owners(rows, graph)


def _stored(rows: list[Row]) -> dict[int, dict[Any, int]]:
    """Leaf constants of the sub-graphs that decompress weights, by row."""
    stored: dict[int, dict[Any, int]] = {}
    for i, row in enumerate(rows):
        if row.placed or row.type == "Constant":
            continue
        if keeps_compressed(row.node, row.type) or any(s in stored for s, _ in row.sources):
            leaves = dict(row.constants)
            for source, port in row.sources:
                leaves.update(_read(rows, stored, source, port))
            stored[i] = leaves
    return stored


def _read(
    rows: list[Row], stored: dict[int, dict[Any, int]], source: int, port: int
) -> dict[Any, int]:
    """Keys and sizes of the constants behind an input: stored bytes, else the result's."""
    row = rows[source]
    if row.type == "Constant":
        return row.constants
    if source in stored:
        return stored[source]
    return {("result", source, port): row.outputs[port].size_bytes}


def _owners(rows: list[Row], graph: Graph) -> dict[str, int]:
    first: dict[int, int] = {}
    for i in range(len(rows) - 1, -1, -1):
        reader = graph.op_index[rows[i].name] if rows[i].placed else first[i]
        for source, _ in rows[i].sources:
            if not rows[source].placed:
                first[source] = min(reader, first.get(source, reader))
    return {rows[i].name: reader for i, reader in sorted(first.items())}
