"""Random search: the floor that every learner must leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from situs.core import Problem
from situs.graph.arrays import Floats, Ints, frozen
from situs.placers.learned.dice import any_devices, restored, state_of
from situs.placers.learned.learner import Arrays, Episode, Learner
from situs.placers.learned.trained import Trained

By = Literal["op", "interval"]
# Most runs that a random contiguous placement has.
_MOST_INTERVALS = 10


@dataclass(frozen=True, slots=True)
class RandomSearch(Trained):
    """Placements drawn at random, by op or by contiguous intervals in topological order.

    Attributes:
        episodes: See ``Trained``; samples, patience and checkpoint too.
        by: ``op``: every co-location unit alone; ``interval``: 1 to 10 runs of units, cut anywhere.
    """

    name: ClassVar[str] = "random"
    by: By = "op"

    def learner(self, problem: Problem, seed: int) -> Learner:
        """See ``Trained``."""
        return _Random(problem, self.by, np.random.default_rng(seed))


def random_units(problem: Problem, by: By, count: int, rng: np.random.Generator) -> Ints:
    """``int32[count, U]`` devices of units; a unit that a run's device bars has any other."""
    drawn = any_devices(problem, count, rng)
    units = np.arange(problem.num_units)
    if by == "interval":
        for row in drawn:
            intervals = int(rng.integers(1, _MOST_INTERVALS + 1))
            cuts = np.sort(rng.integers(0, problem.num_units, intervals - 1))
            device = rng.integers(problem.num_devices, size=intervals)[
                np.searchsorted(cuts, units, side="right")
            ]
            able = problem.unit_allowed[units, device]
            row[able] = device[able]
    return drawn


class _Random:
    def __init__(self, problem: Problem, by: By, rng: np.random.Generator) -> None:
        self._problem, self._by, self._rng = problem, by, rng
        self._episode = 0
        self._asked: Ints | None = None

    def begin(self, assignments: Ints, seconds: Floats) -> None:
        pass

    def ask(self, count: int) -> Ints:
        if self._asked is None:
            units = random_units(self._problem, self._by, count, self._rng)
            self._asked = frozen(units[:, self._problem.units], np.int32)
        return self._asked

    def tell(self, seconds: Floats) -> Episode:
        self._asked = None
        self._episode += 1
        return Episode.of(self._episode, seconds)

    def arrays(self) -> Arrays:
        return {}

    def scalars(self) -> dict[str, Any]:
        return {"episode": self._episode, "dice": state_of(self._rng)}

    def restore(self, arrays: Arrays, scalars: dict[str, Any]) -> None:
        self._episode, self._rng = scalars["episode"], restored(scalars["dice"])
        self._asked = None
