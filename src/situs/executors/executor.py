"""What an executor is, and what it tells about how a placement was realised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from situs.core import Placement
from situs.graph.arrays import Ints

if TYPE_CHECKING:
    from situs.importers import Imported


@dataclass(frozen=True, slots=True)
class Difference:
    """One op that does not run where it was planned, and why."""

    op: str
    planned: str
    realised: str
    cause: str


@dataclass(frozen=True, eq=False)
class Realised:
    """Where the ops of a compiled placement really run.

    Attributes:
        device: ``int32[N]`` number of the placement's device; -1 where the runtime removed the op
            or fused it away so that it runs nowhere by itself, or where only ``realise`` can tell.
        subgraph: ``int32[N]`` number of the compiled sub-graph; -1 likewise.
        subgraphs: Number of compiled sub-graphs.
        differences: Every op that runs elsewhere than planned, with its cause.
        configuration: Effective properties read back per device: ``(device.KEY, value)`` pairs.
        notes: What a person should know (a uniform placement compiled as the plain device, ...).
    """

    device: Ints
    subgraph: Ints
    subgraphs: int
    differences: tuple[Difference, ...]
    configuration: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = ()


class Runnable(Protocol):
    """A compiled placement that runs requests."""

    @property
    def realised(self) -> Realised:
        """What was compiled, read back from the runtime."""
        ...

    def bind(self, inputs: Sequence[np.ndarray[Any, Any]]) -> None:
        """Set the input tensors of the next ``run`` calls, in the order of the model's inputs."""
        ...

    def run(self) -> None:
        """Run one request on the bound inputs, synchronously.

        Raises:
            RunError: If the runtime fails.
        """
        ...

    def outputs(self) -> list[np.ndarray[Any, Any]]:
        """Copies of the outputs of the last request, in the order of the model's outputs."""
        ...


class Executor(Protocol):
    """Turns a placement into something that runs."""

    name: ClassVar[str]

    def compile(
        self, imported: Imported, placement: Placement, options: Mapping[str, str] | None = None
    ) -> Runnable:
        """Compile ``imported.model`` as placed.

        Args:
            imported: The prepared model and its graph.
            placement: Must belong to that graph and to this executor's devices.
            options: Runtime properties for every device, beside the devices' own.

        Raises:
            PlacementError: If it belongs to another graph or names an unknown device.
            CompileError: If a device refuses.
        """
        ...

    def realise(
        self, imported: Imported, placement: Placement, inputs: Sequence[np.ndarray[Any, Any]]
    ) -> Realised:
        """Read back op by op where a placement runs, by running an instrumented twin once."""
        ...
