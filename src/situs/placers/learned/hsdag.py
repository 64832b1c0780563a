"""HSDAG: learn to group the graph and to place the groups, end to end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from situs.core import Problem
from situs.errors import ParameterError
from situs.placers.learned.features import ALL, PAPER, feature_names
from situs.placers.learned.learner import Learner
from situs.placers.learned.policy import Architecture, Policy
from situs.placers.learned.policy_gradient import Gradient
from situs.placers.learned.ppo import ProximalLearner
from situs.placers.learned.reinforce import Failures, Reinforce


@dataclass(frozen=True, slots=True)
class HSDAG(Gradient):
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
        patience: See ``Trained``; checkpoint too.
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
    at_least_one: ClassVar[tuple[str, ...]] = (*Gradient.at_least_one, "layers", "levels")
    at_least_zero: ClassVar[tuple[str, ...]] = (*Gradient.at_least_zero, "imitation")
    shares: ClassVar[tuple[str, ...]] = (*Gradient.shares, "dropout", "gamma", "guided")
    variant: Literal["default", "paper"] = "default"
    hidden: int = 128
    layers: int = 2
    levels: int = 1
    directed: bool = False
    dropout: float = 0.2
    without: str = ""
    gamma: float = 0.99
    failures: Failures = "skip"
    guided: float = 0.85
    imitation: float = 0.1

    def __post_init__(self) -> None:
        Gradient.__post_init__(self)
        if self.dropout == 1:
            raise ParameterError("hsdag: dropout must be below 1")
        feature_names(self.without, self._given)

    @property
    def _given(self) -> tuple[str, ...]:
        return PAPER if self.variant == "paper" else ALL

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
        return ProximalLearner(problem, policy, self, self.guided, self.imitation)
