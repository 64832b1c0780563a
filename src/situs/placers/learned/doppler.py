"""DOPPLER: one policy selects the next node, another places it, both shown the schedule so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from situs.core import Problem, Sequential
from situs.placers.learned.distributions import draw_one, entropy, log_chances
from situs.placers.learned.learner import Learner
from situs.placers.learned.network import Convolution, Edges
from situs.placers.learned.node_costs import features_with_paths, node_costs
from situs.placers.learned.nodes import coarsen
from situs.placers.learned.policy import of_ops
from situs.placers.learned.policy_gradient import Drawn, Gradient, PolicyGradient, mlp
from situs.placers.learned.trainee import Trainee, one_thread

_LAYERS = 2
# What a device is shown by: idle from, start possible from, run time, load, transfers, members.
_DYNAMIC = 6
_TEACHINGS = 4
# Spread of the noise on the teacher's priorities, so that it shows more than one schedule.
_WANDER = 0.05


@dataclass(frozen=True, slots=True)
class Doppler(Gradient):
    """Imitates the critical-path heuristic first, then learns from values.

    Attributes:
        episodes: See ``Gradient``; the other options too.
        imitation: Steps of imitation before the first episode; they value nothing; >= 0.

    Source: Yao et al., "DOPPLER: Dual-policy learning for device assignment in asynchronous
    dataflow graphs", ICLR 2026, arXiv 2505.23131.
    Differs: Both policies are clipped policy gradients on the log-latency; the path embeddings are
    the lengths of the critical paths to and from a node; nodes of the co-location coarsening.
    Simulated and measured reinforcement are two runs, the second with ``checkpoint`` of the first.
    """

    name: ClassVar[str] = "doppler"
    at_least_zero: ClassVar[tuple[str, ...]] = (*Gradient.at_least_zero, "imitation")
    imitation: int = 50

    def learner(self, problem: Problem, seed: int) -> Learner:
        """See ``Trained``."""
        schedule = _Schedule(problem)
        width = schedule.features.shape[1]
        trainee = Trainee.create(lambda: DualPolicy(width, self.hidden), self.lr, seed)
        sampler = Dual(schedule, trainee.network)
        with one_thread():
            for _ in range(self.imitation):
                with torch.no_grad():
                    shown = sampler.teach(_TEACHINGS, trainee.generator)
                trainee.step(-sampler.log_probs(shown.choices)[0].mean())
        return PolicyGradient(trainee, sampler, self)


class DualPolicy(nn.Module):
    """Encoder, selection policy and device policy."""

    def __init__(self, features: int, hidden: int) -> None:
        super().__init__()
        self.inward = nn.Linear(features, hidden)
        self.layers = nn.ModuleList(Convolution(hidden, directed=True) for _ in range(_LAYERS))
        self.select = mlp(hidden, hidden, 1)
        self.place = mlp(2 * hidden + _DYNAMIC, hidden, 1)


class _Schedule:
    """Costs and predecessors of the nodes as tensors."""

    def __init__(self, problem: Problem) -> None:
        nodes = self.nodes = coarsen(problem)
        costs = node_costs(problem, nodes)
        scale, count = costs.scale_s, nodes.num_nodes
        self.features = torch.from_numpy(features_with_paths(problem, nodes, costs))
        self.edges = Edges.of(count, nodes.source, nodes.target)
        self.allowed = torch.from_numpy(nodes.allowed.copy())
        self.seconds = torch.from_numpy((costs.seconds / scale).astype(np.float32))
        self.latency = torch.from_numpy((costs.latency_s / scale).astype(np.float32))
        self.per_size = torch.from_numpy((costs.s_per_size / scale).astype(np.float32))
        self.bottom = torch.from_numpy((costs.bottom_s / scale).astype(np.float32))
        # On a sequential machine nothing overlaps: every device is busy while one is.
        self.one_clock = isinstance(problem.model, Sequential)
        waiting = np.bincount(nodes.target, minlength=count)
        self.waiting = torch.from_numpy(waiting.astype(np.int64))
        # Predecessors side by side, padded with the node itself and a size of -1.
        widest = max(1, int(waiting.max(initial=0)))
        before = np.repeat(np.arange(count)[:, None], widest, axis=1)
        size = np.full((count, widest), -1.0, dtype=np.float32)
        filled = np.zeros(count, dtype=np.int64)
        for u, v, amount in zip(nodes.source, nodes.target, costs.edge_size, strict=True):
            before[v, filled[v]], size[v, filled[v]] = u, amount
            filled[v] += 1
        self.before, self.size = torch.from_numpy(before), torch.from_numpy(size)
        self.after = torch.zeros((count, count), dtype=torch.int64)
        self.after[self.edges.source, self.edges.target] = 1


class Dual:
    """A dual policy on one problem."""

    def __init__(self, schedule: _Schedule, network: DualPolicy) -> None:
        self._schedule, self._network = schedule, network

    def draw(self, count: int, generator: torch.Generator) -> Drawn:
        """See ``Sampler``."""
        return self._roll(count, generator, taught=False)

    def teach(self, count: int, generator: torch.Generator) -> Drawn:
        """Schedules of the critical-path heuristic: longest path first, where it ends earliest."""
        return self._roll(count, generator, taught=True)

    def log_probs(self, choices: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """See ``Sampler``."""
        order, device, ready, dynamic = choices
        embedded = self._embedded()
        scores = self._network.select(embedded)[:, 0].expand(ready.shape)
        select = log_chances(scores, ready)
        chosen = embedded[order]
        members = torch.nn.functional.one_hot(device, dynamic.shape[2]).to(embedded.dtype)
        added = members[:, :, :, None] * chosen[:, :, None, :]
        before = added.cumsum(dim=1) - added
        held = members.cumsum(dim=1) - members
        place = self._places(chosen, before, held, dynamic, self._schedule.allowed[order])
        of_nodes = select.gather(2, order[:, :, None])[:, :, 0]
        of_devices = place.gather(2, device[:, :, None])[:, :, 0]
        return torch.cat([of_nodes, of_devices], dim=1), entropy(select) + entropy(place)

    def _embedded(self) -> Float[Tensor, "V H"]:
        x = self._network.inward(self._schedule.features)
        for layer in self._network.layers:
            x = layer(x, self._schedule.edges)
        embedded: Tensor = x
        return embedded

    def _places(
        self,
        node: Float[Tensor, "... H"],
        total: Float[Tensor, "... D H"],
        held: Float[Tensor, "... D"],
        dynamic: Float[Tensor, "... D F"],
        allowed: Bool[Tensor, "... D"],
    ) -> Float[Tensor, "... D"]:
        mean = total / held.clamp(min=1)[..., None]
        shown = torch.cat([node[..., None, :].expand_as(mean), mean, dynamic], dim=-1)
        return log_chances(self._network.place(shown)[..., 0], allowed)

    def _roll(self, count: int, generator: torch.Generator, taught: bool) -> Drawn:
        s = self._schedule
        nodes, devices = s.allowed.shape
        rows = torch.arange(count)
        embedded = self._embedded()
        selecting = self._network.select(embedded)[:, 0]
        wander = _WANDER * torch.rand((count, nodes), generator=generator) * s.bottom.max()
        waiting = s.waiting.expand(count, nodes).clone()
        done = torch.zeros((count, nodes), dtype=torch.bool)
        place = torch.zeros((count, nodes), dtype=torch.int64)
        finish = torch.zeros((count, nodes))
        idle, load = torch.zeros((count, devices)), torch.zeros((count, devices))
        total = torch.zeros((count, devices, embedded.shape[1]))
        held = torch.zeros((count, devices))
        kept: list[tuple[Tensor, ...]] = []
        for _ in range(nodes):
            ready = (waiting == 0) & ~done
            if taught:
                node = (s.bottom + wander).masked_fill(~ready, -1.0).argmax(dim=1)
            else:
                node = draw_one(log_chances(selecting.expand(ready.shape), ready), generator)
            arrival, moved = self._arrivals(node, place, finish)
            start = torch.maximum(idle, arrival)
            seconds = s.seconds[node]
            members = held / nodes
            dynamic = torch.stack([idle, start, seconds, load, moved, members], dim=2)
            allowed = s.allowed[node]
            if taught:
                ends = (start + seconds).masked_fill(~allowed, torch.inf)
                device = ends.argmin(dim=1)
            else:
                log = self._places(embedded[node], total, held, dynamic, allowed)
                device = draw_one(log, generator)
            end = start[rows, device] + seconds[rows, device]
            finish[rows, node], place[rows, node], done[rows, node] = end, device, True
            if s.one_clock:
                idle = end[:, None].expand_as(idle).clone()
            else:
                idle[rows, device] = end
            load[rows, device] += seconds[rows, device]
            held[rows, device] += 1
            total[rows, device] += embedded[node]
            waiting -= s.after[node]
            kept.append((node, device, ready, dynamic))
        order, chosen, ready, dynamic = (
            torch.stack(part, dim=1) for part in zip(*kept, strict=True)
        )
        return Drawn(of_ops(s.nodes, place), (order, chosen, ready, dynamic))

    def _arrivals(
        self, node: Int64[Tensor, "K"], place: Int64[Tensor, "K V"], finish: Float[Tensor, "K V"]
    ) -> tuple[Float[Tensor, "K D"], Float[Tensor, "K D"]]:
        """When all that the nodes read can be on each device, and the transfers that it takes."""
        s = self._schedule
        before, size = s.before[node], s.size[node]
        real = size >= 0
        source = place.gather(1, before)
        transfer = s.latency[source] + size.clamp(min=0)[:, :, None] * s.per_size[source]
        transfer = transfer * real[:, :, None]
        if s.one_clock:
            moved = transfer.sum(dim=1)
            ready = (finish.max(dim=1).values)[:, None] + moved
            return ready, moved
        ready = finish.gather(1, before)[:, :, None] * real[:, :, None] + transfer
        return ready.max(dim=1).values, transfer.sum(dim=1)
