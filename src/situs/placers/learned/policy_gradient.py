"""The learner of policies that draw whole placements: policy gradient with clipped ratios."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from situs.errors import ParameterError
from situs.graph.arrays import Floats, Ints, frozen
from situs.placers.learned.advantage import Baseline
from situs.placers.learned.learner import Arrays, Episode, valued
from situs.placers.learned.trained import Trained
from situs.placers.learned.trainee import Trainee, one_thread


@dataclass(frozen=True, eq=False)
class Drawn:
    """Samples of a policy.

    Attributes:
        assignments: ``int32[K, N]`` placements.
        choices: What the policy chose, as it needs it to find the probabilities again.
    """

    assignments: Ints
    choices: tuple[Tensor, ...]


class Sampler(Protocol):
    """A policy on one problem."""

    def draw(self, count: int, generator: torch.Generator) -> Drawn:
        """``count`` samples; called without gradients."""
        ...

    def log_probs(
        self, choices: tuple[Tensor, ...]
    ) -> tuple[Float[Tensor, "K A"], Float[Tensor, ""]]:
        """Log-probability of each single choice of each sample, and the mean entropy, nat."""
        ...


@dataclass(frozen=True, slots=True)
class Gradient(Trained):
    """Options of all placers that learn by policy gradient.

    Attributes:
        episodes: See ``Trained``; samples, patience and checkpoint too.
        lr: Learning rate of Adam; >= 0.
        hidden: Width of the network.
        passes: Steps of the optimiser per episode; 1 = REINFORCE.
        clip: Largest change of a choice's probability ratio; > 0.
        entropy: Weight of the entropy bonus in the first episode; >= 0.
        entropy_decay: Factor on it per episode.
    """

    at_least_one: ClassVar[tuple[str, ...]] = ("episodes", "samples", "hidden", "passes")
    at_least_zero: ClassVar[tuple[str, ...]] = ("patience", "lr", "entropy")
    shares: ClassVar[tuple[str, ...]] = ("entropy_decay",)
    lr: float = 1e-3
    hidden: int = 64
    passes: int = 4
    clip: float = 0.2
    entropy: float = 0.02
    entropy_decay: float = 0.97

    def __post_init__(self) -> None:
        Trained.__post_init__(self)
        if not self.clip > 0:
            raise ParameterError(f"{self.name}: clip must be > 0, got {self.clip}")

    def entropy_at(self, episode: int) -> float:
        """Weight of the entropy bonus in an episode, 1 being the first that is learned from."""
        return self.entropy * self.entropy_decay**episode


def clipped_gain(
    now: Float[Tensor, "K A"],
    before: Float[Tensor, "K A"],
    advantage: Float[Tensor, "K 1"],
    clip: float,
) -> Float[Tensor, ""]:
    """Mean clipped gain of choices whose log-probability was ``before`` when they were drawn.

    Source: Schulman et al., arXiv 1707.06347, equation 7.
    """
    ratio = (now - before).exp()
    held = ratio.clamp(1 - clip, 1 + clip)
    return torch.minimum(ratio * advantage, held * advantage).mean()


class PolicyGradient:
    """Draws a round of samples, and learns from it in a few clipped steps.

    The advantage is that of ``Baseline``. Every choice (of a node, a group, a step) has a
    probability ratio of its own, clipped on its own.

    Source: Williams, "Simple statistical gradient-following algorithms for connectionist
    reinforcement learning", 1992; Schulman et al., arXiv 1707.06347, equation 7.
    """

    def __init__(self, trainee: Trainee[Any], sampler: Sampler, how: Gradient) -> None:
        self._trainee, self._sampler, self._how = trainee, sampler, how
        self._episode = 0
        self._baseline = Baseline()
        self._drawn: Drawn | None = None

    def begin(self, assignments: Ints, seconds: Floats) -> None:
        """Only what the policy drew itself can be learned from."""

    def ask(self, count: int) -> Ints:
        """Samples of the policy."""
        if self._drawn is None:
            with one_thread(), torch.no_grad():
                drawn = self._sampler.draw(count, self._trainee.generator)
            self._drawn = Drawn(frozen(drawn.assignments, np.int32), drawn.choices)
        return self._drawn.assignments

    def tell(self, seconds: Floats) -> Episode:
        """Learn from the samples that could be valued."""
        assert self._drawn is not None, "ask before tell"
        drawn, self._drawn = self._drawn, None
        self._episode += 1
        good = valued(seconds)
        figures: dict[str, float] = {}
        if good.any():
            rows = torch.from_numpy(np.flatnonzero(good))
            choices = tuple(c[rows] for c in drawn.choices)
            advantage = torch.from_numpy(self._baseline.advantages(seconds[good]))[:, None]
            figures = self._learn(choices, advantage)
        return Episode.of(self._episode, seconds, figures)

    def _learn(
        self, choices: tuple[Tensor, ...], advantage: Float[Tensor, "K 1"]
    ) -> dict[str, float]:
        how = self._how
        bonus = how.entropy_at(self._episode)
        before: Tensor | None = None
        figures: dict[str, float] = {}
        with one_thread():
            for _ in range(how.passes):
                now, spread = self._sampler.log_probs(choices)
                before = now.detach() if before is None else before
                gain = clipped_gain(now, before, advantage, how.clip)
                norm = self._trainee.step(-gain - bonus * spread)
                figures = {"entropy": float(spread.detach()), "gradient": norm}
        return figures

    def arrays(self) -> Arrays:
        """See ``Learner``."""
        return self._trainee.arrays()

    def scalars(self) -> dict[str, Any]:
        """See ``Learner``."""
        return {"episode": self._episode, "baseline": self._baseline.value}

    def restore(self, arrays: Arrays, scalars: dict[str, Any]) -> None:
        """See ``Learner``."""
        self._trainee.restore(arrays)
        self._episode, self._baseline.value = scalars["episode"], scalars["baseline"]
        self._drawn = None


def mlp(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    """Two linear layers with a ReLU between."""
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))
