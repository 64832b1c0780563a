"""Floating-point operations of one run of an op, estimated from its type and shapes.

A multiply-add counts as two. Ops that only move data (``Reshape``, ``Concat``, ``Gather``, ...)
count none; a type that is not listed counts one per output element. Non-linear functions have the
nominal weights of ``ELEMENTWISE``, which reflect their usual polynomial or iterative evaluation;
only their order of magnitude matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Shape = tuple[int, ...]


@dataclass(slots=True)
class OpShapes:
    """What an estimate needs: the op's type, its shapes, and its attributes when asked for."""

    type: str
    inputs: Sequence[Shape]
    outputs: Sequence[Shape]
    attributes: Callable[[], Mapping[str, Any]] = dict

    @property
    def out(self) -> int:
        """Elements of the first output."""
        return math.prod(self.outputs[0]) if self.outputs else 0

    def size(self, port: int) -> int:
        """Elements of an input; 0 if the op has no such input."""
        return math.prod(self.inputs[port]) if port < len(self.inputs) else 0


def _convolution(op: OpShapes) -> float:
    return 2.0 * op.out * math.prod(op.inputs[1][1:])


def _group_convolution(op: OpShapes) -> float:
    return 2.0 * op.out * math.prod(op.inputs[1][2:])


def _deconvolution(op: OpShapes) -> float:
    return 2.0 * op.size(0) * math.prod(op.inputs[1][1:])


def _group_deconvolution(op: OpShapes) -> float:
    return 2.0 * op.size(0) * math.prod(op.inputs[1][2:])


def _deformable_convolution(op: OpShapes) -> float:
    # Each filter tap also interpolates its sample from four neighbours: 8 FLOP per sample.
    taps = math.prod(op.inputs[2][1:])
    positions = op.out / max(1, op.inputs[2][0])
    return 2.0 * op.out * taps + 8.0 * positions * taps


def _matmul(op: OpShapes) -> float:
    left = op.inputs[0]
    transposed = bool(op.attributes().get("transpose_a", False)) and len(left) > 1
    inner = (left[-2] if transposed else left[-1]) if left else 1
    return 2.0 * op.out * inner


def _einsum(op: OpShapes) -> float:
    equation = str(op.attributes().get("equation", "")).replace(" ", "")
    terms = equation.split("->")[0].split(",")
    if "." in equation or [len(t) for t in terms] != [len(s) for s in op.inputs]:
        return 2.0 * max([op.out, *(math.prod(s) for s in op.inputs)])
    extents = {
        label: extent
        for term, shape in zip(terms, op.inputs, strict=True)
        for label, extent in zip(term, shape, strict=True)
    }
    return 2.0 * math.prod(extents.values())


def _attention(op: OpShapes) -> float:
    query, key, value = op.inputs[:3]
    if min(len(query), len(key), len(value)) < 2:
        return float(op.out)
    scores = math.prod(query[:-1]) * key[-2]
    return 2.0 * scores * query[-1] + 5.0 * scores + 2.0 * scores * value[-1]


def _pool(op: OpShapes) -> float:
    return float(op.out * math.prod(op.attributes().get("kernel", ())))


def _recurrent(gates: int, sequence: bool) -> Callable[[OpShapes], float]:
    def flop(op: OpShapes) -> float:
        data, hidden = op.inputs[0], op.inputs[1][-1]
        directions = 2 if op.attributes().get("direction") == "bidirectional" else 1
        steps = math.prod(data[:-1]) * (directions if sequence else 1)
        # The gates' two matrix products, then bias, activation and state update per unit.
        return float(steps) * gates * hidden * (2.0 * (data[-1] + hidden) + 8.0)

    return flop


def _interpolate(op: OpShapes) -> float:
    taps = {"nearest": 1, "cubic": 16}.get(str(op.attributes().get("mode", "linear")), 4)
    return float(op.out) if taps == 1 else 2.0 * taps * op.out


def _top_k(op: OpShapes) -> float:
    return op.size(0) * math.log2(max(2, op.out))


def _of_input(weight: float) -> Callable[[OpShapes], float]:
    return lambda op: weight * op.size(0)


def _of_output(weight: float) -> Callable[[OpShapes], float]:
    return lambda op: weight * op.out


_MOVES = [
    "Parameter",
    "Result",
    "Constant",
    "ReadValue",
    "Assign",
    "Reshape",
    "Squeeze",
    "Unsqueeze",
    "Transpose",
    "Concat",
    "Split",
    "VariadicSplit",
    "Gather",
    "GatherElements",
    "GatherND",
    "GatherTree",
    "ScatterUpdate",
    "ScatterElementsUpdate",
    "ScatterNDUpdate",
    "StridedSlice",
    "Slice",
    "Broadcast",
    "Tile",
    "Pad",
    "ShapeOf",
    "Reverse",
    "ReverseSequence",
    "ShuffleChannels",
    "SpaceToDepth",
    "DepthToSpace",
    "SpaceToBatch",
    "BatchToSpace",
    "Identity",
    "OneHot",
    "Eye",
    "Convert",
    "ConvertLike",
    "Range",
    "NonZero",
    "StringTensorPack",
    "StringTensorUnpack",
    "Roll",
    "SliceScatter",
    "Col2Im",
    "EmbeddingBagPacked",
]

ELEMENTWISE: Mapping[str, float] = {
    **dict.fromkeys(("Relu", "PRelu", "Clamp", "Mod", "FloorMod", "Select", "SoftSign"), 2.0),
    **dict.fromkeys(("HardSigmoid", "HSigmoid", "HSwish", "Selu", "ThresholdedRelu"), 4.0),
    **dict.fromkeys(("Divide", "Sqrt"), 4.0),
    **dict.fromkeys(("Exp", "Log", "Sin", "Cos", "Tan", "Erf", "Power"), 8.0),
    **dict.fromkeys(("Sigmoid", "Tanh", "Elu", "Swish", "Atan", "Asin", "Acos"), 10.0),
    **dict.fromkeys(("Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "SoftPlus"), 10.0),
    **dict.fromkeys(("Gelu", "Mish"), 14.0),
    "FakeQuantize": 8.0,
    "FakeConvert": 4.0,
    "Relu": 1.0,
}
"""FLOP per output element of functions that cost more than one."""

FORMULAS: Mapping[str, Callable[[OpShapes], float]] = {
    **dict.fromkeys(_MOVES, _of_output(0.0)),
    **{name: _of_output(weight) for name, weight in ELEMENTWISE.items()},
    **dict.fromkeys(
        ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "CumSum"),
        _of_input(1.0),
    ),
    **dict.fromkeys(("ReduceLogicalAnd", "ReduceLogicalOr", "ReduceL1"), _of_input(1.0)),
    "ReduceL2": _of_input(2.0),
    "AdaptiveAvgPool": _of_input(1.0),
    "AdaptiveMaxPool": _of_input(1.0),
    "AvgPool": _pool,
    "MaxPool": _pool,
    "Softmax": _of_input(12.0),
    "LogSoftmax": _of_input(20.0),
    "MVN": _of_input(7.0),
    "RMS": _of_input(4.0),
    "GroupNormalization": _of_input(9.0),
    "BatchNormInference": _of_output(2.0),
    "NormalizeL2": _of_input(4.0),
    "GRN": _of_input(4.0),
    "LRN": _of_input(12.0),
    "Convolution": _convolution,
    "BinaryConvolution": _convolution,
    "GroupConvolution": _group_convolution,
    "ConvolutionBackpropData": _deconvolution,
    "GroupConvolutionBackpropData": _group_deconvolution,
    "DeformableConvolution": _deformable_convolution,
    "MatMul": _matmul,
    "Einsum": _einsum,
    "ScaledDotProductAttention": _attention,
    "LSTMSequence": _recurrent(4, sequence=True),
    "GRUSequence": _recurrent(3, sequence=True),
    "AUGRUSequence": _recurrent(3, sequence=True),
    "RNNSequence": _recurrent(1, sequence=True),
    "LSTMCell": _recurrent(4, sequence=False),
    "GRUCell": _recurrent(3, sequence=False),
    "AUGRUCell": _recurrent(3, sequence=False),
    "RNNCell": _recurrent(1, sequence=False),
    "Interpolate": _interpolate,
    "GridSample": _of_output(8.0),
    "ROIAlign": _of_output(32.0),
    "TopK": _top_k,
}
"""FLOP of one run by op type."""


def op_flop(op: OpShapes) -> float:
    """Estimate the FLOP of one run of ``op``."""
    formula = FORMULAS.get(op.type)
    try:
        return float(op.out) if formula is None else float(formula(op))
    except IndexError:  # A tensor of open rank inside the model has no shape to take apart.
        return float(op.out)
