"""Hill climbing: the simplest search that uses what it was told."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from situs.core import Problem
from situs.graph.arrays import Floats, Ints, frozen
from situs.placers.learned.dice import restored, state_of
from situs.placers.learned.learner import Arrays, Episode, Learner, best_of
from situs.placers.learned.random_search import By, random_units
from situs.placers.learned.trained import Trained


@dataclass(frozen=True, slots=True)
class HillClimbing(Trained):
    """Moves one op, or one run of ops, to another device, and keeps what is not worse.

    Starts from the best uniform placement.

    Attributes:
        episodes: See ``Trained``; patience and checkpoint too. 2,000 moves by default.
        samples: Moves of one placement that are valued together; the best of them is kept.
        by: ``op``: a move is of one co-location unit; ``interval``: of a run of units in
            topological order, its length log-uniform up to all.
    """

    name: ClassVar[str] = "hill-climbing"
    episodes: int = 2000
    samples: int = 1
    by: By = "op"

    def learner(self, problem: Problem, seed: int) -> Learner:
        """See ``Trained``."""
        return _Climber(problem, self.by, np.random.default_rng(seed))


class _Climber:
    def __init__(self, problem: Problem, by: By, rng: np.random.Generator) -> None:
        self._problem, self._by, self._rng = problem, by, rng
        self._episode = 0
        self._units: Ints | None = None
        self._seconds = math.inf
        self._asked: Ints | None = None

    def begin(self, assignments: Ints, seconds: Floats) -> None:
        best, best_s = best_of(seconds)
        if best_s < self._seconds:
            units = assignments[best, self._problem.unit_heads]
            self._units, self._seconds = frozen(units, np.int32), best_s

    def ask(self, count: int) -> Ints:
        if self._asked is None:
            if self._units is None:
                asked = random_units(self._problem, self._by, count, self._rng)
            else:
                asked = np.stack([self._moved(self._units) for _ in range(count)])
            self._asked = frozen(asked, np.int32)
        return self._asked[:, self._problem.units]

    def _moved(self, units: Ints) -> Ints:
        rng, allowed = self._rng, self._problem.unit_allowed
        length = 1 if self._by == "op" else int(len(units) ** rng.random())
        first = int(rng.integers(len(units)))
        run = np.arange(first, min(first + length, len(units)))
        others = np.flatnonzero(np.arange(self._problem.num_devices) != units[first])
        moved = units.copy()
        if len(others):
            device = int(rng.choice(others))
            moved[run[allowed[run, device]]] = device
        return moved

    def tell(self, seconds: Floats) -> Episode:
        assert self._asked is not None, "ask before tell"
        best, best_s = best_of(seconds)
        if self._units is None or best_s <= self._seconds:
            self._units, self._seconds = self._asked[best].copy(), best_s
        self._asked = None
        self._episode += 1
        return Episode.of(self._episode, seconds)

    def arrays(self) -> Arrays:
        return {} if self._units is None else {"units": self._units.copy()}

    def scalars(self) -> dict[str, Any]:
        return {
            "episode": self._episode,
            "seconds": self._seconds,
            "dice": state_of(self._rng),
        }

    def restore(self, arrays: Arrays, scalars: dict[str, Any]) -> None:
        self._episode, self._seconds = scalars["episode"], scalars["seconds"]
        self._units = arrays["units"].astype(np.int32) if "units" in arrays else None
        self._rng = restored(scalars["dice"])
        self._asked = None
