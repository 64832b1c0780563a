"""A placement network bound to a problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from situs.core import Problem
from situs.graph.arrays import Ints
from situs.placers.learned.distributions import draw
from situs.placers.learned.features import node_features
from situs.placers.learned.learner import Arrays
from situs.placers.learned.network import Decision, Partition, PlacementNetwork
from situs.placers.learned.nodes import NodeGraph, coarsen
from situs.placers.learned.trainee import Trainee


@dataclass(frozen=True, slots=True)
class Architecture:
    """Sizes of the network and what it looks at; the fields are those of the placer."""

    features: tuple[str, ...]
    hidden: int
    layers: int
    levels: int
    directed: bool
    dropout: float


@dataclass(eq=False)
class Policy:
    """What HSDAG's learners train.

    Attributes:
        nodes: The coarsened graph.
        features: ``float32[V, F]`` features of its nodes.
        trainee: The network, its optimiser and its dice.
    """

    nodes: NodeGraph
    features: Float[Tensor, "V F"]
    trainee: Trainee[PlacementNetwork]

    @classmethod
    def create(cls, problem: Problem, architecture: Architecture, lr: float, seed: int) -> Policy:
        """Fresh weights from a seed."""
        nodes = coarsen(problem)
        features = torch.from_numpy(node_features(problem, nodes, architecture.features))

        def build() -> PlacementNetwork:
            return PlacementNetwork(
                features.shape[1],
                problem.num_devices,
                architecture.hidden,
                architecture.layers,
                architecture.levels,
                architecture.directed,
                architecture.dropout,
            )

        return cls(nodes, features, Trainee.create(build, lr, seed))

    @property
    def generator(self) -> torch.Generator:
        """Draws dropout, samples and moves."""
        return self.trainee.generator

    def start(self) -> Float[Tensor, "V H"]:
        """Projected features: the state of the nodes at the start of an episode."""
        state: Tensor = self.trainee.network.inward(self.features)
        return state

    def decide(
        self,
        state: Float[Tensor, "V H"],
        generator: torch.Generator | None = None,
        partition: Partition | None = None,
    ) -> Decision:
        """One forward pass; see ``PlacementNetwork.forward``."""
        decision: Decision = self.trainee.network(state, self.nodes, generator, partition)
        return decision

    def draw(self, log_probs: Float[Tensor, "G D"], count: int) -> Int64[Tensor, "K G"]:
        """``count`` samples of a device for every group."""
        return draw(log_probs, count, self.generator)

    def arrays(self) -> Arrays:
        """See ``Trainee``; the features too."""
        return self.trainee.arrays() | {"features": self.features.numpy().copy()}

    def restore(self, arrays: Arrays) -> None:
        """Take over what ``arrays`` gave."""
        self.trainee.restore(arrays)
        # Those that it was trained on: costs measured again differ a little.
        self.features = torch.from_numpy(arrays["features"].astype(np.float32))


def of_ops(nodes: NodeGraph, devices: Int64[Tensor, "K V"]) -> Ints:
    """``int32[K, N]`` devices of ops from devices of nodes."""
    assignments: Ints = devices.numpy().astype(np.int32)[:, nodes.node]
    return assignments
