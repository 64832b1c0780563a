"""The default learner: the paper's structure with what it needs to really learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from situs.core import Problem
from situs.graph.arrays import Floats, Ints, frozen
from situs.placers.learned.advantage import Baseline
from situs.placers.learned.distributions import entropy
from situs.placers.learned.incumbent import Incumbent
from situs.placers.learned.learner import Arrays, Episode, valued
from situs.placers.learned.network import Partition
from situs.placers.learned.policy import Policy, of_ops
from situs.placers.learned.policy_gradient import Gradient, clipped_gain
from situs.placers.learned.trainee import one_thread


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

    def __init__(
        self, problem: Problem, policy: Policy, how: Gradient, guided: float, imitation: float
    ) -> None:
        self._policy, self._how = policy, how
        self._guided, self._imitation = guided, imitation
        self._best = Incumbent(problem, policy.nodes)
        self._episode = 0
        self._baseline = Baseline()
        self._round: _Round | None = None

    def begin(self, assignments: Ints, seconds: Floats) -> None:
        """The first best placement is one of those."""
        self._best.offer(assignments, seconds)

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
        guided = min(int(self._guided * count), count - 1) if known else 0
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
        drawn = np.flatnonzero(valued(seconds[: len(asked.actions)])).astype(np.int32)
        figures = {"groups": float(asked.partition.num_groups)}
        if len(drawn):
            figures |= self._learn(asked, drawn, seconds[drawn])
        return Episode.of(self._episode, seconds, figures, len(asked.actions))

    def _learn(self, asked: _Round, drawn: Ints, seconds: Floats) -> dict[str, float]:
        how = self._how
        advantage = torch.from_numpy(self._baseline.advantages(seconds))[:, None]
        rows = torch.from_numpy(drawn).long()
        actions, before = asked.actions[rows], asked.log_probs[rows]
        groups = torch.arange(asked.partition.num_groups)
        bonus = how.entropy_at(self._episode)
        best = self._best.of_nodes(self._policy.nodes.num_nodes)
        figures = {}
        with one_thread():
            for _ in range(how.passes):
                # The same dropout as when drawn, so that the first ratio is one.
                dice = torch.Generator()
                dice.set_state(asked.dice)
                policy = self._policy
                decision = policy.decide(policy.start(), dice, asked.partition)
                now = decision.log_probs[groups, actions]
                gain = clipped_gain(now, before, advantage, how.clip)
                spread = entropy(decision.log_probs)
                liked = best * decision.log_probs[asked.partition.group].clamp(min=-20.0)
                imitated = liked.sum(dim=1).mean()
                norm = policy.trainee.step(-gain - bonus * spread - self._imitation * imitated)
                figures = {"entropy": float(spread.detach()), "gradient": norm}
        return figures

    def arrays(self) -> Arrays:
        """See ``Learner``."""
        saved = self._policy.arrays()
        if self._best.devices is not None:
            saved["best"] = self._best.devices.copy()
        saved["seen"] = np.array(sorted(self._best.seen), dtype=np.uint64)
        return saved

    def scalars(self) -> dict[str, Any]:
        """See ``Learner``."""
        return {
            "episode": self._episode,
            "baseline": self._baseline.value,
            "best_s": self._best.seconds,
        }

    def restore(self, arrays: Arrays, scalars: dict[str, Any]) -> None:
        """See ``Learner``."""
        self._policy.restore(arrays)
        self._episode, self._baseline.value = scalars["episode"], scalars["baseline"]
        self._best.seconds = scalars["best_s"]
        self._best.devices = arrays["best"].astype(np.int32) if "best" in arrays else None
        self._best.seen = set(arrays["seen"].tolist())
        self._round = None
