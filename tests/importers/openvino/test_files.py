"""Model files: the formats that are read, and one clear line for those that cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino as ov
import pytest

from situs.errors import ModelError
from situs.importers import load_model
from situs.testing.models import light_models, onnx_unsorted, open_batch, two_towers

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


def one_line(caught: pytest.ExceptionInfo[ModelError]) -> str:
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 600
    return message


@pytest.mark.parametrize("folder", ["plain", "with space and ü"])
def test_ir_and_onnx_and_tensorflow(tmp_path: Path, folder: str) -> None:
    home = tmp_path / folder
    home.mkdir()
    ov.save_model(two_towers(), home / "net.xml")
    ir = load_model(home / "net.xml")
    assert ir.path == home / "net.xml"
    assert ir.graph.name == "net"
    assert ir.graph.op_types.count("Convolution") == 4

    onnx.save(onnx_unsorted(), str(home / "net.onnx"))
    assert load_model(str(home / "net.onnx")).graph.op_types[1:4] == ("Tanh", "Sigmoid", "Relu")

    for path in (write_graph_def(home / "net.pb"), write_saved_model(home / "saved")):
        graph = load_model(path).graph
        assert graph.op_types == ("Parameter", "MatMul", "Relu", "Result")
        assert graph.constant_bytes.tolist() == [64]
        assert graph.op_flop.tolist() == [0, 2 * 4 * 4, 4, 0]


def test_onnx_with_external_data(tmp_path: Path) -> None:
    weights = onnx.numpy_helper.from_array(np.ones((64, 64), np.float32), "W")
    x, y = (onnx.helper.make_tensor_value_info(n, 1, [1, 64]) for n in "xy")
    node = onnx.helper.make_node("MatMul", ["x", "W"], ["y"])
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [x], [y], [weights]))
    path = tmp_path / "net.onnx"
    onnx.save(model, str(path), save_as_external_data=True, location="net.data", size_threshold=0)
    assert load_model(path).graph.constant_bytes.tolist() == [64 * 64 * 4]

    (tmp_path / "net.data").unlink()
    with pytest.raises(ModelError, match=r"net\.onnx"):
        load_model(path)


def test_external_data_outside_the_folder_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(bytes(64 * 4))
    inner = tmp_path / "inner"
    inner.mkdir()
    weights = onnx.numpy_helper.from_array(np.ones((8, 8), np.float32), "W")
    weights.ClearField("raw_data")
    weights.data_location = onnx.TensorProto.EXTERNAL
    weights.external_data.add(key="location", value="../secret")
    x, y = (onnx.helper.make_tensor_value_info(n, 1, [1, 8]) for n in "xy")
    node = onnx.helper.make_node("MatMul", ["x", "W"], ["y"])
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [x], [y], [weights]))
    (inner / "net.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(ModelError) as caught:
        load_model(inner / "net.onnx")
    one_line(caught)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("text.onnx", b"hello world\n" * 50, "cannot read"),
        ("empty.onnx", b"", "empty"),
        ("empty.xml", b"", "empty"),
        ("broken.xml", b'<net name="a"', "cannot read"),
        ("noise.pb", bytes(range(256)), "cannot read"),
        ("noise.tflite", bytes(range(256)), "cannot read"),
        ("noise.pdmodel", bytes(range(256)), "cannot read"),
        ("model.pth", b"x", "unknown file type '.pth'"),
        ("model", b"x", "unknown file type ''"),
    ],
)
def test_a_file_that_is_no_model(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ModelError, match=says) as caught:
        load_model(path)
    assert str(path) in one_line(caught)


def test_missing_file_and_folder_that_is_no_saved_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="No such file"):
        load_model(tmp_path / "none.onnx")
    with pytest.raises(ModelError, match=r"saved_model\.pb"):
        load_model(tmp_path)
    with pytest.raises(ModelError, match="null"):
        load_model("a\0.onnx")


@pytest.mark.parametrize("part", [0.001, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_onnx(tmp_path: Path, part: float) -> None:
    whole = light_models()["light_squeezenet"].read_bytes()
    path = tmp_path / "cut.onnx"
    path.write_bytes(whole[: int(part * len(whole))])
    with pytest.raises(ModelError) as caught:
        load_model(path)
    assert str(path) in one_line(caught)


def test_ir_without_its_weights(tmp_path: Path) -> None:
    ov.save_model(two_towers(), tmp_path / "net.xml")
    (tmp_path / "net.bin").unlink()
    with pytest.raises(ModelError, match=r"bin file") as caught:
        load_model(tmp_path / "net.xml")
    one_line(caught)


def test_an_open_dimension_names_the_input_and_the_option() -> None:
    with pytest.raises(ModelError, match=r"input 'x' has the open shape \[\?,3\].*--shape x=1,3"):
        load_model(open_batch())


@pytest.mark.parametrize("key", ["x", ""])
def test_a_given_shape_fixes_it(key: str) -> None:
    model = open_batch()
    graph = load_model(model, {key: [5, 3]}).graph
    assert graph.tensor_shape[0] == (5, 3)
    assert model.inputs[0].get_partial_shape().is_dynamic


@pytest.mark.parametrize(
    ("shapes", "says"),
    [
        ({"X": [5, 3]}, r"no input 'X'; its inputs: x"),
        ({"x": [5, -3]}, "whole numbers"),
        ({"x": [5, 2.5]}, "whole numbers"),
    ],
)
def test_a_shape_that_cannot_be_used(shapes: dict[str, list[int]], says: str) -> None:
    with pytest.raises(ModelError, match=says) as caught:
        load_model(open_batch(), shapes)
    one_line(caught)


def test_a_shape_that_the_model_cannot_take() -> None:
    with pytest.raises(ModelError, match=r"does not take the shape x=\[1, 5, 16, 16\]") as caught:
        load_model(two_towers(), {"x": [1, 5, 16, 16]})
    one_line(caught)
