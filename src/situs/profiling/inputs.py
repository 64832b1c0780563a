"""Seeded random inputs for a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    import openvino as ov


@runtime_checkable
class Draws(Protocol):
    """A model of another framework, which knows its inputs itself."""

    def draw(self, rng: np.random.Generator) -> list[np.ndarray[Any, Any]]:
        """One array per input, as ``random_inputs`` says."""
        ...


def random_inputs(model: ov.Model | Draws, rng: np.random.Generator) -> list[np.ndarray[Any, Any]]:
    """One array per input, in order: normal floats, whole numbers 0 or 1, booleans, short words.

    Whole numbers stay at 0 and 1 because they are often indices into tables of unknown size.
    """
    if isinstance(model, Draws):
        return model.draw(rng)
    return [_random(node, rng) for node in model.inputs]


def _random(node: ov.Output, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    shape = tuple(int(d) for d in node.get_shape())
    kind = node.get_element_type()
    name = kind.get_type_name()
    if name == "string":
        words = [f"word{k}" for k in rng.integers(0, 1000, size=int(np.prod(shape)))]
        return np.array(words, dtype=np.str_).reshape(shape)
    dtype = np.dtype(kind.to_dtype())
    if name == "boolean":
        return rng.integers(0, 2, size=shape).astype(np.bool_)
    if kind.is_real():
        return rng.standard_normal(size=shape).astype(dtype)
    return rng.integers(0, 2, size=shape).astype(dtype)
