"""A numpy generator whose state is part of a checkpoint."""

from __future__ import annotations

from typing import Any

import numpy as np

from situs.core import Problem
from situs.graph.arrays import Ints


def state_of(rng: np.random.Generator) -> dict[str, Any]:
    """The generator's state as JSON values."""
    return dict(rng.bit_generator.state)


def restored(state: dict[str, Any]) -> np.random.Generator:
    """The generator that had this state."""
    rng = np.random.default_rng(0)
    rng.bit_generator.state = state
    return rng


def any_devices(problem: Problem, count: int, rng: np.random.Generator) -> Ints:
    """``int32[count, U]`` an allowed device for every unit, each equally likely."""
    allowed = problem.unit_allowed
    drawn: Ints = np.argmax(rng.random((count, *allowed.shape)) * allowed, axis=2).astype(np.int32)
    return drawn
