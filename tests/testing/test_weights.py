"""Random weights make outputs that can be checked: they vary with the input, none is saturated."""

from __future__ import annotations

import numpy as np
import openvino as ov
import pytest

from situs.testing.models import TINY_MODELS, light_models
from situs.testing.weights import random_input, randomize_weights

_CONFIG = {"INFERENCE_PRECISION_HINT": "f32"}


def _outputs(model: ov.Model, seeds: range) -> list[np.ndarray]:
    compiled = ov.Core().compile_model(model, "CPU", _CONFIG)
    results = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        results.append(compiled([random_input(port, rng) for port in model.inputs])[0].copy())
    return results


@pytest.mark.parametrize("name", light_models())
def test_outputs_vary_with_the_input_and_are_not_saturated(name: str) -> None:
    model = randomize_weights(ov.Core().read_model(light_models()[name]))
    first, second = _outputs(model, range(2))
    assert np.isfinite(first).all()
    assert np.isfinite(second).all()
    largest = np.abs(first).max()
    assert np.abs(first - second).max() > 0.02 * largest
    assert first.std() > 0.01 * largest
    if first.min() >= 0:  # Behind a softmax.
        assert largest < 0.9


def test_same_seed_same_weights_and_the_model_is_left_alone() -> None:
    model = ov.Core().read_model(light_models()["light_squeezenet"])
    flat = _outputs(model, range(1))[0]
    a, b, other = (_outputs(randomize_weights(model, seed), range(1))[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert np.abs(a - other).max() > 0.1 * np.abs(a).max()
    np.testing.assert_array_equal(flat, _outputs(model, range(1))[0])


@pytest.mark.parametrize("name", ["two_towers", "tied_weights", "constant_chain", "disconnected"])
def test_tiny_models_keep_their_shapes(name: str) -> None:
    model = TINY_MODELS[name]()
    randomized = randomize_weights(model)
    for before, after in zip(model.outputs, randomized.outputs, strict=True):
        assert before.get_partial_shape() == after.get_partial_shape()
    first, second = _outputs(randomized, range(2))
    assert np.abs(first - second).max() > 0
