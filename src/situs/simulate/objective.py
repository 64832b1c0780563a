"""The simulator as an objective."""

from __future__ import annotations

import numpy as np

from situs.core import Evaluation, Problem
from situs.graph.arrays import Ints
from situs.simulate.evaluate import evaluate


class SimulatedObjective:
    """Values placements by simulation under the problem's execution model."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def evaluate(self, assignments: Ints) -> Evaluation:
        """Value ``int32[B, N]`` assignments; ``inf`` where a limit is broken."""
        return Evaluation.of(evaluate(self._problem, np.atleast_2d(assignments)))
