"""Models that OpenVINO reads (IR, ONNX, TensorFlow, TFLite, Paddle) to graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    if isinstance(source, str | Path):
        path = Path(source)
        model, name = prepare(read(path), shapes or {}, str(path), own=True), path.stem
    else:
        path, name = None, source.get_friendly_name()
        model = prepare(source, shapes or {}, "the model", own=False)
    graph, constant_owner = build(model, name)
    return Imported(graph, model, constant_owner, path)
