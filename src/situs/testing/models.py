"""Real and tiny models: the ``light_*`` networks, and one of each kind that breaks such tools.

Every builder of ``TINY_MODELS`` returns an ``ov.Model`` that one CPU can compile and run; the
docstring says what is special about it. ``onnx_*`` functions return ONNX protobuf models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import onnx
    import openvino as ov

_F32 = np.float32


def light_models() -> dict[str, Path]:
    """The nine ``light_*.onnx`` networks that the onnx package ships, by name.

    Their weights are constant; see ``situs.testing.weights.randomize_weights``.
    """
    import onnx

    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    return {path.stem: path for path in sorted(folder.glob("light_*.onnx"))}


def _ops() -> Any:
    from openvino import opset15

    return opset15


def _model(outputs: list[Any], inputs: list[Any], name: str, sinks: list[Any] | None = None) -> Any:
    import openvino as ov

    op = _ops()
    results = [op.result(out) for out in outputs]
    return ov.Model(results, sinks or [], inputs, name)


def _weights(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(_F32)


def two_towers(blocks: int = 2) -> ov.Model:
    """Two independent branches of convolutions that meet in a Concat."""
    op = _ops()
    x = op.parameter([1, 3, 16, 16], _F32, name="x")
    ends = []
    for tower in "ab":
        y = x
        for i in range(blocks):
            filters = _weights(8, 3 if i == 0 else 8, 3, 3, seed=i + 10 * (tower == "b"))
            y = op.convolution(y, op.constant(filters), [1, 1], [1, 1], [1, 1], [1, 1])
            y = op.relu(y, name=f"{tower}{i}")
        ends.append(y)
    return _model([op.concat(ends, 1)], [x], "two_towers")


def shared_constant() -> ov.Model:
    """One constant read by ops of both branches; merging devices through it makes a cycle."""
    op = _ops()
    x = op.parameter([1, 8], _F32, name="x")
    shared = op.constant(_weights(1, 8), name="shared")
    a = op.relu(op.add(x, shared))
    b = op.sigmoid(op.multiply(a, shared))
    return _model([op.add(op.subtract(b, shared), a)], [x], "shared_constant")


def state() -> ov.Model:
    """ReadValue and Assign of one state with ops between them; a running sum."""
    op = _ops()
    from openvino import opset6

    x = op.parameter([1, 4], _F32, name="x")
    read = opset6.read_value(op.constant(np.zeros((1, 4), _F32)), "sum")
    scaled = op.relu(op.add(read, x, name="between"), name="path")
    assign = opset6.assign(scaled, "sum")
    return _model([op.multiply(scaled, x, name="after")], [x], "state", [assign])


def two_states() -> ov.Model:
    """Two states, independent of each other, behind one input."""
    op = _ops()
    from openvino import opset6

    x = op.parameter([1, 4], _F32, name="x")
    sinks, ends = [], []
    for name in ("k", "v"):
        read = opset6.read_value(op.constant(np.zeros((1, 4), _F32)), name)
        total = op.add(read, x, name=f"{name}_add")
        sinks.append(opset6.assign(total, name))
        ends.append(op.relu(total, name=f"{name}_relu"))
    return _model([op.add(*ends)], [x], "two_states", sinks)


def shape_chain() -> ov.Model:
    """ShapeOf, Gather and Concat compute the target of a Reshape of an open dimension."""
    op = _ops()
    x = op.parameter([4, 4], _F32, name="x")
    rows = op.convert(op.transpose(op.non_zero(x), op.constant([1, 0])), "f32", name="rows")
    count = op.gather(
        op.shape_of(rows, "i64", name="shape"), op.constant([0]), op.constant(0), name="count"
    )
    target = op.concat([count, op.constant(np.array([2, 1]))], 0, name="target")
    shaped = op.reshape(rows, target, False, name="shaped")
    return _model([op.relu(shaped, name="end")], [x], "shape_chain")


def static_shape_chains(layers: int = 4) -> ov.Model:
    """Shape, Gather, Concat and Reshape repeated per layer over static shapes: all must fold."""
    op = _ops()
    x = op.parameter([2, 12], _F32, name="x")
    y = x
    for i in range(layers):
        batch = op.gather(op.shape_of(y), op.constant([0]), op.constant(0))
        split = op.concat([batch, op.constant(np.array([3, 4]))], 0)
        y = op.relu(op.reshape(y, split, False), name=f"relu{i}")
        flat = op.concat([op.gather(op.shape_of(y), op.constant([0]), op.constant(0)), [-1]], 0)
        y = op.reshape(y, flat, False)
    return _model([y], [x], "static_shape_chains")


def duplicate_names() -> ov.Model:
    """Three ops with one friendly name, which is also an input's; and names of no letters."""
    op = _ops()
    x = op.parameter([1, 4], _F32, name="same")
    a = op.relu(x, name="same")
    b = op.sigmoid(a, name="same")
    c = op.add(b, op.constant(_weights(1, 4), name="same"), name="")
    return _model([op.tanh(c, name="")], [x], "duplicate_names")


def weird_names() -> ov.Model:
    """Names with separators, quotes, markup, control and non-ASCII characters."""
    op = _ops()
    x = op.parameter([1, 4], _F32, name="in:0/ü")
    names = ['a"b\\c', "<script>alert(1)</script>", "line\nbreak\ttab", "名前.1", "../../etc", " "]
    y = x
    for name in names:
        y = op.relu(op.add(y, op.constant(_weights(1, 4))), name=name)
    return _model([y], [x], "weird_names")


def loop_body() -> ov.Model:
    """A TensorIterator whose body holds a weight: 5 steps of a matrix product."""
    import openvino as ov

    op = _ops()
    x = op.parameter([5, 1, 8], _F32, name="x")
    start = op.parameter([1, 8], _F32, name="start")
    step, carried = op.parameter([1, 1, 8], _F32), op.parameter([1, 8], _F32)
    product = op.matmul(
        op.squeeze(step, op.constant([0])), op.constant(_weights(8, 8)), False, False
    )
    following = op.tanh(op.add(product, carried))
    body = ov.Model([op.result(following)], [step, carried], "body")
    iterator = op.tensor_iterator()
    iterator.set_body(body)
    iterator.set_sliced_input(step, x.output(0), 0, 1, 1, -1, 0)
    iterator.set_merged_input(carried, start.output(0), following.output(0))
    last = iterator.get_iter_value(following.output(0), -1)
    return _model([last], [x, start], "loop_body")


def tied_weights() -> ov.Model:
    """Two Constant nodes over one piece of memory, and one Constant read twice.

    All read it the same way round: OpenVINO 2026.4.1's CPU is wrong, with or without a split, where
    three matrix products read one memory and only some of them transposed.
    """
    import openvino as ov

    op = _ops()
    x = op.parameter([1, 16], _F32, name="x")
    memory = ov.Tensor(ov.Type.f32, ov.Shape([16, 16]))
    memory.data[:] = _weights(16, 16)
    first, second = (ov.op.Constant(memory, shared_memory=True) for _ in range(2))
    y = op.relu(op.matmul(x, first, False, False))
    y = op.relu(op.matmul(y, second, False, False))
    return _model([op.matmul(y, first, False, False)], [x], "tied_weights")


def compressed_weights() -> ov.Model:
    """Weights in int8, int4 and f16 that are decompressed by Convert, Subtract and Multiply."""
    import openvino as ov

    op = _ops()
    x = op.parameter([1, 64], _F32, name="x")
    rng = np.random.default_rng(0)
    y = x
    for kind in ("i8", "u4", "f16"):
        if kind == "f16":
            stored = op.constant(_weights(64, 64).astype(np.float16))
            y = op.matmul(y, op.convert(stored, "f32"), False, True, name=kind)
            continue
        levels = rng.integers(0, 16, (64, 64))
        if kind == "i8":
            stored = op.constant(levels.astype(np.int8))
        else:
            stored = op.constant(levels.astype(np.uint8), dtype=ov.Type.u4)
        zero = op.convert(op.constant(np.full((64, 1), 8, np.int8)), "f32")
        centred = op.subtract(op.convert(stored, "f32"), zero)
        weights = op.multiply(centred, op.constant(np.full((64, 1), 0.02, _F32)))
        y = op.matmul(y, weights, False, True, name=kind)
    return _model([op.relu(y)], [x], "compressed_weights")


def tied_compressed() -> ov.Model:
    """An embedding and an output matrix that share one compressed constant and its chain."""
    op = _ops()
    ids = op.parameter([3], np.int64, name="ids")
    stored = op.constant(np.random.default_rng(0).integers(-8, 8, (32, 16)).astype(np.int8))
    table = op.multiply(op.convert(stored, "f32"), op.constant(np.full((32, 1), 0.1, _F32)))
    hidden = op.relu(op.gather(table, ids, op.constant(0), name="embed"))
    return _model([op.matmul(hidden, table, False, True, name="head")], [ids], "tied_compressed")


def fake_quantized() -> ov.Model:
    """FakeQuantize on activations and on weights, as quantisation tools leave them."""
    op = _ops()
    x = op.parameter([1, 3, 8, 8], _F32, name="x")
    low, high = op.constant(_F32(-1)), op.constant(_F32(1))
    zero, top = op.constant(_F32(0)), op.constant(_F32(2.55))
    data = op.fake_quantize(op.relu(x), zero, top, zero, top, 256, name="fq_data")
    weights = op.fake_quantize(op.constant(_weights(4, 3, 3, 3)), low, high, low, high, 255)
    y = op.convolution(data, weights, [1, 1], [0, 0], [0, 0], [1, 1])
    return _model([op.relu(y)], [x], "fake_quantized")


def constant_chain() -> ov.Model:
    """Weights that pass through Reshape, Transpose and Concat before they are read."""
    op = _ops()
    x = op.parameter([1, 4, 6, 6], _F32, name="x")
    half = op.reshape(op.constant(_weights(72)), op.constant([3, 3, 4, 2]), False)
    both = op.transpose(op.concat([half, half], 3), op.constant([3, 2, 0, 1]))
    return _model([op.convolution(x, both, [1, 1], [0, 0], [0, 0], [1, 1])], [x], "constant_chain")


def unread_input() -> ov.Model:
    """An input that nothing reads."""
    op = _ops()
    x = op.parameter([1, 4], _F32, name="x")
    mask = op.parameter([1, 7], np.int64, name="mask")
    return _model([op.relu(op.add(x, op.constant(_weights(1, 4))))], [x, mask], "unread_input")


def passthrough() -> ov.Model:
    """An input that is an output, and a constant that is one."""
    op = _ops()
    x = op.parameter([1, 4], _F32, name="x")
    fixed = op.constant(_weights(1, 6), name="fixed")
    return _model([x, fixed, op.relu(x)], [x], "passthrough")


def disconnected() -> ov.Model:
    """Two graphs in one model that share nothing."""
    op = _ops()
    x = op.parameter([1, 4], _F32, name="x")
    z = op.parameter([2, 3], _F32, name="z")
    a = op.relu(op.add(x, op.constant(_weights(1, 4))))
    b = op.tanh(op.multiply(z, op.constant(_weights(2, 3))))
    return _model([a, b], [x, z], "disconnected")


def one_value_thrice() -> ov.Model:
    """One value that is returned three times."""
    op = _ops()
    x = op.parameter([1, 4], _F32, name="x")
    y = op.relu(x)
    return _model([y, y, y], [x], "one_value_thrice")


def many_outputs() -> ov.Model:
    """Ops with several outputs, some unread, and one op that reads a value twice."""
    op = _ops()
    x = op.parameter([1, 12], _F32, name="x")
    parts = op.split(x, op.constant(1), 3).outputs()
    top = op.topk(parts[0], op.constant(2), 1, "max", "value")
    squared = op.multiply(parts[2], parts[2], name="squared")
    return _model([top.output(0), squared], [x], "many_outputs")


def zero_size() -> ov.Model:
    """A tensor without elements between ops."""
    op = _ops()
    x = op.parameter([1, 4], _F32, name="x")
    empty = op.variadic_split(x, op.constant(1), op.constant([0, 4])).outputs()
    joined = op.concat([op.relu(empty[0]), op.tanh(empty[1])], 1)
    return _model([joined], [x], "zero_size")


def zero_batch() -> ov.Model:
    """An input with a batch of nothing."""
    op = _ops()
    x = op.parameter([0, 4], _F32, name="x")
    return _model([op.relu(op.add(x, op.constant(_weights(1, 4))))], [x], "zero_batch")


def detection_tail() -> ov.Model:
    """NonMaxSuppression and Gather: static inputs, open dimensions inside."""
    op = _ops()
    boxes = op.parameter([1, 8, 4], _F32, name="boxes")
    scores = op.parameter([1, 2, 8], _F32, name="scores")
    chosen = op.non_max_suppression(
        op.relu(boxes), scores, op.constant(3), op.constant(_F32(0.5)), op.constant(_F32(0.1))
    )
    index = op.gather(chosen.output(0), op.constant([2]), op.constant(1))
    kept = op.gather(
        op.squeeze(boxes, op.constant([0])), op.squeeze(index, op.constant([1])), op.constant(0)
    )
    return _model([op.sigmoid(kept)], [boxes, scores], "detection_tail")


def diamond_sums() -> ov.Model:
    """``(a + b) - (b + c)``: the shared input has two homes if the sums are on two devices."""
    op = _ops()
    a, b, c = (op.parameter([1, 4], _F32, name=n) for n in "abc")
    return _model([op.subtract(op.add(a, b), op.add(b, c))], [a, b, c], "diamond_sums")


def recurrent() -> ov.Model:
    """An LSTM over a sequence: one op with weights of its own."""
    op = _ops()
    x = op.parameter([1, 6, 8], _F32, name="x")
    zeros = op.constant(np.zeros((1, 1, 16), _F32))
    out = op.lstm_sequence(
        x, zeros, zeros, op.constant([6]),
        op.constant(_weights(1, 64, 8)), op.constant(_weights(1, 64, 16)),
        op.constant(np.zeros((1, 64), _F32)), 16, "FORWARD",
    )  # fmt: skip
    return _model([out.output(0)], [x], "recurrent")


def deep_chain(length: int = 3000) -> ov.Model:
    """A chain that is deeper than any recursion limit."""
    op = _ops()
    x = op.parameter([1, 4], _F32, name="x")
    y = x
    for _ in range(length):
        y = op.relu(y)
    return _model([y], [x], "deep_chain")


def random_branch() -> ov.Model:
    """Random numbers, which depend on no input and yet are no constant."""
    op = _ops()
    x = op.parameter([2, 3], _F32, name="x")
    noise = op.random_uniform(
        op.constant([2, 3]), op.constant(_F32(0)), op.constant(_F32(1)), "f32", 1, 1
    )
    return _model([op.add(x, op.multiply(noise, op.constant(_F32(1e-6))))], [x], "random_branch")


def strings() -> ov.Model:
    """Strings in front of a network: unpacked on the way in, packed on the way out."""
    import openvino as ov

    op = _ops()
    text = op.parameter([2], ov.Type.string, name="text")
    begins, ends, symbols = op.string_tensor_unpack(text).outputs()
    lengths = op.convert(op.subtract(ends, begins), "f32", name="lengths")
    packed = op.string_tensor_pack(begins, ends, symbols)
    return _model([op.relu(lengths), packed], [text], "strings")


def open_batch() -> ov.Model:
    """An input whose first dimension is open."""
    op = _ops()
    x = op.parameter([-1, 3], _F32, name="x")
    return _model([op.relu(x)], [x], "open_batch")


def onnx_if() -> onnx.ModelProto:
    """An If whose branch reads a weight of the outer graph that nothing else uses."""
    from onnx import TensorProto, helper, numpy_helper

    def value(name: str, kind: int, shape: list[int]) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, shape)

    real = TensorProto.FLOAT
    weight = numpy_helper.from_array(_weights(8, 8), "W")
    then = helper.make_graph(
        [helper.make_node("MatMul", ["x", "W"], ["t"])], "then", [], [value("t", real, [2, 8])]
    )
    other = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["e"])], "else", [], [value("e", real, [2, 8])]
    )
    nodes = [
        helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other),
        helper.make_node("Relu", ["y"], ["z"]),
    ]
    inputs = [value("x", real, [2, 8]), value("c", TensorProto.BOOL, [])]
    graph = helper.make_graph(nodes, "onnx_if", inputs, [value("z", real, [2, 8])], [weight])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def onnx_unsorted() -> onnx.ModelProto:
    """Nodes that are listed backwards, without names."""
    from onnx import TensorProto, helper

    real = TensorProto.FLOAT
    nodes = [
        helper.make_node("Relu", ["b"], ["y"]),
        helper.make_node("Sigmoid", ["a"], ["b"]),
        helper.make_node("Tanh", ["x"], ["a"]),
    ]
    x = helper.make_tensor_value_info("x", real, [1, 4])
    y = helper.make_tensor_value_info("y", real, [1, 4])
    graph = helper.make_graph(nodes, "onnx_unsorted", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def _from_onnx(make: Callable[[], onnx.ModelProto]) -> Callable[[], ov.Model]:
    def build() -> ov.Model:
        import openvino as ov

        return ov.Core().read_model(make().SerializeToString())

    return build


TINY_MODELS: Mapping[str, Callable[[], ov.Model]] = {
    make.__name__: make
    for make in (
        two_towers,
        shared_constant,
        state,
        two_states,
        shape_chain,
        static_shape_chains,
        duplicate_names,
        weird_names,
        loop_body,
        tied_weights,
        compressed_weights,
        tied_compressed,
        fake_quantized,
        constant_chain,
        unread_input,
        passthrough,
        disconnected,
        one_value_thrice,
        many_outputs,
        zero_size,
        zero_batch,
        detection_tail,
        diamond_sums,
        recurrent,
        random_branch,
        strings,
    )
} | {"onnx_if": _from_onnx(onnx_if), "onnx_unsorted": _from_onnx(onnx_unsorted)}
"""A builder of each kind, by name; all have static inputs."""
