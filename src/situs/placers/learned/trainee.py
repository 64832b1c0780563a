"""A network with its optimiser and its dice: all that learning changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from situs.placers.learned.learner import Arrays

N = TypeVar("N", bound=nn.Module)

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


@dataclass(eq=False)
class Trainee(Generic[N]):
    """What is learned, and how.

    Attributes:
        network: Its parameters are what is learned.
        optimiser: Adam.
        generator: Draws dropout, samples and moves.
    """

    network: N
    optimiser: torch.optim.Adam
    generator: torch.Generator

    @classmethod
    def create(cls, build: Callable[[], N], lr: float, seed: int) -> Trainee[N]:
        """Fresh weights from a seed; torch's global generator is left as it was."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = build()
        optimiser = torch.optim.Adam(network.parameters(), lr=lr)
        return cls(network, optimiser, torch.Generator().manual_seed(seed))

    def step(self, loss: Tensor) -> float:
        """One clipped step of the optimiser; the norm of the gradient before clipping."""
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), _LARGEST_GRADIENT)
        self.optimiser.step()
        return float(norm)

    def arrays(self) -> Arrays:
        """Copies of parameters, of Adam's moments, and of the generator's state."""
        saved = {f"network.{k}": v for k, v in self.network.state_dict().items()}
        for number, moments in self.optimiser.state_dict()["state"].items():
            saved |= {f"adam.{number}.{key}": value for key, value in moments.items()}
        saved["generator"] = self.generator.get_state()
        return {key: value.detach().numpy().copy() for key, value in saved.items()}

    def restore(self, arrays: Arrays) -> None:
        """Take over what ``arrays`` gave."""
        tensors = {key: torch.from_numpy(value.copy()) for key, value in arrays.items()}
        split = len("network.")
        self.network.load_state_dict(
            {k[split:]: v for k, v in tensors.items() if k.startswith("network.")}
        )
        moments: dict[int, dict[str, Tensor]] = {}
        for key, value in tensors.items():
            if key.startswith("adam."):
                _, number, name = key.split(".")
                moments.setdefault(int(number), {})[name] = value
        groups = self.optimiser.state_dict()["param_groups"]
        self.optimiser.load_state_dict({"state": moments, "param_groups": groups})
        self.generator.set_state(tensors["generator"])
