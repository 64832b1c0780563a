"""Models that OpenVINO reads (IR, ONNX, TensorFlow, TFLite, Paddle) to graphs."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from situs.graph import Graph
from situs.importers.openvino.building import build
from situs.importers.openvino.preparing import prepare
from situs.importers.openvino.reading import read

if TYPE_CHECKING:
    import openvino as ov

__all__ = ["Imported", "load_model"]


@dataclass(frozen=True, eq=False)
class Imported:
    """A graph and the prepared model that it describes.

    Attributes:
        graph: One op for every node of ``model`` that is not part of a constant; ``op_names`` are
            those nodes' friendly names. Shapes are upper bounds where a dimension is open inside
            the model; an unbounded one counts as 0.
        model: Static inputs, constants folded (compressed weights kept), every friendly name
            unique. Not the caller's object.
        constant_owner: For every other node (constants and the chains that decompress them), by
            friendly name, the first op that reads it: it belongs on that op's device.
        path: The file that the model came from; None for an ``ov.Model``.
    """

    graph: Graph
    model: ov.Model
    constant_owner: Mapping[str, int]
    path: Path | None = None


def load_model(
    source: str | Path | ov.Model, shapes: Mapping[str, Sequence[int]] | None = None
) -> Imported:
    """Read a model and describe it as a graph.

    The model is prepared first: input shapes are fixed, constants folded, names made unique. A
    given ``ov.Model`` is cloned and stays as it is. Nodes without a name of their own are named by
    type and position, so that two loads agree.

    Args:
        source: A file (``.xml``, ``.onnx``, ``.pb``, ``.tflite``, ``.pdmodel``, ...), a SavedModel
            folder, or a model in memory.
        shapes: Shape per input name; the name ``""`` means the only input.

    Raises:
        ModelError: If the model cannot be read, an input's shape is open, or a shape does not fit.
    """
    path = Path(source) if isinstance(source, str | Path) else None
    with _collector_paused():
        model = source if path is None else read(path)
        what = "the model" if path is None else str(path)
        prepared, rows = prepare(model, shapes or {}, what, own=path is not None)
        name = prepared.get_friendly_name() if path is None else path.stem
        graph, constant_owner = build(rows, name)
    return Imported(graph, prepared, constant_owner, path)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Import makes many objects and no cycles; collecting them again and again takes a third."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
