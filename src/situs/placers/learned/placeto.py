"""Placeto: visit every node once, place it again, and learn from the change of latency."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from situs.core import Problem
from situs.graph.arrays import Floats, Ints
from situs.placers.learned.distributions import draw_one, entropy, log_chances
from situs.placers.learned.learner import Arrays, Episode, Learner, valued
from situs.placers.learned.network import as_indices
from situs.placers.learned.node_costs import features_with_paths, node_costs, topological_rank
from situs.placers.learned.nodes import NodeGraph, coarsen
from situs.placers.learned.policy_gradient import Gradient, mlp
from situs.placers.learned.trainee import Trainee, one_thread

_ROUNDS = 4
_BASELINE_RATE = 0.3
_STEPS_AT_ONCE = 64
# Reachability of more nodes would need more than 200 MB.
_MOST_NODES = 4_000
_FLAGS = 2


@dataclass(frozen=True, slots=True)
class Placeto(Gradient):
    """Improves one placement, node by node in topological order; every step is an evaluation.

    Attributes:
        episodes: See ``Gradient``; the other options too. Here an episode is a round of ask and
            tell; one visit of all nodes takes as many placements as there are nodes.
        discount: Weight of later changes of latency.

    Source: Addanki et al., "Placeto: Learning generalizable device placement algorithms for
    distributed machine learning", NeurIPS 2019, arXiv 1906.08879.
    Differs: The reward of a step is the change of log-latency; a visit begins with the best
    placement so far, the first with a random one; nodes of the co-location coarsening; all features
    of the nodes are shown, not run time and output size alone; one optimiser step per visit
    (``passes`` and ``clip`` are not used).
    """

    name: ClassVar[str] = "placeto"
    shares: ClassVar[tuple[str, ...]] = (*Gradient.shares, "discount")
    hidden: int = 32
    discount: float = 0.9

    def supports(self, problem: Problem) -> str | None:
        """Graphs of up to 4,000 nodes after coarsening."""
        if not problem.num_ops:
            return "the graph has no op"
        count = coarsen(problem).num_nodes
        if count > _MOST_NODES:
            return f"{count} nodes after coarsening; reachability is kept for up to {_MOST_NODES}"
        return None

    def learner(self, problem: Problem, seed: int) -> Learner:
        """See ``Trained``."""
        nodes = coarsen(problem)
        costs = node_costs(problem, nodes)
        fixed = torch.from_numpy(features_with_paths(problem, nodes, costs))
        devices = problem.num_devices
        width = fixed.shape[1] + devices + _FLAGS
        trainee = Trainee.create(lambda: Reviser(width, devices, self.hidden), self.lr, seed)
        return _Visitor(nodes, fixed, trainee, self)


class Reviser(nn.Module):
    """Messages up and down the graph, summaries of its parts, and a policy for one node."""

    def __init__(self, features: int, devices: int, hidden: int) -> None:
        super().__init__()
        self.inward = mlp(features, hidden, hidden)
        self.down, self.up = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.part = mlp(2 * hidden, hidden, hidden)
        self.policy = mlp(5 * hidden, hidden, devices)

    def forward(
        self,
        features: Float[Tensor, "B V F"],
        source: Int64[Tensor, "E"],
        target: Int64[Tensor, "E"],
        current: Int64[Tensor, "B"],
        parts: Float[Tensor, "B 3 V"],
    ) -> Float[Tensor, "B D"]:
        """Scores of devices for the current node of every row."""
        x = self.inward(features)
        down = up = x
        for _ in range(_ROUNDS):
            sent = torch.relu(self.down(down))
            down = x + torch.zeros_like(x).index_add(1, target, sent[:, source])
            sent = torch.relu(self.up(up))
            up = x + torch.zeros_like(x).index_add(1, source, sent[:, target])
        both = torch.tanh(torch.cat([down, up], dim=2))
        summaries = (parts @ self.part(both)).flatten(1)
        mine = both[torch.arange(len(both)), current]
        result: Tensor = self.policy(torch.cat([mine, summaries], dim=1))
        return result


class _Visitor:
    """The MDP, its pending visit, and the learning at the end of each visit."""

    def __init__(
        self,
        nodes: NodeGraph,
        fixed: Float[Tensor, "V F"],
        trainee: Trainee[Reviser],
        how: Placeto,
    ) -> None:
        self._nodes, self._fixed, self._trainee, self._how = nodes, fixed, trainee, how
        self._source, self._target = as_indices(nodes.source), as_indices(nodes.target)
        self._allowed = torch.from_numpy(nodes.allowed.copy())
        self._rank = topological_rank(nodes)
        self._order = np.argsort(self._rank, kind="stable")
        self._parts = _parts(nodes)
        count = nodes.num_nodes
        self._baseline = np.full(count, np.nan)
        self._episode, self._visits = 0, 0
        self._best: Ints | None = None
        self._best_s = math.inf
        self._start: Ints | None = None
        self._start_s = math.nan
        self._actions: list[int] = []
        self._values: list[float] = []
        self._asked: Ints | None = None
        # For every asked row, the step of a visit that it is; -1 = a start.
        self._steps: list[int] = []

    def ask(self, count: int) -> Ints:
        """The next placements of the visit, each after one more node was placed again."""
        if self._asked is None:
            rows: list[Ints] = []
            self._steps = []
            with one_thread(), torch.no_grad():
                if self._start is None:
                    self._start = self._random()
                    rows.append(self._start.copy())
                    self._steps.append(-1)
                current = self._current()
                step = len(self._actions)
                while len(rows) < count and step < self._nodes.num_nodes:
                    current = self._replaced(current, step)
                    self._actions.append(int(current[self._order[step]]))
                    self._steps.append(step)
                    rows.append(current)
                    step += 1
                while len(rows) < count:
                    # The visit ends inside this round: what is left is one node of its end
                    # drawn again, as in a visit that goes on.
                    any_step = torch.randint(self._nodes.num_nodes, (1,), generator=self._generator)
                    rows.append(self._replaced(current, int(any_step)))
                    self._steps.append(self._nodes.num_nodes)
            self._asked = np.stack(rows).astype(np.int32)
        return self._asked[:, self._nodes.node]

    @property
    def _generator(self) -> torch.Generator:
        return self._trainee.generator

    def _random(self) -> Ints:
        drawn = draw_one(self._allowed.float().log(), self._generator)
        return drawn.numpy().astype(np.int32)

    def _current(self) -> Ints:
        assert self._start is not None
        current = self._start.copy()
        current[self._order[: len(self._actions)]] = self._actions
        return current

    def _replaced(self, current: Ints, step: int) -> Ints:
        """The placement with the node of one step drawn again by the policy."""
        log = self._scores(current[None], np.array([step], dtype=np.int32))
        moved = current.copy()
        moved[self._order[step]] = int(draw_one(log, self._generator))
        return moved

    def _scores(self, placements: Ints, steps: Ints) -> Float[Tensor, "B D"]:
        count = len(steps)
        shown = self._fixed.expand(count, *self._fixed.shape)
        devices = self._allowed.shape[1]
        placed = torch.nn.functional.one_hot(torch.from_numpy(placements).long(), devices).float()
        flags = torch.zeros((count, self._nodes.num_nodes, _FLAGS))
        current = torch.from_numpy(self._order[steps])
        rows = torch.arange(count)
        flags[rows, current, 0] = 1.0
        flags[:, :, 1] = torch.from_numpy(self._rank < steps[:, None]).float()
        features = torch.cat([shown, placed, flags], dim=2)
        parts = self._parts[:, current].transpose(0, 1)
        scores = self._trainee.network(features, self._source, self._target, current, parts)
        return log_chances(scores, self._allowed[current])

    def tell(self, seconds: Floats) -> Episode:
        """Keep the values of the visit, and learn once it has ended."""
        assert self._asked is not None, "ask before tell"
        asked, self._asked = self._asked, None
        self._episode += 1
        known = np.where(valued(seconds), seconds, np.inf)
        best = int(np.argmin(known))
        if known[best] < self._best_s:
            self._best, self._best_s = asked[best].copy(), float(known[best])
        for step, value in zip(self._steps, seconds, strict=True):
            if step < 0:
                self._start_s = float(value)
            elif step < self._nodes.num_nodes:
                self._values.append(float(value))
        figures: dict[str, float] = {"visits": float(self._visits)}
        if len(self._values) == self._nodes.num_nodes:
            figures |= self._learn()
            self._visits += 1
            self._start, self._start_s = self._best, self._best_s
            self._actions, self._values = [], []
        return Episode.of(self._episode, seconds, figures)

    def _learn(self) -> dict[str, float]:
        assert self._start is not None
        count = self._nodes.num_nodes
        before = np.concatenate([[self._start_s], self._values])
        # A step whose placement could not be valued changes nothing, and is not learned from.
        good = np.isfinite(before)
        filled = np.log(np.where(good, before, 1.0))
        for k in range(1, len(filled)):
            if not good[k]:
                filled[k] = filled[k - 1]
        rewards = filled[:-1] - filled[1:]
        if not good[0]:
            rewards[0] = 0.0
        returns = np.zeros(count)
        later = 0.0
        for k in reversed(range(count)):
            later = rewards[k] + self._how.discount * later
            returns[k] = later
        fresh = np.isnan(self._baseline)
        self._baseline = np.where(fresh, 0.0, self._baseline)
        advantage = (returns - self._baseline) / (returns.std() + 1e-6)
        self._baseline += _BASELINE_RATE * (returns - self._baseline)
        advantage = np.clip(advantage, -3.0, 3.0) * good[1:]
        rows = np.repeat(self._start[None], count, axis=0)
        for k in range(1, count):
            rows[k:, self._order[k - 1]] = self._actions[k - 1]
        bonus = self._how.entropy_at(self._visits)
        figures: dict[str, float] = {}
        with one_thread():
            for first in range(0, count, _STEPS_AT_ONCE):
                steps = np.arange(first, min(first + _STEPS_AT_ONCE, count), dtype=np.int32)
                log = self._scores(rows[steps], steps)
                chosen = torch.tensor([self._actions[k] for k in steps])
                of = log[torch.arange(len(steps)), chosen]
                gain = (of * torch.from_numpy(advantage[steps].astype(np.float32))).mean()
                spread = entropy(log)
                norm = self._trainee.step(-gain - bonus * spread)
                figures = {"entropy": float(spread.detach()), "gradient": norm}
        return figures

    def arrays(self) -> Arrays:
        """See ``Learner``."""
        saved = self._trainee.arrays() | {"baseline": self._baseline.copy()}
        if self._best is not None:
            saved["best"] = self._best.copy()
        if self._start is not None:
            saved["start"] = self._start.copy()
        saved["actions"] = np.array(self._actions, dtype=np.int64)
        saved["values"] = np.array(self._values, dtype=np.float64)
        return saved

    def scalars(self) -> dict[str, Any]:
        """See ``Learner``."""
        return {
            "episode": self._episode,
            "visits": self._visits,
            "best_s": self._best_s,
            "start_s": self._start_s,
        }

    def restore(self, arrays: Arrays, scalars: dict[str, Any]) -> None:
        """See ``Learner``."""
        self._trainee.restore(arrays)
        self._baseline = arrays["baseline"].astype(np.float64)
        self._best = arrays["best"].astype(np.int32) if "best" in arrays else None
        self._start = arrays["start"].astype(np.int32) if "start" in arrays else None
        self._actions = arrays["actions"].tolist()
        self._values = arrays["values"].tolist()
        self._episode, self._visits = scalars["episode"], scalars["visits"]
        self._best_s, self._start_s = scalars["best_s"], scalars["start_s"]
        self._asked = None


def _parts(nodes: NodeGraph) -> Float[Tensor, "3 V V"]:
    """Of every node: mean over its ancestors, its descendants, and all that are neither."""
    from scipy.sparse import csr_matrix

    count = nodes.num_nodes
    ones = np.ones(len(nodes.source), dtype=np.float32)
    edges = csr_matrix((ones, (nodes.source, nodes.target)), shape=(count, count))
    reach = np.eye(count, dtype=np.float32)
    while True:
        # Squaring doubles the length of the paths that are known.
        further = ((reach + edges @ reach) @ reach > 0).astype(np.float32)
        if np.array_equal(further, reach):
            break
        reach = further
    below = reach - np.eye(count, dtype=np.float32)
    parts = np.stack([below.T, below, 1.0 - below - below.T - np.eye(count, dtype=np.float32)])
    parts /= np.maximum(parts.sum(axis=2, keepdims=True), 1.0)
    return torch.from_numpy(parts.astype(np.float32))
