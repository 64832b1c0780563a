"""What all placers that learn, or search by ask and tell, have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from situs.core import Objective, Problem, Result, Stop
from situs.errors import ParameterError
from situs.placers.learned.learner import Learner
from situs.placers.learned.training import Budget, train
from situs.placers.parameters import parameter_texts


@dataclass(frozen=True, slots=True)
class Trained(ABC):
    """A placer that is a learner, a loop and a budget.

    Attributes:
        episodes: At most this many rounds of ask and tell; >= 1.
        samples: Placements per episode; >= 1.
        patience: Ends after this many episodes without a better placement or mean; 0 = never.
        checkpoint: Folder for checkpoints; a training is continued from there. "" = none.
    """

    name: ClassVar[str]
    at_least_one: ClassVar[tuple[str, ...]] = ("episodes", "samples")
    at_least_zero: ClassVar[tuple[str, ...]] = ("patience",)
    shares: ClassVar[tuple[str, ...]] = ()
    episodes: int = 100
    samples: int = 20
    patience: int = 0
    checkpoint: str = ""

    def __post_init__(self) -> None:
        for key in self.at_least_one:
            if getattr(self, key) < 1:
                raise ParameterError(f"{self.name}: {key} must be >= 1, got {getattr(self, key)}")
        for key in self.at_least_zero:
            if not getattr(self, key) >= 0:
                raise ParameterError(f"{self.name}: {key} must be >= 0, got {getattr(self, key)}")
        for key in self.shares:
            if not 0 <= getattr(self, key) <= 1:
                raise ParameterError(
                    f"{self.name}: {key} must be in 0 .. 1, got {getattr(self, key)}"
                )

    def supports(self, problem: Problem) -> str | None:
        """Any problem that has an op."""
        return None if problem.num_ops else "the graph has no op"

    @abstractmethod
    def learner(self, problem: Problem, seed: int) -> Learner:
        """A fresh learner for the problem, in ask and tell form."""

    def __call__(
        self, problem: Problem, objective: Objective, stop: Stop, rng: np.random.Generator
    ) -> Result:
        """Train until the episodes, the patience, or ``stop`` end it."""
        learner = self.learner(problem, int(rng.integers(1 << 31)))
        budget = Budget(self.episodes, self.samples, self.patience, self.checkpoint)
        return train(self.name, parameter_texts(self), problem, objective, stop, learner, budget)
