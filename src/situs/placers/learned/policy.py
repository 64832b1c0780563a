"""A placement network bound to a problem, with its optimiser and its dice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from situs.core import Problem
from situs.graph.arrays import Bools, Floats, Ints
from situs.placers.learned.features import node_features
from situs.placers.learned.network import Decision, Partition, PlacementNetwork
from situs.placers.learned.nodes import NodeGraph, coarsen

_LARGEST_GRADIENT = 1.0


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread: small matrices gain nothing from more, and sums keep one order."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


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
    """The holder of all that learning changes.

    Attributes:
        nodes: The coarsened graph.
        features: ``float32[V, F]`` features of its nodes.
        network: Its parameters are what is learned.
        optimiser: Adam.
        generator: Draws dropout, samples and moves.
    """

    nodes: NodeGraph
    features: Float[Tensor, "V F"]
    network: PlacementNetwork
    optimiser: torch.optim.Adam
    generator: torch.Generator

    @classmethod
    def create(cls, problem: Problem, architecture: Architecture, lr: float, seed: int) -> Policy:
        """Fresh weights from a seed; torch's global generator is left as it was."""
        nodes = coarsen(problem)
        features = torch.from_numpy(node_features(problem, nodes, architecture.features))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = PlacementNetwork(
                features.shape[1],
                problem.num_devices,
                architecture.hidden,
                architecture.layers,
                architecture.levels,
                architecture.directed,
                architecture.dropout,
            )
        optimiser = torch.optim.Adam(network.parameters(), lr=lr)
        return cls(nodes, features, network, optimiser, torch.Generator().manual_seed(seed))

    def start(self) -> Float[Tensor, "V H"]:
        """Projected features: the state of the nodes at the start of an episode."""
        state: Tensor = self.network.inward(self.features)
        return state

    def decide(
        self,
        state: Float[Tensor, "V H"],
        generator: torch.Generator | None = None,
        partition: Partition | None = None,
    ) -> Decision:
        """One forward pass; see ``PlacementNetwork.forward``."""
        decision: Decision = self.network(state, self.nodes, generator, partition)
        return decision

    def draw(self, log_probs: Float[Tensor, "G D"], count: int) -> Int64[Tensor, "K G"]:
        """``count`` samples of a device for every group."""
        drawn = torch.multinomial(
            log_probs.detach().exp(), count, replacement=True, generator=self.generator
        )
        return drawn.T.contiguous()

    def step(self, loss: Tensor) -> float:
        """One clipped step of the optimiser; the norm of the gradient before clipping."""
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), _LARGEST_GRADIENT)
        self.optimiser.step()
        return float(norm)

    def tensors(self) -> dict[str, Tensor]:
        """Copies of parameters, of Adam's moments, and of the generator's state."""
        saved = {f"network.{k}": v.clone() for k, v in self.network.state_dict().items()}
        for number, moments in self.optimiser.state_dict()["state"].items():
            for key, value in moments.items():
                saved[f"adam.{number}.{key}"] = value.clone()
        saved["features"] = self.features.clone()
        saved["generator"] = self.generator.get_state()
        return saved

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Take over what ``tensors`` gave."""
        split = len("network.")
        self.network.load_state_dict(
            {k[split:]: v for k, v in tensors.items() if k.startswith("network.")}
        )
        moments: dict[int, dict[str, Tensor]] = {}
        for key, value in tensors.items():
            if key.startswith("adam."):
                _, number, name = key.split(".")
                moments.setdefault(int(number), {})[name] = value.clone()
        # Those that it was trained on: costs measured again differ a little.
        self.features = tensors["features"]
        groups = self.optimiser.state_dict()["param_groups"]
        self.optimiser.load_state_dict({"state": moments, "param_groups": groups})
        self.generator.set_state(tensors["generator"])


def of_ops(nodes: NodeGraph, devices: Int64[Tensor, "K V"]) -> Ints:
    """``int32[K, N]`` devices of ops from devices of nodes."""
    assignments: Ints = devices.numpy().astype(np.int32)[:, nodes.node]
    return assignments


def entropy(log_probs: Float[Tensor, "G D"]) -> Float[Tensor, ""]:
    """Mean entropy of the groups' distributions, nat."""
    return -(log_probs.exp() * log_probs).sum(dim=1).mean()


def valued(seconds: Floats) -> Bools:
    """``bool[K]`` the placement has a value; a failed one has none, and is no reward."""
    return np.isfinite(seconds)
