"""The default learner: the paper's structure with what it needs to really learn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from situs.core import Problem
from situs.graph.arrays import Floats, Ints, frozen
from situs.placers.learned.incumbent import Incumbent
from situs.placers.learned.learner import Episode
from situs.placers.learned.network import Partition
from situs.placers.learned.policy import Policy, entropy, of_ops, one_thread, valued

_BASELINE_RATE = 0.3
_LARGEST_ADVANTAGE = 3.0


@dataclass(frozen=True, slots=True)
class Training:
    """How the default learner learns; the fields are those of the placer."""

    passes: int
    clip: float
    entropy: float
    entropy_decay: float
    guided: float
    imitation: float


@dataclass(frozen=True, eq=False)
class _Round:
    """What was drawn, under which grouping and with which dice for the dropout."""

    partition: Partition
    dice: Tensor
    actions: Int64[Tensor, "K G"]
    log_probs: Float[Tensor, "K G"]
    assignments: Ints


class ProximalLearner:
    """Samples of one forward pass, learned from several times, and moves of the best placement.

    A round draws most placements from the policy and, once there is a best one, ``guided`` of them
    as moves of it. The advantage of a sample is its log-latency against a running baseline, in
    standard deviations of the round. Each group's probability ratio is clipped on its own. The
    best placement is imitated with a small weight.

    Source: Schulman et al., "Proximal policy optimization algorithms", arXiv 1707.06347, equation
    7, with a ratio per group as in multi-agent form (Yu et al., NeurIPS 2022); imitation of the
    best as in Oh et al., "Self-imitation learning", ICML 2018.
    Differs: The network is HSDAG's; all samples of a round share one grouping, which stays fixed
    while they are learned from; the gradient reaches the edge scores through the pooling.
    """

    def __init__(self, problem: Problem, policy: Policy, training: Training) -> None:
        self._policy, self._training = policy, training
        self._best = Incumbent(problem, policy.nodes)
        self._episode = 0
        self._baseline = math.nan
        self._round: _Round | None = None

    def ask(self, count: int) -> Ints:
        """Samples of the policy first, then guided moves."""
        if self._round is None:
            with one_thread(), torch.no_grad():
                self._round = self._draw(count)
        return self._round.assignments

    def _draw(self, count: int) -> _Round:
        policy = self._policy
        dice = policy.generator.get_state()
        decision = policy.decide(policy.start(), policy.generator)
        partition = decision.partition
        known = self._best.devices is not None
        guided = min(int(self._training.guided * count), count - 1) if known else 0
        actions = policy.draw(decision.log_probs, count - guided)
        chosen = decision.log_probs[torch.arange(partition.num_groups), actions]
        assignments = of_ops(policy.nodes, actions[:, partition.group])
        if guided:
            moved = self._best.moves(decision, guided, policy.generator)
            assignments = np.concatenate([assignments, moved])
        return _Round(partition, dice, actions, chosen, frozen(assignments, np.int32))

    def tell(self, seconds: Floats) -> Episode:
        """Several clipped steps on the round's own samples."""
        assert self._round is not None, "ask before tell"
        asked, self._round = self._round, None
        self._episode += 1
        self._best.offer(asked.assignments, seconds)
        good = valued(seconds)
        drawn = np.flatnonzero(good[: len(asked.actions)]).astype(np.int32)
        mean_s = float(seconds[drawn].mean()) if len(drawn) else math.nan
        figures = {"groups": float(asked.partition.num_groups)}
        if len(drawn):
            figures |= self._learn(asked, drawn, -np.log(seconds[drawn]))
        return Episode(self._episode, mean_s, int((~good).sum()), figures)

    def _learn(self, asked: _Round, drawn: Ints, reward: Floats) -> dict[str, float]:
        how = self._training
        center = float(reward.mean())
        if math.isnan(self._baseline):
            self._baseline = center
        self._baseline += _BASELINE_RATE * (center - self._baseline)
        scaled = (reward - self._baseline) / (reward.std() + 1e-3)
        clipped = np.clip(scaled, -_LARGEST_ADVANTAGE, _LARGEST_ADVANTAGE).astype(np.float32)
        advantage = torch.from_numpy(clipped)[:, None]
        rows = torch.from_numpy(drawn).long()
        actions, before = asked.actions[rows], asked.log_probs[rows]
        groups = torch.arange(asked.partition.num_groups)
        bonus = how.entropy * how.entropy_decay**self._episode
        best = self._best.of_nodes(self._policy.nodes.num_nodes)
        figures = {}
        with one_thread():
            for _ in range(how.passes):
                # The same dropout as when drawn, so that the first ratio is one.
                dice = torch.Generator()
                dice.set_state(asked.dice)
                policy = self._policy
                decision = policy.decide(policy.start(), dice, asked.partition)
                ratio = (decision.log_probs[groups, actions] - before).exp()
                held = ratio.clamp(1 - how.clip, 1 + how.clip)
                gain = torch.minimum(ratio * advantage, held * advantage).mean()
                spread = entropy(decision.log_probs)
                liked = best * decision.log_probs[asked.partition.group].clamp(min=-20.0)
                imitated = liked.sum(dim=1).mean()
                norm = policy.step(-gain - bonus * spread - how.imitation * imitated)
                figures = {"entropy": float(spread.detach()), "gradient": norm}
        return figures

    def tensors(self) -> dict[str, Tensor]:
        """See ``Learner``."""
        saved = self._policy.tensors()
        if self._best.devices is not None:
            saved["best"] = torch.from_numpy(self._best.devices.copy())
        return saved

    def scalars(self) -> dict[str, Any]:
        """See ``Learner``."""
        return {
            "episode": self._episode,
            "baseline": self._baseline,
            "best_s": self._best.seconds,
        }

    def restore(self, tensors: dict[str, Tensor], scalars: dict[str, Any]) -> None:
        """See ``Learner``."""
        self._policy.restore(tensors)
        self._episode, self._baseline = scalars["episode"], scalars["baseline"]
        self._best.seconds = scalars["best_s"]
        self._best.devices = tensors["best"].numpy().copy() if "best" in tensors else None
        self._round = None
