"""GDP: a one-shot placer of graph attention that works on any graph of the same devices."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from situs.core import Problem
from situs.errors import ParameterError
from situs.placers.learned.distributions import draw, entropy, log_chances
from situs.placers.learned.features import ALL, feature_width, node_features
from situs.placers.learned.learner import Learner
from situs.placers.learned.network import as_indices
from situs.placers.learned.nodes import NodeGraph, units_of
from situs.placers.learned.policy import of_ops
from situs.placers.learned.policy_gradient import Drawn, Gradient, PolicyGradient, mlp
from situs.placers.learned.trainee import Trainee

# Op types are left out: their vocabulary is another one in every graph.
FEATURES = tuple(name for name in ALL if name != "type")
_HEADS = 4
_SEGMENT = 256


@dataclass(frozen=True, slots=True)
class GDP(Gradient):
    """Graph attention over neighbours, then self-attention along the order, then a device each.

    Attributes:
        episodes: See ``Gradient``; the other options too.
        layers: Graph attention layers.
        weights: A safetensors file of a trained network (``benchmarks/transfer.py``); "" = fresh.

    Source: Zhou et al., "GDP: Generalized device placement for dataflow graphs", arXiv 1910.01578.
    Differs: Attention in place of GraphSAGE's max pooling; segments of 256 nodes without recurrence
    between them; no superposition layer, the costs are features instead; op types are not looked
    at.
    """

    name: ClassVar[str] = "gdp"
    at_least_one: ClassVar[tuple[str, ...]] = (*Gradient.at_least_one, "layers")
    layers: int = 2
    weights: str = ""

    def __post_init__(self) -> None:
        Gradient.__post_init__(self)
        if self.hidden % _HEADS:
            raise ParameterError(f"gdp: hidden must be a multiple of {_HEADS}, got {self.hidden}")

    def trainee(self, num_devices: int, seed: int) -> Trainee[GraphPlacer]:
        """A network for any graph on so many devices."""
        return Trainee.create(
            lambda: GraphPlacer(num_devices, self.hidden, self.layers), self.lr, seed
        )

    def learner(self, problem: Problem, seed: int) -> Learner:
        """See ``Trained``."""
        trainee = self.trainee(problem.num_devices, seed)
        if self.weights:
            _load(trainee.network, Path(self.weights))
        return PolicyGradient(trainee, OneShot(problem, trainee.network), self)


def _load(network: nn.Module, path: Path) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        network.load_state_dict(load_file(path))
    except (OSError, SafetensorError, RuntimeError) as error:
        first = str(error).splitlines()[0]
        raise ParameterError(f"gdp: {path}: not weights of this network ({first})") from error


class GraphAttention(nn.Module):
    """Attention of every node to its neighbours, both ways and itself, with residual and norm."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        # Neighbours before, neighbours behind, and the node itself are told apart.
        self.value = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.kind = nn.Parameter(torch.zeros(3, _HEADS))
        self.norm = nn.LayerNorm(width)

    def forward(
        self,
        x: Float[Tensor, "V H"],
        reader: Int64[Tensor, "E"],
        read: Int64[Tensor, "E"],
        bounds: int,
    ) -> Float[Tensor, "V H"]:
        """One layer; the edges are ``bounds`` forward ones, as many backward, then loops."""
        count, width = x.shape
        q = self.query(x).view(count, _HEADS, -1)[reader]
        k = self.key(x).view(count, _HEADS, -1)[read]
        parts = (slice(0, bounds), slice(bounds, 2 * bounds), slice(2 * bounds, None))
        score = (q * k).sum(dim=2) / (width / _HEADS) ** 0.5
        bias = [self.kind[n].expand(len(reader[part]), _HEADS) for n, part in enumerate(parts)]
        score = score + torch.cat(bias)
        index = reader[:, None].expand_as(score)
        peak = torch.full((count, _HEADS), -torch.inf).scatter_reduce(
            0, index, score.detach(), "amax"
        )
        weight = (score - peak[reader]).exp()
        total = x.new_zeros((count, _HEADS)).index_add(0, reader, weight)
        weight = weight / total[reader]
        values = torch.cat(
            [layer(x)[read[part]] for layer, part in zip(self.value, parts, strict=True)]
        ).view(-1, _HEADS, width // _HEADS)
        mixed = x.new_zeros((count, _HEADS, width // _HEADS))
        mixed = mixed.index_add(0, reader, weight[:, :, None] * values)
        result: Tensor = torch.relu(self.norm(x + mixed.reshape(count, width)))
        return result


class GraphPlacer(nn.Module):
    """Features of nodes to log-probabilities of devices."""

    def __init__(self, devices: int, hidden: int, layers: int) -> None:
        super().__init__()
        self.inward = nn.Linear(feature_width(FEATURES, devices), hidden)
        self.layers = nn.ModuleList(GraphAttention(hidden) for _ in range(layers))
        self.along = nn.TransformerEncoderLayer(
            hidden, _HEADS, 2 * hidden, dropout=0.0, batch_first=True
        )
        self.head = mlp(hidden, hidden, devices)

    def forward(
        self,
        features: Float[Tensor, "V F"],
        reader: Int64[Tensor, "E"],
        read: Int64[Tensor, "E"],
        bounds: int,
    ) -> Float[Tensor, "V D"]:
        """Scores of devices, before bars."""
        x = torch.relu(self.inward(features))
        for layer in self.layers:
            x = layer(x, reader, read, bounds)
        count, width = x.shape
        segments = -(-count // _SEGMENT)
        length = -(-count // segments)
        padded = x.new_zeros((segments * length, width))
        padded[:count] = x
        missing = (torch.arange(segments * length) >= count).view(segments, length)
        mixed = self.along(padded.view(segments, length, width), src_key_padding_mask=missing)
        result: Tensor = self.head(mixed.reshape(-1, width)[:count])
        return result


class OneShot:
    """A network on one problem: every node's device is drawn at once."""

    def __init__(self, problem: Problem, network: GraphPlacer) -> None:
        self.nodes: NodeGraph = units_of(problem)
        self.network = network
        self._features = torch.from_numpy(node_features(problem, self.nodes, FEATURES))
        source, target = as_indices(self.nodes.source), as_indices(self.nodes.target)
        loops = torch.arange(self.nodes.num_nodes)
        self._reader = torch.cat([target, source, loops])
        self._read = torch.cat([source, target, loops])
        self._allowed = torch.from_numpy(self.nodes.allowed.copy())

    def scores(self) -> Float[Tensor, "V D"]:
        """Log-probabilities of devices."""
        scores = self.network(self._features, self._reader, self._read, len(self.nodes.source))
        return log_chances(scores, self._allowed)

    def draw(self, count: int, generator: torch.Generator) -> Drawn:
        """See ``Sampler``."""
        chosen = draw(self.scores(), count, generator)
        return Drawn(of_ops(self.nodes, chosen), (chosen,))

    def log_probs(self, choices: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """See ``Sampler``."""
        logs = self.scores()
        return logs[torch.arange(len(logs)), choices[0]], entropy(logs)
