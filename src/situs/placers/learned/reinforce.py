"""The learner exactly as the paper specifies it: REINFORCE over a buffer of steps."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from situs.graph.arrays import Floats, Ints
from situs.placers.learned.distributions import entropy
from situs.placers.learned.learner import Arrays, Episode, valued
from situs.placers.learned.policy import Policy, of_ops
from situs.placers.learned.trainee import one_thread

Failures = Literal["skip", "worst"]


class Reinforce:
    """One placement per step; between steps every node's state gains its group's embedding.

    The loss of an episode is ``-sum_i gamma^i r_i log p(P_i | G')`` with ``r_i = 1 / latency``,
    its unit being the inverse of the first mean latency, which Adam does not see.

    Args:
        policy: What is trained.
        gamma: Weight of step ``i`` is ``gamma ** i``.
        failures: ``skip`` keeps failed placements out of the gradient; ``worst`` gives them the
            worst reward seen.

    Source: Duan et al., NeurIPS 2024, section 2.5 and algorithm 1; x_v <- x_v + z_group(v).
    Differs: The state is the projected features (so that it has the width of the embeddings), and
    the embedding that it gains is not differentiated through.
    """

    def __init__(self, policy: Policy, gamma: float, failures: Failures) -> None:
        self._policy, self._gamma, self._failures = policy, gamma, failures
        self._episode = 0
        self._unit_s = math.nan
        self._worst_s = -math.inf
        self._asked: Ints | None = None
        self._log_probs: list[Tensor] = []
        self._entropy = 0.0
        self._groups = 0.0

    def begin(self, assignments: Ints, seconds: Floats) -> None:
        """The paper's learner knows its own samples only."""

    def ask(self, count: int) -> Ints:
        """One episode of ``count`` steps."""
        if self._asked is None:
            policy, rows, groups = self._policy, [], []
            self._log_probs = []
            with one_thread():
                state = policy.start()
                for _ in range(count):
                    decision = policy.decide(state, policy.generator)
                    actions = policy.draw(decision.log_probs, 1)
                    chosen = decision.log_probs.gather(1, actions.T)
                    self._log_probs.append(chosen.sum())
                    group = decision.partition.group
                    rows.append(actions[0, group])
                    groups.append(decision.partition.num_groups)
                    state = state + decision.groups[group].detach()
                    self._entropy = float(entropy(decision.log_probs.detach()))
            self._groups = float(np.mean(groups))
            self._asked = of_ops(policy.nodes, torch.stack(rows))
        return self._asked

    def tell(self, seconds: Floats) -> Episode:
        """One step of the optimiser."""
        self._asked = None
        self._episode += 1
        good = valued(seconds)
        norm = 0.0
        if good.any():
            self._worst_s = max(self._worst_s, float(seconds[good].max()))
            if math.isnan(self._unit_s):
                self._unit_s = float(seconds[good].mean())
            rewarded = np.where(good, seconds, self._worst_s)
            weight = self._gamma ** np.arange(len(seconds)) * self._unit_s / rewarded
            if self._failures == "skip":
                weight = np.where(good, weight, 0.0)
            terms = torch.stack(self._log_probs) * torch.from_numpy(weight.astype(np.float32))
            with one_thread():
                norm = self._policy.trainee.step(-terms.sum())
        self._log_probs = []
        figures = {"entropy": self._entropy, "groups": self._groups, "gradient": norm}
        return Episode.of(self._episode, seconds, figures)

    def arrays(self) -> Arrays:
        """See ``Learner``."""
        return self._policy.arrays()

    def scalars(self) -> dict[str, Any]:
        """See ``Learner``."""
        return {"episode": self._episode, "unit_s": self._unit_s, "worst_s": self._worst_s}

    def restore(self, arrays: Arrays, scalars: dict[str, Any]) -> None:
        """See ``Learner``."""
        self._policy.restore(arrays)
        self._episode = scalars["episode"]
        self._unit_s, self._worst_s = scalars["unit_s"], scalars["worst_s"]
        self._asked, self._log_probs = None, []
