"""A placement: a device for every op, bound to its graph by fingerprint."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from situs.core.problem import Problem
from situs.errors import PlacementError
from situs.graph import Graph
from situs.graph.arrays import Ints, frozen


@dataclass(frozen=True, eq=False)
class Placement:
    """``assignment[i]`` is the number in ``devices`` of the device of op ``i``.

    Attributes:
        graph: Fingerprint of the graph that it belongs to.
        devices: Device names.
        assignment: ``int32[N]``.

    Raises:
        PlacementError: If a number is outside the devices.
    """

    graph: str
    devices: tuple[str, ...]
    assignment: Ints

    def __post_init__(self) -> None:
        object.__setattr__(self, "assignment", frozen(self.assignment, np.int32))
        if self.assignment.ndim != 1:
            raise PlacementError("a placement is one device number per op")
        if len(self.assignment) and (
            self.assignment.min() < 0 or self.assignment.max() >= len(self.devices)
        ):
            raise PlacementError(f"a device number is outside 0..{len(self.devices) - 1}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Placement):
            return NotImplemented
        return (
            self.graph == other.graph
            and self.devices == other.devices
            and bool(np.array_equal(self.assignment, other.assignment))
        )

    def __hash__(self) -> int:
        return hash((self.graph, self.devices, self.assignment.tobytes()))

    @property
    def uniform_device(self) -> str | None:
        """The one device that all ops use, or None."""
        used = self.used
        return used[0] if len(used) == 1 else None

    @property
    def used(self) -> tuple[str, ...]:
        """Names of the devices that some op is on, in the order of ``devices``."""
        return tuple(self.devices[int(d)] for d in np.unique(self.assignment))

    def counts(self) -> dict[str, int]:
        """Ops per device."""
        numbers = np.bincount(self.assignment, minlength=len(self.devices))
        return {name: int(k) for name, k in zip(self.devices, numbers, strict=True)}

    def require_devices(self, names: Collection[str]) -> None:
        """Check that every device that some op is on is among ``names``.

        Raises:
            PlacementError: If one is not.
        """
        for name in self.used:
            if name not in names:
                raise PlacementError(
                    f"the placement uses device {name}; devices here are {', '.join(names)}"
                )

    def require(self, graph: Graph) -> None:
        """Check that this placement belongs to ``graph``.

        Raises:
            PlacementError: If it belongs to another graph.
        """
        if self.graph != graph.fingerprint or len(self.assignment) != graph.num_ops:
            raise PlacementError(
                f"the placement belongs to another model (graph {self.graph}, "
                f"{len(self.assignment)} ops); {graph.name!r} is {graph.fingerprint}, "
                f"{graph.num_ops} ops; run situs place on this model"
            )


def place(problem: Problem, assignment: Ints) -> Placement:
    """Bind an assignment to a problem's graph and devices."""
    return Placement(problem.graph.fingerprint, problem.cluster.names, assignment)


def violation(problem: Problem, assignment: Ints) -> str | None:
    """Say which hard rule an assignment breaks (allowed devices, co-location), or None.

    Memory depends on the schedule and is checked by ``simulate``.
    """
    ops = np.arange(problem.num_ops)
    bad = ~problem.allowed[ops, assignment]
    if bad.any():
        op = int(np.argmax(bad))
        return (
            f"op {problem.graph.op_names[op]!r} may not run on "
            f"{problem.cluster.names[int(assignment[op])]}"
        )
    low = np.full(problem.num_units, problem.num_devices)
    high = np.full(problem.num_units, -1)
    np.minimum.at(low, problem.units, assignment)
    np.maximum.at(high, problem.units, assignment)
    split = low != high
    if split.any():
        op = int(np.flatnonzero(problem.units == int(np.argmax(split)))[0])
        return f"the ops kept together with {problem.graph.op_names[op]!r} are on several devices"
    return None


def count_subgraphs(graph: Graph, assignment: Ints) -> int:
    """Number of device-contiguous sub-graphs: connected sets of ops that share a device."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    u, v = graph.edge_producer, graph.consumer_ops
    same = assignment[u] == assignment[v]
    shape = (graph.num_ops, graph.num_ops)
    inner = coo_array((np.ones(int(same.sum())), (u[same], v[same])), shape=shape)
    count, _ = connected_components(inner, directed=False)
    return int(count)
