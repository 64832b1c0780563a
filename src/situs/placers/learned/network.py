"""The graph parsing network: encoder, edge scorer, pooling, and the policy over devices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from situs.graph.arrays import Ints
from situs.placers.learned import _kernels as kernels
from situs.placers.learned.distributions import log_chances
from situs.placers.learned.nodes import NodeGraph, quotient


@dataclass(frozen=True, eq=False)
class Edges:
    """Edges of a node graph as tensors, with the weights of its normalised adjacency.

    Axes: ``E`` edges. ``weight`` is 1 / sqrt(degree of both ends), degrees counted with a loop.
    """

    source: Int64[Tensor, "E"]
    target: Int64[Tensor, "E"]
    weight: Float[Tensor, "E 1"]
    own: Float[Tensor, "V 1"]

    @classmethod
    def of(cls, count: int, source: Ints, target: Ints) -> Edges:
        """Tensors of ``int32[E]`` ends among ``count`` nodes."""
        a, b = as_indices(source), as_indices(target)
        degree = 1.0 + torch.bincount(torch.cat([a, b]), minlength=count).float()
        scale = degree.rsqrt()
        return cls(a, b, (scale[a] * scale[b])[:, None], (1.0 / degree)[:, None])


class Convolution(nn.Module):
    """One graph convolution with residual, layer norm and ReLU.

    ``directed`` gives messages along and against the edges weights of their own.

    Source: Kipf and Welling, "Semi-supervised classification with graph convolutional networks",
    ICLR 2017, equation 2; residual and norm as in Song et al., ICLR 2024.
    """

    def __init__(self, width: int, directed: bool) -> None:
        super().__init__()
        self.forward_messages = nn.Linear(width, width)
        self.backward_messages = nn.Linear(width, width) if directed else self.forward_messages
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Float[Tensor, "V H"], edges: Edges) -> Float[Tensor, "V H"]:
        """One round of messages."""
        along = self.forward_messages(x)
        against = along
        if self.backward_messages is not self.forward_messages:
            against = self.backward_messages(x)
        mixed = edges.own * along
        mixed = mixed.index_add(0, edges.target, edges.weight * along[edges.source])
        mixed = mixed.index_add(0, edges.source, edges.weight * against[edges.target])
        result: Tensor = torch.relu(self.norm(x + mixed))
        return result


class Level(nn.Module):
    """Encoder, edge scorer and pooling of one parsing level.

    Source: Song et al., "Graph Parsing Networks", ICLR 2024, equations 2-7.
    """

    def __init__(self, width: int, layers: int, directed: bool) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(Convolution(width, directed) for _ in range(layers))
        self.scorer = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))
        self.before = nn.Linear(width, width)
        self.after = nn.Linear(width, width)

    def embed(
        self, x: Float[Tensor, "V H"], edges: Edges, drop: float, generator: torch.Generator | None
    ) -> Float[Tensor, "V H"]:
        """Node embeddings; ``generator`` draws the dropout, None = no dropout."""
        for convolution in self.convolutions:
            x = dropout(convolution(x, edges), drop, generator)
        return x

    def score(self, z: Float[Tensor, "V H"], edges: Edges) -> Float[Tensor, "E"]:
        """Symmetric edge scores, sigmoid(MLP(z_u * z_v)), in 0 .. 1."""
        scores: Tensor = torch.sigmoid(self.scorer(z[edges.source] * z[edges.target]))[:, 0]
        return scores

    def pool(
        self,
        z: Float[Tensor, "V H"],
        scores: Float[Tensor, "E"],
        edges: Edges,
        label: Int64[Tensor, "V"],
        count: int,
    ) -> Float[Tensor, "G H"]:
        """Embedding of each group: sum of members times the mean score of the edges inside.

        The mean score is the path by which the gradient reaches the scorer; 1 without such edges.
        """
        members = z.new_zeros((count, z.shape[1])).index_add(0, label, self.before(z))
        inside = label[edges.source] == label[edges.target]
        group = label[edges.source][inside]
        total = z.new_zeros(count).index_add(0, group, scores[inside])
        edges_in = torch.bincount(group, minlength=count)
        strength = torch.where(edges_in > 0, total / edges_in.clamp(min=1), 1.0)
        pooled: Tensor = self.after(torch.relu(members)) * strength[:, None]
        return pooled


def dropout(x: Tensor, share: float, generator: torch.Generator | None) -> Tensor:
    """Inverted dropout from a generator of its own, so that a run repeats bit for bit."""
    if generator is None or share == 0.0:
        return x
    return x * (torch.rand(x.shape, generator=generator) >= share) / (1.0 - share)


@dataclass(frozen=True, eq=False)
class Partition:
    """How one forward pass grouped the nodes: fixed while its samples are learned from.

    Attributes:
        labels: Per level, ``int64`` group of each node of that level.
        graphs: Per level, its node graph (the first is the input's).
        group: ``int64[V]`` last level's group of each node.
    """

    labels: tuple[Tensor, ...]
    graphs: tuple[NodeGraph, ...]
    edges: tuple[Edges, ...]
    group: Tensor
    allowed: Tensor

    @property
    def num_groups(self) -> int:
        """Number of groups ``G``."""
        return len(self.allowed)


@dataclass(frozen=True, eq=False)
class Decision:
    """What the network says: log-probabilities per group and device, and group embeddings."""

    log_probs: Float[Tensor, "G D"]
    groups: Float[Tensor, "G H"]
    scores: tuple[Tensor, ...]
    partition: Partition


class PlacementNetwork(nn.Module):
    """Features -> nodes' embeddings -> groups -> distribution over devices per group.

    Args:
        features: Number of node features.
        devices: Number of devices.
        hidden: Width ``H``.
        layers: Graph convolutions per level.
        levels: Parsing levels.
        directed: Separate messages along and against edges.
        drop: Dropout share.
    """

    def __init__(
        self,
        features: int,
        devices: int,
        hidden: int = 128,
        layers: int = 2,
        levels: int = 1,
        directed: bool = False,
        drop: float = 0.2,
    ) -> None:
        super().__init__()
        self.drop = drop
        self.inward = nn.Linear(features, hidden)
        self.levels = nn.ModuleList(Level(hidden, layers, directed) for _ in range(levels))
        self.policy = nn.Sequential(
            nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, devices)
        )

    def forward(
        self,
        state: Float[Tensor, "V H"],
        nodes: NodeGraph,
        generator: torch.Generator | None = None,
        partition: Partition | None = None,
    ) -> Decision:
        """Group the nodes and give every group a distribution over its allowed devices.

        Args:
            state: Projected node features, ``inward(X)`` plus what an episode added to them.
            nodes: The node graph.
            generator: Draws the dropout; None = no dropout.
            partition: Keep this grouping (when learning from its samples) instead of parsing anew.
        """
        x = state
        graph = nodes
        labels, graphs, joins = [], [], []
        scores = []
        for number, level in enumerate(self.levels):
            assert isinstance(level, Level)
            if partition is None:
                edges = Edges.of(graph.num_nodes, graph.source, graph.target)
            else:
                edges, graph = partition.edges[number], partition.graphs[number]
            z = level.embed(x, edges, self.drop, generator)
            s = level.score(z, edges)
            label = parse(graph, s) if partition is None else partition.labels[number]
            graphs.append(graph)
            joins.append(edges)
            labels.append(label)
            scores.append(s)
            if partition is None:
                graph = pooled_graph(graph, label)
            count = graph.num_nodes if partition is None else int(label.max()) + 1
            x = level.pool(z, s, edges, label, count)
        if partition is None:
            group = labels[0]
            for label in labels[1:]:
                group = label[group]
            allowed = torch.from_numpy(graph.allowed.copy())
            partition = Partition(tuple(labels), tuple(graphs), tuple(joins), group, allowed)
        log_probs = log_chances(self.policy(x), partition.allowed)
        return Decision(log_probs, x, tuple(scores), partition)


def parse(graph: NodeGraph, scores: Float[Tensor, "E"]) -> Int64[Tensor, "V"]:
    """Group of each node by dominant edges; nodes without a common device stay apart."""
    label = kernels.parse(
        graph.num_nodes,
        graph.source,
        graph.target,
        scores.detach().double().numpy(),
        graph.allowed.copy(),
    )
    return torch.from_numpy(label).long()


def pooled_graph(graph: NodeGraph, label: Int64[Tensor, "V"]) -> NodeGraph:
    """Groups joined by an edge wherever any edge crosses."""
    group = label.numpy().astype(np.int32)
    source, target = quotient(group, graph.source, graph.target)
    allowed = np.ones((int(group.max()) + 1, graph.num_devices), dtype=np.bool_)
    np.logical_and.at(allowed, group, graph.allowed)
    return NodeGraph(group[graph.node], source, target, allowed)


def as_indices(values: Ints) -> Int64[Tensor, "..."]:
    """What tensors are indexed with."""
    return torch.from_numpy(values.astype(np.int64))


def adjacency(count: int, row: Ints, column: Ints) -> Float[Tensor, "V V"]:
    """Sparse matrix with a one at each of the distinct ``int32[E]`` (row, column)."""
    at = torch.stack([as_indices(row), as_indices(column)])
    ones = torch.ones(at.shape[1])
    return torch.sparse_coo_tensor(at, ones, (count, count), check_invariants=False).coalesce()
