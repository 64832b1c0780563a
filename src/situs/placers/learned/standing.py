"""Where a training stands."""

from __future__ import annotations

from dataclasses import dataclass

from situs.core import Incumbent
from situs.graph.arrays import Ints


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a training stood: everything beside the learner's own state.

    Attributes:
        episodes: Finished episodes.
        evaluations: Placements valued.
        elapsed_s: Time spent, s.
        stale: Episodes since the best one or the mean improved.
        best_mean_s: Lowest mean of an episode, s.
        trace: Incumbents, oldest first.
        best: ``int32[N]`` best placement, or None.
    """

    episodes: int
    evaluations: int
    elapsed_s: float
    stale: int
    best_mean_s: float
    trace: tuple[Incumbent, ...]
    best: Ints | None
