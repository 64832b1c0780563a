import numpy as np
import pytest

from situs.profiling.check import compare_outputs, outputs_vary, tolerance_for

ONE = np.array([1.0, -2.0], dtype=np.float32)


def test_small_differences_pass_and_are_reported() -> None:
    check = compare_outputs([ONE + np.float32(1e-5)], [ONE], 1e-4, True)
    assert check.passed
    assert 4e-6 < check.max_rel < 6e-6


@pytest.mark.parametrize(
    ("outputs", "reference", "word"),
    [
        ([ONE * 1.01], [ONE], "differs by"),
        ([ONE[:1]], [ONE], "shape"),
        ([], [ONE], "0 outputs"),
        ([np.array([np.nan, 1.0])], [np.array([1.0, 1.0])], "differs by"),
        ([np.array([np.nan])], [np.array([np.nan])], "NaN or infinite"),
        ([np.array([np.inf])], [np.array([np.inf])], "NaN or infinite"),
        ([np.array([1])], [np.array([2])], "differs"),
        ([np.array(["a"])], [np.array(["b"])], "differs"),
        ([np.array([1e-30])], [np.array([0.0])], "differs by"),
    ],
)
def test_wrong_outputs_are_named(
    outputs: list[np.ndarray], reference: list[np.ndarray], word: str
) -> None:
    check = compare_outputs(outputs, reference, 1e-4, True)
    assert not check.passed
    assert word in check.detail


def test_empty_outputs_agree() -> None:
    empty = np.zeros((0, 3), dtype=np.float32)
    assert compare_outputs([empty], [empty], 1e-4, True).passed


def test_variation() -> None:
    assert outputs_vary([ONE], [ONE + 1])
    assert not outputs_vary([ONE], [ONE])
    assert not outputs_vary([np.array([np.nan])], [np.array([np.nan])])
    assert outputs_vary([np.array(["a"])], [np.array(["b"])])


def test_the_coarsest_precision_decides() -> None:
    assert tolerance_for(["f32", "f32"]) == 1e-4
    assert tolerance_for(["f32", "bf16"]) == tolerance_for(["unheard-of"]) == 1e-1
