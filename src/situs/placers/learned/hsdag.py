"""HSDAG: learn to group the graph and to place the groups, end to end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from situs.core import Objective, Problem, Result, Stop
from situs.errors import ParameterError
from situs.placers.learned.features import ALL, PAPER, feature_names
from situs.placers.learned.learner import Learner
from situs.placers.learned.policy import Architecture, Policy
from situs.placers.learned.ppo import ProximalLearner, Training
from situs.placers.learned.reinforce import Failures, Reinforce
from situs.placers.learned.training import Budget, train
from situs.placers.parameters import parameter_texts

_AT_LEAST_ONE = ("episodes", "samples", "hidden", "layers", "levels", "passes")
_SHARES = ("dropout", "gamma", "entropy_decay", "guided")


@dataclass(frozen=True, slots=True)
class HSDAG:
    """Structure-aware placement: co-location, features, graph parsing network, policy, reward.

    ``variant="paper"`` trains as the paper says. The default keeps the structure and changes how
    it learns: see ``ProximalLearner``. Both value the uniform placements first.

    Attributes:
        variant: ``default`` or ``paper``.
        episodes: At most this many (paper: 25 in its release, 100 as remembered); >= 1.
        samples: Placements per episode, the paper's buffer of x = 20 steps; >= 1.
        lr: Learning rate of Adam (paper: 1e-3 in its release, 1e-4 as remembered); >= 0.
        hidden: Width of the network (paper: 128).
        layers: Graph convolutions per level (paper: 2).
        levels: Parsing levels; the released code repeats until one group is left.
        directed: Messages along and against the edges have weights of their own.
        dropout: Share (paper: 0.2).
        without: Features to leave out, joined by ``+``: type, degree, fractal, position, shape,
            cost (ours, not in the paper variant).
        patience: Ends after this many episodes without a better placement or mean; 0 = never.
        checkpoint: Folder for checkpoints; a training is continued from there. "" = none.
        gamma: Paper variant: discount per step.
        failures: Paper variant: ``skip`` failed placements, or give them the ``worst`` reward.
        passes: Default variant: steps of the optimiser per episode.
        clip: Default variant: largest change of a probability ratio; > 0.
        entropy: Default variant: weight of the entropy bonus in the first episode; >= 0.
        entropy_decay: Default variant: factor on it per episode.
        guided: Default variant: share of an episode's placements that are moves of the best one.
        imitation: Default variant: weight of imitating the best placement; >= 0.

    Source: Duan et al., "A Structure-Aware Framework for Learning Device Placements on Computation
    Graphs", NeurIPS 2024; Song et al., "Graph Parsing Networks", ICLR 2024.
    Differs: A fixed number of parsing levels; constants belong to their readers; uniform
    placements count; a failure is no reward.
    """

    name: ClassVar[str] = "hsdag"
    variant: Literal["default", "paper"] = "default"
    episodes: int = 100
    samples: int = 20
    lr: float = 1e-3
    hidden: int = 128
    layers: int = 2
    levels: int = 1
    directed: bool = False
    dropout: float = 0.2
    without: str = ""
    patience: int = 0
    checkpoint: str = ""
    gamma: float = 0.99
    failures: Failures = "skip"
    passes: int = 4
    clip: float = 0.2
    entropy: float = 0.02
    entropy_decay: float = 0.97
    guided: float = 0.75
    imitation: float = 0.1

    def __post_init__(self) -> None:
        for key in _AT_LEAST_ONE:
            if getattr(self, key) < 1:
                raise ParameterError(f"hsdag: {key} must be >= 1, got {getattr(self, key)}")
        for key in _SHARES:
            if not 0 <= getattr(self, key) <= 1:
                raise ParameterError(f"hsdag: {key} must be in 0 .. 1, got {getattr(self, key)}")
        if self.dropout == 1:
            raise ParameterError("hsdag: dropout must be below 1")
        for key in ("lr", "entropy", "imitation", "patience"):
            if not getattr(self, key) >= 0:
                raise ParameterError(f"hsdag: {key} must be >= 0, got {getattr(self, key)}")
        if not self.clip > 0:
            raise ParameterError(f"hsdag: clip must be > 0, got {self.clip}")
        feature_names(self.without, self._given)

    @property
    def _given(self) -> tuple[str, ...]:
        return PAPER if self.variant == "paper" else ALL

    def supports(self, problem: Problem) -> str | None:
        """Any problem that has an op."""
        return None if problem.num_ops else "the graph has no op"

    def learner(self, problem: Problem, seed: int) -> Learner:
        """A fresh learner for the problem, in ask and tell form."""
        architecture = Architecture(
            feature_names(self.without, self._given),
            self.hidden,
            self.layers,
            self.levels,
            self.directed,
            self.dropout,
        )
        policy = Policy.create(problem, architecture, self.lr, seed)
        if self.variant == "paper":
            return Reinforce(policy, self.gamma, self.failures)
        training = Training(
            self.passes,
            self.clip,
            self.entropy,
            self.entropy_decay,
            self.guided,
            self.imitation,
        )
        return ProximalLearner(problem, policy, training)

    def __call__(
        self, problem: Problem, objective: Objective, stop: Stop, rng: np.random.Generator
    ) -> Result:
        """Train until the episodes, the patience, or ``stop`` end it."""
        learner = self.learner(problem, int(rng.integers(1 << 31)))
        budget = Budget(self.episodes, self.samples, self.patience, self.checkpoint)
        return train(self.name, parameter_texts(self), problem, objective, stop, learner, budget)
