"""Writers of one small network, ``relu(x @ w)``, in the formats of other frameworks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

WEIGHTS = np.arange(16, dtype=np.float32).reshape(4, 4) - 8


def _graph_def() -> Any:
    from tensorboard.compat.proto import graph_pb2, types_pb2

    graph = graph_pb2.GraphDef()

    def node(name: str, op: str, inputs: list[str]) -> Any:
        new = graph.node.add(name=name, op=op, input=inputs)
        new.attr["T" if inputs else "dtype"].type = types_pb2.DT_FLOAT
        return new

    x = node("x", "Placeholder", [])
    for size in (1, 4):
        x.attr["shape"].shape.dim.add().size = size
    value = node("w", "Const", []).attr["value"].tensor
    value.dtype = types_pb2.DT_FLOAT
    value.tensor_content = WEIGHTS.tobytes()
    for size in WEIGHTS.shape:
        value.tensor_shape.dim.add().size = size
    product = node("product", "MatMul", ["x", "w"])
    product.attr["transpose_a"].b = product.attr["transpose_b"].b = False
    node("y", "Relu", ["product"])
    return graph


def write_graph_def(path: Path) -> Path:
    path.write_bytes(_graph_def().SerializeToString())
    return path


def write_saved_model(folder: Path) -> Path:
    from tensorboard.compat.proto import meta_graph_pb2, types_pb2

    meta = meta_graph_pb2.MetaGraphDef()
    meta.graph_def.CopyFrom(_graph_def())
    meta.meta_info_def.tags.append("serve")
    signature = meta.signature_def["serving_default"]
    signature.method_name = "tensorflow/serving/predict"
    for ports, name in ((signature.inputs, "x"), (signature.outputs, "y")):
        ports[name].name, ports[name].dtype = f"{name}:0", types_pb2.DT_FLOAT
        for size in (1, 4):
            ports[name].tensor_shape.dim.add().size = size
    content = meta.SerializeToString()
    # SavedModel: field 1 is the version, field 2 a MetaGraphDef.
    (folder / "variables").mkdir(parents=True)
    data = b"\x08\x01\x12" + _varint(len(content)) + content
    (folder / "saved_model.pb").write_bytes(data)
    return folder


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])
