"""The hierarchical RNN policy: a grouper and a sequence-to-sequence placer, trained together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from situs.core import Problem
from situs.errors import ParameterError
from situs.placers.learned.distributions import draw, draw_one, entropy, log_chances
from situs.placers.learned.features import ALL, node_features
from situs.placers.learned.learner import Learner
from situs.placers.learned.network import adjacency, as_indices
from situs.placers.learned.nodes import NodeGraph, fastest_devices, units_of
from situs.placers.learned.policy import of_ops
from situs.placers.learned.policy_gradient import Drawn, Gradient, PolicyGradient, mlp
from situs.placers.learned.trainee import Trainee


@dataclass(frozen=True, slots=True)
class RNN(Gradient):
    """A feed-forward grouper, a bidirectional LSTM encoder, and a decoder with attention.

    Attributes:
        episodes: See ``Gradient``; the other options too.
        sharpness: Factor on the grouper's scores; > 0. Alike nodes begin in one group, and not in
            another one in every sample, so that a group's device has a value to be learned.
        groups: Most groups (256 in the paper); memory and time grow with it, not with the graph.

    Source: Mirhoseini et al., "A hierarchical model for device placement", ICLR 2018; the placer
    after Mirhoseini et al., "Device placement optimization with reinforcement learning", ICML 2017.
    Differs: 16 groups, for graphs of some hundred ops; costs are among the features; reward is the
    log-latency; a node that a group's device bars takes its fastest allowed device; sharp groups
    from the start; clipped steps reuse the samples (``passes=1``: as in the paper).
    """

    name: ClassVar[str] = "rnn"
    at_least_one: ClassVar[tuple[str, ...]] = (*Gradient.at_least_one, "groups")
    groups: int = 16
    sharpness: float = 30.0
    lr: float = 3e-3

    def __post_init__(self) -> None:
        Gradient.__post_init__(self)
        if not self.sharpness > 0:
            raise ParameterError(f"rnn: sharpness must be > 0, got {self.sharpness}")

    def learner(self, problem: Problem, seed: int) -> Learner:
        """See ``Trained``."""
        graph = _Graph.of(problem)
        width = graph.features.shape[1]

        def build() -> Hierarchical:
            return Hierarchical(width, problem.num_devices, self.hidden, self.groups)

        trainee = Trainee.create(build, self.lr, seed)
        return PolicyGradient(trainee, Grouped(graph, trainee.network, self), self)


@dataclass(frozen=True, eq=False)
class _Graph:
    nodes: NodeGraph
    features: Tensor
    adjacency: Tensor
    allowed: Tensor
    fastest: Tensor

    @classmethod
    def of(cls, problem: Problem) -> _Graph:
        nodes = units_of(problem)
        return cls(
            nodes,
            torch.from_numpy(node_features(problem, nodes, ALL)),
            adjacency(nodes.num_nodes, nodes.source, nodes.target),
            torch.from_numpy(nodes.allowed.copy()),
            as_indices(fastest_devices(problem, nodes)),
        )


class Hierarchical(nn.Module):
    """Grouper and placer."""

    def __init__(self, features: int, devices: int, hidden: int, groups: int) -> None:
        super().__init__()
        self.groups = groups
        self.grouper = mlp(features, hidden, groups)
        self.encoder = nn.LSTM(features + groups + 1, hidden, batch_first=True, bidirectional=True)
        self.decoder = nn.LSTMCell(2 * hidden + devices, 2 * hidden)
        self.attention = nn.Linear(2 * hidden, 2 * hidden, bias=False)
        self.head = nn.Linear(4 * hidden, devices)
        self.devices = devices


class Grouped:
    """A hierarchical policy on one problem."""

    def __init__(self, graph: _Graph, network: Hierarchical, how: RNN) -> None:
        self._graph, self._network, self._how = graph, network, how

    def draw(self, count: int, generator: torch.Generator) -> Drawn:
        """See ``Sampler``."""
        group = draw(self._grouping(), count, generator)
        device, _ = self._decode(group, lambda _, log: draw_one(log, generator))
        of_nodes = device.gather(1, group)
        able = self._graph.allowed[torch.arange(group.shape[1]), of_nodes]
        of_nodes = torch.where(able, of_nodes, self._graph.fastest)
        return Drawn(of_ops(self._graph.nodes, of_nodes), (group, device))

    def log_probs(self, choices: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """See ``Sampler``."""
        group, device = choices
        grouping = self._grouping()
        _, logs = self._decode(group, lambda step, _: device[:, step])
        used = torch.zeros_like(device).scatter(1, group, 1)
        of_devices = logs.gather(2, device[:, :, None])[:, :, 0] * used
        of_nodes = grouping[torch.arange(group.shape[1]), group]
        spread = entropy(grouping) + entropy(logs)
        return torch.cat([of_nodes, of_devices], dim=1), spread

    def _grouping(self) -> Float[Tensor, "V M"]:
        scores = self._network.grouper(self._graph.features)
        return torch.log_softmax(self._how.sharpness * scores, dim=1)

    def _embedded(self, group: Int64[Tensor, "K V"]) -> Float[Tensor, "K M F"]:
        """Mean features of the members, share of all edges to each group, and share of nodes."""
        member = torch.nn.functional.one_hot(group, self._network.groups).float()
        size = member.sum(dim=1)
        mean = member.transpose(1, 2) @ self._graph.features / size.clamp(min=1)[:, :, None]
        reached = torch.stack([torch.sparse.mm(self._graph.adjacency, m) for m in member])
        between = member.transpose(1, 2) @ reached
        between = between / max(1, self._graph.adjacency.values().shape[0])
        return torch.cat([mean, between, (size / group.shape[1])[:, :, None]], dim=2)

    def _decode(
        self,
        group: Int64[Tensor, "K V"],
        choose: Callable[[int, Float[Tensor, "K D"]], Int64[Tensor, "K"]],
    ) -> tuple[Int64[Tensor, "K M"], Float[Tensor, "K M D"]]:
        """Devices of the groups one after another, as chosen from each one's log-probabilities."""
        network = self._network
        encoded, _ = network.encoder(self._embedded(group))
        keys = network.attention(encoded)
        count, width = len(group), encoded.shape[2]
        allowed = self._allowed(group)
        hidden = cell = encoded.new_zeros((count, width))
        last = encoded.new_zeros((count, network.devices))
        devices, logs = [], []
        for step in range(network.groups):
            entering = torch.cat([encoded[:, step], last], dim=1)
            hidden, cell = network.decoder(entering, (hidden, cell))
            weight = torch.softmax((keys * hidden[:, None]).sum(dim=2) / width**0.5, dim=1)
            context = (weight[:, :, None] * encoded).sum(dim=1)
            scores = network.head(torch.cat([hidden, context], dim=1))
            log = log_chances(scores, allowed[:, step])
            chosen = choose(step, log)
            last = torch.nn.functional.one_hot(chosen, network.devices).float()
            devices.append(chosen)
            logs.append(log)
        return torch.stack(devices, dim=1), torch.stack(logs, dim=1)

    def _allowed(self, group: Int64[Tensor, "K V"]) -> Bool[Tensor, "K M D"]:
        """Devices that some member may use; all for a group without members."""
        member = torch.nn.functional.one_hot(group, self._network.groups).float()
        able = member.transpose(1, 2) @ self._graph.allowed.float()
        empty = able.sum(dim=2, keepdim=True) == 0
        return (able > 0) | empty
