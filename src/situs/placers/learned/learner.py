"""What a learner is: it asks for the value of placements and is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from situs.graph.arrays import Floats, Ints


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


class Learner(Protocol):
    """Asks for placements, is told what they are worth, and asks better ones."""

    def ask(self, count: int) -> Ints:
        """The next ``int32[count, N]`` placements to value; the same until ``tell`` answers."""
        ...

    def tell(self, seconds: Floats) -> Episode:
        """Learn from ``float64[count]`` s; NaN = the measurement failed, inf = infeasible."""
        ...

    def tensors(self) -> dict[str, Tensor]:
        """Copies of all tensors that make up its state between ``tell`` and ``ask``."""
        ...

    def scalars(self) -> dict[str, Any]:
        """The rest of its state, as JSON values."""
        ...

    def restore(self, tensors: dict[str, Tensor], scalars: dict[str, Any]) -> None:
        """Continue from a state, bit for bit."""
        ...
