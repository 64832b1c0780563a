"""Objectives: what a placer asks for the value of placements, simulated or measured alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from situs.errors import Status
from situs.graph.arrays import Floats, Ints, frozen


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Values of ``B`` placements.

    Attributes:
        seconds: ``float64[B]``, s; ``inf`` = infeasible, ``nan`` = the measurement failed.
        statuses: ``B`` statuses; ``OK`` exactly where ``seconds`` is finite.
    """

    seconds: Floats
    statuses: tuple[Status, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "seconds", frozen(self.seconds, np.float64))

    @classmethod
    def of(cls, seconds: Floats) -> Evaluation:
        """Statuses from values: finite = OK, infinite = INFEASIBLE, NaN = RUN_FAILED."""
        return cls(
            seconds,
            tuple(
                Status.OK
                if np.isfinite(s)
                else Status.INFEASIBLE
                if np.isinf(s)
                else Status.RUN_FAILED
                for s in seconds
            ),
        )


class Objective(Protocol):
    """Values placements; cannot be told apart by whether it simulates or measures."""

    def evaluate(self, assignments: Ints) -> Evaluation:
        """Value ``int32[B, N]`` assignments."""
        ...
