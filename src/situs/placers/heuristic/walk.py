"""One annealed walk through placements, many moves at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from situs.core import Problem
from situs.graph.arrays import Floats, Ints, Longs
from situs.placers.heuristic.moves import Neighbourhood
from situs.simulate import Evaluator


@dataclass(frozen=True, eq=False)
class Proposal:
    """Moves in the order in which a walk tries them, and how much worse each may be, s."""

    offsets: Longs
    units: Ints
    targets: Ints
    worse_s: Floats


class Walk:
    """Metropolis walk by a problem's own costs.

    Attributes:
        best_s: Least value on the way since the last jump, s.
        best: ``int32[N]`` its placement.
    """

    def __init__(self, problem: Problem, moves: Neighbourhood, assignment: Ints) -> None:
        self._problem, self._moves = problem, moves
        self.jump(assignment)

    @property
    def seconds(self) -> float:
        """Value of where it stands, s."""
        return self._evaluator.seconds

    def jump(self, assignment: Ints) -> None:
        """Go on from another placement."""
        self._evaluator = Evaluator(self._problem, assignment)
        self.best_s, self.best = self._evaluator.seconds, assignment

    def propose(self, count: int, temperature_s: float, rng: np.random.Generator) -> Proposal:
        """Draw moves; at temperature 0 only those that are not worse will stay."""
        device = self._moves.units_of(self._evaluator.assignment)
        offsets, units, targets = self._moves.draw_many(device, count, rng)
        return Proposal(offsets, units, targets, temperature_s * rng.exponential(size=count))

    def follow(self, proposal: Proposal) -> None:
        """Try the moves in turn."""
        p = proposal
        seconds, assignment = self._evaluator.walk(p.units, p.targets, p.offsets, p.worse_s)
        if seconds < self.best_s:
            self.best_s, self.best = seconds, assignment
