"""The cross-entropy method: independent chances per node, drawn towards the best samples."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from situs.core import Problem
from situs.graph.arrays import Floats, Ints, frozen
from situs.placers.learned.dice import restored, state_of
from situs.placers.learned.learner import Arrays, Episode, Learner, best_of, valued
from situs.placers.learned.nodes import NodeGraph, fastest_devices, units_of
from situs.placers.learned.trained import Trained


@dataclass(frozen=True, slots=True)
class CrossEntropy(Trained):
    """Draws every node's device on its own, and moves the chances to those of the elite.

    Attributes:
        episodes: See ``Trained``; patience and checkpoint too.
        samples: Placements per episode.
        elite: Share of an episode's placements that the chances move to.
        smoothing: How far they move.
        floor: Least chance of an allowed device, so that none is ever ruled out.

    Source: Rubinstein and Kroese, "The Cross-Entropy Method", 2004, algorithm 4.1 with smoothing;
    for placement as in Gao et al., "Post: Device placement with cross-entropy minimization and
    proximal policy optimization", NeurIPS 2018.
    Differs: No grouping but units; a floor instead of dynamic smoothing; the best placement so far,
    the best uniform one at first, is always among the elite.
    """

    name: ClassVar[str] = "cross-entropy"
    shares: ClassVar[tuple[str, ...]] = ("elite", "smoothing", "floor")
    episodes: int = 40
    samples: int = 50
    elite: float = 0.1
    smoothing: float = 0.4
    floor: float = 0.01

    def learner(self, problem: Problem, seed: int) -> Learner:
        """See ``Trained``."""
        nodes = units_of(problem)
        fastest = fastest_devices(problem, nodes)
        return _Chances(nodes, fastest, self, np.random.default_rng(seed))


class _Chances:
    def __init__(
        self, nodes: NodeGraph, fastest: Ints, how: CrossEntropy, rng: np.random.Generator
    ) -> None:
        self._nodes, self._fastest, self._how, self._rng = nodes, fastest, how, rng
        self._best: Ints | None = None
        self._best_s = math.inf
        self._chance = nodes.allowed / nodes.allowed.sum(axis=1, keepdims=True)
        self._episode = 0
        self._asked: Ints | None = None

    def begin(self, assignments: Ints, seconds: Floats) -> None:
        best, best_s = best_of(seconds)
        if best_s < self._best_s:
            self._best = self._nodes.devices_of(assignments[best], self._fastest)
            self._best_s = best_s
            self._move(self._best[None])

    def ask(self, count: int) -> Ints:
        if self._asked is None:
            edges = np.cumsum(self._chance, axis=1)
            dice = self._rng.random((count, len(edges), 1)) * edges[:, -1:]
            self._asked = frozen((dice >= edges).sum(axis=2), np.int32)
        return self._asked[:, self._nodes.node]

    def tell(self, seconds: Floats) -> Episode:
        assert self._asked is not None, "ask before tell"
        good = valued(seconds)
        if good.any():
            count = max(1, min(int(good.sum()), round(self._how.elite * len(seconds))))
            ranked = np.argsort(np.where(good, seconds, np.inf), kind="stable")
            elite = self._asked[ranked[:count]]
            if seconds[ranked[0]] < self._best_s:
                self._best, self._best_s = elite[0].copy(), float(seconds[ranked[0]])
            elif self._best is not None:
                elite = np.concatenate([self._best[None], elite[:-1]])
            self._move(elite)
        self._asked = None
        self._episode += 1
        logs = np.log(np.where(self._chance > 0, self._chance, 1.0))
        spread = float(-(self._chance * logs).sum(axis=1).mean())
        return Episode.of(self._episode, seconds, {"entropy": spread})

    def _move(self, elite: Ints) -> None:
        """Chances towards the shares of devices among the elite."""
        share = (elite[:, :, None] == np.arange(self._chance.shape[1])).mean(axis=0)
        step = self._how.smoothing
        moved = np.maximum((1 - step) * self._chance + step * share, self._how.floor)
        moved *= self._nodes.allowed
        self._chance = moved / moved.sum(axis=1, keepdims=True)

    def arrays(self) -> Arrays:
        best = {} if self._best is None else {"best": self._best.copy()}
        return {"chance": self._chance.copy(), **best}

    def scalars(self) -> dict[str, Any]:
        return {
            "episode": self._episode,
            "best_s": self._best_s,
            "dice": state_of(self._rng),
        }

    def restore(self, arrays: Arrays, scalars: dict[str, Any]) -> None:
        self._episode, self._rng = scalars["episode"], restored(scalars["dice"])
        self._chance = arrays["chance"].astype(np.float64)
        self._best = arrays["best"].astype(np.int32) if "best" in arrays else None
        self._best_s = scalars["best_s"]
        self._asked = None
