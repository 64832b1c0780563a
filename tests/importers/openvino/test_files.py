"""Model files: the formats that are read, and one clear line for those that cannot be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import openvino as ov
import pytest
from model_files import write_graph_def, write_saved_model

from situs.errors import ModelError
from situs.importers import load_model
from situs.testing.models import light_models, onnx_unsorted, open_batch, two_towers


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
