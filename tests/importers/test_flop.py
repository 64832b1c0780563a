"""Hand-computed FLOP of one run; a multiply-add is two."""

from typing import Any

import pytest

from situs.importers.flop import OpShapes, op_flop


@pytest.mark.parametrize(
    ("kind", "inputs", "outputs", "attributes", "flop"),
    [
        # 8 x 10 x 10 outputs, each 4 x 3 x 3 multiply-adds.
        ("Convolution", [(1, 4, 12, 12), (8, 4, 3, 3)], [(1, 8, 10, 10)], {}, 800 * 36 * 2),
        # Depth-wise: each output sees one channel.
        ("GroupConvolution", [(1, 8, 5, 5), (8, 1, 1, 3, 3)], [(1, 8, 3, 3)], {}, 72 * 9 * 2),
        # Each of 4 x 5 x 5 inputs meets 8 x 2 x 2 filter values.
        (
            "ConvolutionBackpropData",
            [(1, 4, 5, 5), (4, 8, 2, 2)],
            [(1, 8, 6, 6)],
            {},
            100 * 32 * 2,
        ),
        (
            "GroupConvolutionBackpropData",
            [(1, 4, 5, 5), (2, 2, 3, 2, 2)],
            [(1, 6, 6, 6)],
            {},
            100 * 12 * 2,
        ),
        ("MatMul", [(2, 3, 4), (4, 5)], [(2, 3, 5)], {"transpose_a": False}, 30 * 4 * 2),
        ("MatMul", [(4, 3), (4, 5)], [(3, 5)], {"transpose_a": True}, 15 * 4 * 2),
        ("MatMul", [(7,), (7, 2)], [(2,)], {"transpose_a": True}, 2 * 7 * 2),
        ("Einsum", [(2, 3), (3, 5)], [(2, 5)], {"equation": "ij,jk->ik"}, 30 * 2),
        ("MaxPool", [(1, 1, 4, 4)], [(1, 1, 2, 2)], {"kernel": [2, 2]}, 16),
        ("ReduceSum", [(4, 6), (1,)], [(4,)], {}, 24),
        ("Add", [(4, 6), (1,)], [(4, 6)], {}, 24),
        ("Relu", [(4, 6)], [(4, 6)], {}, 24),
        ("Reshape", [(4, 6), (1,)], [(24,)], {}, 0),
        ("Parameter", [], [(24,)], {}, 0),
        # 5 steps, 4 gates of 3 units, each 2 x (2 + 3) for the products and 8 for the rest.
        ("LSTMSequence", [(1, 5, 2), (1, 1, 3)], [(1, 1, 5, 3)], {}, 5 * 4 * 3 * 18),
        (
            "GRUSequence",
            [(1, 5, 2), (1, 2, 3)],
            [(1, 2, 5, 3)],
            {"direction": "bidirectional"},
            2 * 5 * 3 * 3 * 18,
        ),
        ("LSTMCell", [(1, 2), (1, 3)], [(1, 3)], {}, 4 * 3 * 18),
        # Scores 2 x 3 of 4 products each, their softmax, and 3 products for each of 2 x 5 values.
        (
            "ScaledDotProductAttention",
            [(1, 2, 4), (1, 3, 4), (1, 3, 5)],
            [(1, 2, 5)],
            {},
            6 * 4 * 2 + 6 * 5 + 6 * 5 * 2,
        ),
        ("NeverHeardOf", [(4, 6)], [(5,)], {}, 5),
        ("Convolution", [(0,), ()], [(0,)], {}, 0),
        ("GroupConvolution", [(0,)], [(0,)], {}, 0),
        ("LSTMCell", [(), ()], [()], {}, 1),
    ],
)
def test_flop_by_hand(
    kind: str, inputs: list[Any], outputs: list[Any], attributes: dict[str, Any], flop: float
) -> None:
    assert op_flop(OpShapes(kind, inputs, outputs, lambda: attributes)) == flop
