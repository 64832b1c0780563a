"""What a learner is: it asks for the value of placements and is told."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from situs.graph.arrays import Bools, Floats, Ints

Arrays = dict[str, NDArray[np.generic]]


def best_of(seconds: Floats) -> tuple[int, float]:
    """Row of the least value and that value, s; inf if nothing has a value."""
    known = np.where(valued(seconds), seconds, np.inf)
    row = int(np.argmin(known))
    return row, float(known[row])


def valued(seconds: Floats) -> Bools:
    """``bool[K]`` the placement has a value; a failed one has none, and is no reward."""
    return np.isfinite(seconds)


@dataclass(frozen=True, slots=True)
class Episode:
    """What one round of ask and tell showed, for people and for plots.

    Attributes:
        number: 1 for the first.
        mean_s: Mean value of the placements drawn from the policy that could be valued, s; NaN
            if none could.
        failed: Placements whose measurement failed or that broke a limit.
        figures: What the learner knows beside: entropy, groups, norm of the gradient.
    """

    number: int
    mean_s: float
    failed: int
    figures: Mapping[str, float]

    @classmethod
    def of(
        cls,
        number: int,
        seconds: Floats,
        figures: Mapping[str, float] = MappingProxyType({}),
        drawn: int | None = None,
    ) -> Episode:
        """From ``float64[count]`` s, of which the first ``drawn`` (None = all) are the policy's."""
        good = valued(seconds)
        mine = seconds[:drawn][good[:drawn]]
        mean_s = float(mine.mean()) if len(mine) else math.nan
        return cls(number, mean_s, int((~good).sum()), figures)


class Learner(Protocol):
    """Asks for placements, is told what they are worth, and asks better ones."""

    def begin(self, assignments: Ints, seconds: Floats) -> None:
        """Take note of ``int32[K, N]`` placements that were valued before the first episode."""
        ...

    def ask(self, count: int) -> Ints:
        """The next ``int32[count, N]`` placements to value; the same until ``tell`` answers."""
        ...

    def tell(self, seconds: Floats) -> Episode:
        """Learn from ``float64[count]`` s; NaN = the measurement failed, inf = infeasible."""
        ...

    def arrays(self) -> Arrays:
        """Copies of all arrays that make up its state between ``tell`` and ``ask``."""
        ...

    def scalars(self) -> dict[str, Any]:
        """The rest of its state, as JSON values."""
        ...

    def restore(self, arrays: Arrays, scalars: dict[str, Any]) -> None:
        """Continue from a state, bit for bit."""
        ...
