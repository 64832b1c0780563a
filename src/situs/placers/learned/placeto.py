"""Placeto: visit every node once, place it again, and learn from the change of latency."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int64
from numpy.typing import NDArray
from torch import Tensor, nn

from situs.core import Problem
from situs.errors import ParameterError
from situs.graph.arrays import Floats, Ints
from situs.placers.learned.distributions import draw_one, entropy, log_chances
from situs.placers.learned.learner import Arrays, Episode, Learner, best_of
from situs.placers.learned.network import adjacency
from situs.placers.learned.node_costs import features_with_paths, node_costs, topological_rank
from situs.placers.learned.nodes import NodeGraph, coarsen, fastest_devices
from situs.placers.learned.policy_gradient import Gradient, mlp
from situs.placers.learned.trainee import Trainee, one_thread

_ROUNDS = 4
_BASELINE_RATE = 0.3
_STEPS_AT_ONCE = 64
# A change makes what was foreseen after it worthless.
_STEPS_AHEAD = 16
# Reachability of more nodes would need more than 200 MB.
_MOST_NODES = 4_000
_FLAGS = 2


@dataclass(frozen=True, slots=True)
class Placeto(Gradient):
    """Improves one placement, node by node in topological order; every step is an evaluation.

    Attributes:
        episodes: See ``Gradient``; the other options too. Here an episode is a round of ask and
            tell; a visit of all nodes takes as many placements as nodes change their device.
        discount: Weight of later changes of latency.
        changes: Nodes that an untrained policy places elsewhere in a visit, about; > 0.

    Source: Addanki et al., "Placeto: Learning generalizable device placement algorithms for
    distributed machine learning", NeurIPS 2019, arXiv 1906.08879.
    Differs: The reward of a step is the change of log-latency; a visit begins with the best
    placement so far, at first the best uniform one; the policy leans to the device that a node has,
    and a step that keeps it costs no evaluation; nodes of the co-location coarsening; all features
    of the nodes are shown, not run time and output size alone; one optimiser step per 64 nodes of
    a visit (``passes`` and ``clip`` are not used).
    """

    name: ClassVar[str] = "placeto"
    shares: ClassVar[tuple[str, ...]] = (*Gradient.shares, "discount")
    hidden: int = 32
    discount: float = 0.9
    changes: float = 3.0

    def __post_init__(self) -> None:
        Gradient.__post_init__(self)
        if not self.changes > 0:
            raise ParameterError(f"placeto: changes must be > 0, got {self.changes}")

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
        keep = math.log(max(1.0, nodes.num_nodes / self.changes - 1))
        trainee = Trainee.create(lambda: Reviser(width, devices, self.hidden, keep), self.lr, seed)
        return _Visitor(nodes, fixed, fastest_devices(problem, nodes), trainee, self)


class Reviser(nn.Module):
    """Messages up and down the graph, summaries of its parts, and a policy for one node."""

    def __init__(self, features: int, devices: int, hidden: int, keep: float) -> None:
        super().__init__()
        # What speaks for the device that a node has.
        self.keep = nn.Parameter(torch.tensor(keep))
        self.inward = mlp(features, hidden, hidden)
        self.down, self.up = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.part = mlp(2 * hidden, hidden, hidden)
        self.policy = mlp(5 * hidden, hidden, devices)

    def forward(
        self,
        features: Float[Tensor, "B V F"],
        consumed: Float[Tensor, "V V"],
        produced: Float[Tensor, "V V"],
        current: Int64[Tensor, "B"],
        parts: Float[Tensor, "B 3 V"],
    ) -> Float[Tensor, "B D"]:
        """Scores of devices for the current node of every row.

        ``consumed`` has a one for each (node, node that it reads) and is sparse, and ``produced``
        is its transpose.
        """
        # Nodes first: a round of messages is then one product with a sparse matrix.
        x = self.inward(features).transpose(0, 1).contiguous()
        down = up = x
        for _ in range(_ROUNDS):
            sent = torch.relu(self.down(down)).flatten(1)
            down = x + torch.sparse.mm(consumed, sent).view_as(x)
            sent = torch.relu(self.up(up)).flatten(1)
            up = x + torch.sparse.mm(produced, sent).view_as(x)
        both = torch.tanh(torch.cat([down, up], dim=2)).transpose(0, 1)
        summaries = (parts @ self.part(both)).flatten(1)
        mine = both[torch.arange(len(both)), current]
        result: Tensor = self.policy(torch.cat([mine, summaries], dim=1))
        return result


@dataclass(eq=False)
class _Visit:
    """One pass over all nodes, in devices of nodes.

    Attributes:
        start: ``int32[V]`` placement that it begins with.
        start_s: Its value, s; NaN until it is known, and if it could not be valued.
        actions: Device of each node that was visited.
        rows: For each of them, the asked placement that its value is that of; -1 = the node kept
            its device, and the value is that of the step before. Of this round's steps only.
        values: Value after each step that was told, s.
    """

    start: Ints
    start_s: float
    start_row: int = -1
    actions: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def current(self, order: NDArray[np.integer]) -> Ints:
        """``int32[V]`` placement after the last step."""
        placed = self.start.copy()
        placed[order[: len(self.actions)]] = self.actions
        return placed

    def told(self, seconds: Floats) -> None:
        """Fill in the values of this round's steps."""
        if self.start_row >= 0:
            self.start_s, self.start_row = float(seconds[self.start_row]), -1
        for row in self.rows:
            last = self.values[-1] if self.values else self.start_s
            self.values.append(last if row < 0 else float(seconds[row]))
        self.rows = []


class _Visitor:
    """The MDP, its pending visits, and the learning at the end of each."""

    def __init__(
        self,
        nodes: NodeGraph,
        fixed: Float[Tensor, "V F"],
        fastest: Ints,
        trainee: Trainee[Reviser],
        how: Placeto,
    ) -> None:
        self._nodes, self._fixed, self._trainee, self._how = nodes, fixed, trainee, how
        self._fastest = fastest
        self._consumed = adjacency(nodes.num_nodes, nodes.target, nodes.source)
        self._produced = adjacency(nodes.num_nodes, nodes.source, nodes.target)
        self._allowed = torch.from_numpy(nodes.allowed.copy())
        self._rank = topological_rank(nodes)
        self._order = np.argsort(self._rank, kind="stable")
        self._parts = _parts(nodes)
        self._baseline = np.full(nodes.num_nodes, np.nan)
        self._episode, self._learned = 0, 0
        self._best: Ints | None = None
        self._best_s = math.inf
        self._visits: list[_Visit] = []
        self._asked: Ints | None = None

    def begin(self, assignments: Ints, seconds: Floats) -> None:
        """The first visit begins with the best of them."""
        row, best_s = best_of(seconds)
        if best_s < self._best_s:
            self._best = self._nodes.devices_of(assignments[row], self._fastest)
            self._best_s = best_s

    def ask(self, count: int) -> Ints:
        """The next placements of the visit, each after one more node changed its device.

        Where a visit ends inside the round, another one begins with what was best before it.
        """
        if self._asked is None:
            rows: list[Ints] = []
            with one_thread(), torch.no_grad():
                while len(rows) < count:
                    if not self._visits or self._ended(self._visits[-1]):
                        self._visits.append(self._begun(rows))
                    else:
                        self._go_on(self._visits[-1], rows)
            self._asked = np.stack(rows).astype(np.int32)
        return self._asked[:, self._nodes.node]

    def _ended(self, visit: _Visit) -> bool:
        return len(visit.actions) == self._nodes.num_nodes

    def _begun(self, rows: list[Ints]) -> _Visit:
        if self._best is not None:
            return _Visit(self._best, self._best_s)
        drawn = draw_one(self._allowed.float().log(), self._trainee.generator)
        start = drawn.numpy().astype(np.int32)
        rows.append(start)
        return _Visit(start, math.nan, len(rows) - 1)

    def _go_on(self, visit: _Visit, rows: list[Ints]) -> None:
        """Up to the next change, or the end; a visit without a change has its end valued again."""
        current, first = visit.current(self._order), len(visit.actions)
        steps = np.arange(first, min(first + _STEPS_AHEAD, len(self._order)), dtype=np.int32)
        shown = np.repeat(current[None], len(steps), axis=0)
        drawn = draw_one(self._scores(shown, steps), self._trainee.generator).numpy()
        changed = np.flatnonzero(drawn != current[self._order[steps]])
        kept = int(changed[0]) if len(changed) else len(steps)
        visit.actions += drawn[:kept].tolist()
        visit.rows += [-1] * kept
        if len(changed):
            device = int(drawn[kept])
            current[self._order[steps[kept]]] = device
            visit.actions.append(device)
            visit.rows.append(len(rows))
            rows.append(current)
        elif self._ended(visit) and np.array_equal(current, visit.start):
            visit.rows[-1] = len(rows)
            rows.append(current)

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
        scores = self._trainee.network(features, self._consumed, self._produced, current, parts)
        kept = self._trainee.network.keep * placed[rows, current]
        return log_chances(scores + kept, self._allowed[current])

    def tell(self, seconds: Floats) -> Episode:
        """Keep the values of the visits, and learn from those that have ended."""
        assert self._asked is not None, "ask before tell"
        asked, self._asked = self._asked, None
        self._episode += 1
        best, best_s = best_of(seconds)
        if best_s < self._best_s:
            self._best, self._best_s = asked[best].copy(), best_s
        figures: dict[str, float] = {"visits": float(self._learned)}
        for visit in self._visits:
            visit.told(seconds)
            if self._ended(visit):
                figures |= self._learn(visit)
                self._learned += 1
        self._visits = [v for v in self._visits if not self._ended(v)]
        return Episode.of(self._episode, seconds, figures)

    def _learn(self, visit: _Visit) -> dict[str, float]:
        count = self._nodes.num_nodes
        before = np.concatenate([[visit.start_s], visit.values])
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
        rows = np.repeat(visit.start[None], count, axis=0)
        for k in range(1, count):
            rows[k:, self._order[k - 1]] = visit.actions[k - 1]
        bonus = self._how.entropy_at(self._learned)
        figures: dict[str, float] = {}
        with one_thread():
            for first in range(0, count, _STEPS_AT_ONCE):
                steps = np.arange(first, min(first + _STEPS_AT_ONCE, count), dtype=np.int32)
                log = self._scores(rows[steps], steps)
                chosen = torch.tensor([visit.actions[k] for k in steps])
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
        # Between tell and ask at most one visit is open.
        for visit in self._visits:
            saved["start"] = visit.start.copy()
            saved["actions"] = np.array(visit.actions, dtype=np.int64)
            saved["values"] = np.array(visit.values, dtype=np.float64)
        return saved

    def scalars(self) -> dict[str, Any]:
        """See ``Learner``."""
        return {
            "episode": self._episode,
            "learned": self._learned,
            "best_s": self._best_s,
            "start_s": self._visits[0].start_s if self._visits else math.nan,
        }

    def restore(self, arrays: Arrays, scalars: dict[str, Any]) -> None:
        """See ``Learner``."""
        self._trainee.restore(arrays)
        self._baseline = arrays["baseline"].astype(np.float64)
        self._best = arrays["best"].astype(np.int32) if "best" in arrays else None
        self._visits = []
        if "start" in arrays:
            visit = _Visit(arrays["start"].astype(np.int32), scalars["start_s"])
            visit.actions, visit.values = arrays["actions"].tolist(), arrays["values"].tolist()
            self._visits.append(visit)
        self._episode, self._learned = scalars["episode"], scalars["learned"]
        self._best_s = scalars["best_s"]
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
