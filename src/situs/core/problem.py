"""The problem: graph, cluster, costs, limits and execution model, frozen together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from situs.core.model import ExecutionModel, Sequential
from situs.costs import MODELLED, CostTable
from situs.errors import ProblemError
from situs.graph import Graph
from situs.graph.arrays import Bools, Floats, Ints, frozen
from situs.hardware import Cluster


@dataclass(frozen=True, eq=False)
class Limits:
    """What a placement must respect. Axes: ``N`` ops, ``D`` devices.

    Attributes:
        memory_bytes: ``float64[D]`` memory per device, B; None = the cluster's own figures.
        pinned: ``int32[N]`` device that an op must use, -1 = free; None = all free.
        forbidden: ``bool[N, D]`` devices that an op must not use; None = none.
        max_subgraphs: Largest number of device-contiguous sub-graphs, or None.
        together: ``int32[N]`` class whose members must share a device beside the graph's own
            co-location, -1 = none (ops that a runtime fuses into one); None = no classes.
    """

    memory_bytes: Floats | None = None
    pinned: Ints | None = None
    forbidden: Bools | None = None
    max_subgraphs: int | None = None
    together: Ints | None = None


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything that a placer may look at.

    Raises:
        ProblemError: If shapes differ, or some unit (co-location class) has no allowed device.
    """

    graph: Graph
    cluster: Cluster
    costs: CostTable
    model: ExecutionModel = Sequential()
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        n, d = self.graph.num_ops, len(self.cluster.devices)
        if self.costs.seconds.shape != (n, d):
            raise ProblemError(
                f"costs are for {self.costs.num_ops} ops on {self.costs.num_devices} devices, "
                f"the problem has {n} on {d}"
            )
        if len(self.costs.transfer_size) != self.graph.num_tensors:
            raise ProblemError(
                f"costs are for {len(self.costs.transfer_size)} tensors, "
                f"the graph has {self.graph.num_tensors}"
            )
        for name, shape in (
            ("memory_bytes", (d,)),
            ("pinned", (n,)),
            ("forbidden", (n, d)),
            ("together", (n,)),
        ):
            array = getattr(self.limits, name)
            if array is not None and np.shape(array) != shape:
                raise ProblemError(f"limits: {name} must have shape {shape}")
        pinned = self.limits.pinned
        if pinned is not None and n and (pinned.max() >= d or pinned.min() < -1):
            raise ProblemError(f"limits: a pinned device is outside 0..{d - 1}")
        if self.limits.max_subgraphs is not None and self.limits.max_subgraphs < 1:
            raise ProblemError("limits: max_subgraphs must be >= 1")
        stuck = ~self.unit_allowed.any(axis=1)
        if stuck.any():
            op = int(np.flatnonzero(self.units == int(np.argmax(stuck)))[0])
            raise ProblemError(
                f"no device is allowed for op {self.graph.op_names[op]!r} "
                f"({self.graph.op_types[op]}) and the ops kept together with it; "
                "relax its pins or add a device that supports it"
            )

    @property
    def num_ops(self) -> int:
        """Number of ops ``N``."""
        return self.graph.num_ops

    @property
    def num_devices(self) -> int:
        """Number of devices ``D``."""
        return len(self.cluster.devices)

    @property
    def simulated(self) -> bool:
        """Whether latencies of this problem are simulated from modelled costs."""
        return self.costs.source == MODELLED

    @cached_property
    def units(self) -> Ints:
        """``int32[N]`` unit of each op: ops of one unit share a device."""
        if self.limits.together is None:
            return self.graph.units
        return _merged(self.graph.units, np.asarray(self.limits.together, dtype=np.int32))

    @property
    def num_units(self) -> int:
        """Number of units."""
        return int(self.units.max()) + 1 if self.num_ops else 0

    @cached_property
    def unit_heads(self) -> Ints:
        """``int32[U]`` first op of each unit."""
        return frozen(np.unique(self.units, return_index=True)[1], np.int32)

    @cached_property
    def memory_bytes(self) -> Floats:
        """``float64[D]`` memory limit per device, B; ``inf`` where there is none."""
        if self.limits.memory_bytes is not None:
            return frozen(self.limits.memory_bytes, np.float64)
        return frozen([device.memory_bytes for device in self.cluster.devices], np.float64)

    @cached_property
    def unit_constant_bytes(self) -> Floats:
        """``float64[U]`` bytes of the constants of each unit, one that is read twice counted once.

        A constant shared by several units counts at each: an upper bound, so that what fits here
        fits.
        """
        return self.graph.constants_read(self.units, self.num_units)

    @cached_property
    def allowed(self) -> Bools:
        """``bool[N, D]`` device can run the op, is not forbidden, and agrees with its pin."""
        allowed: Bools = np.isfinite(self.costs.seconds)
        if self.limits.forbidden is not None:
            allowed &= ~self.limits.forbidden
        if self.limits.pinned is not None:
            pinned = self.limits.pinned.reshape(-1, 1)
            allowed &= (pinned < 0) | (np.arange(self.num_devices) == pinned)
        return frozen(allowed, np.bool_)

    @cached_property
    def unit_allowed(self) -> Bools:
        """``bool[U, D]`` every op of the unit is allowed on the device."""
        allowed = np.ones((self.num_units, self.num_devices), dtype=np.bool_)
        np.logical_and.at(allowed, self.units, self.allowed)
        return frozen(allowed, np.bool_)

    @cached_property
    def unit_seconds(self) -> Floats:
        """``float64[U, D]`` summed op times of each unit, s; ``inf`` where not allowed."""
        seconds = np.zeros((self.num_units, self.num_devices))
        np.add.at(seconds, self.units, np.where(self.allowed, self.costs.seconds, np.inf))
        return frozen(seconds, np.float64)

    def uniform(self) -> list[tuple[int, Ints]]:
        """``(device, assignment)`` for every device that may run the whole graph."""
        return [
            (d, frozen(np.full(self.num_ops, d), np.int32))
            for d in range(self.num_devices)
            if self.allowed[:, d].all()
        ]


def _merged(units: Ints, classes: Ints) -> Ints:
    """Dense units, in order of first op, that keep both ``units`` and ``classes`` whole."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(units)
    members = np.flatnonzero(classes >= 0)
    rows = np.concatenate([np.arange(n), members])
    columns = n + np.concatenate([units, n + classes[members]])
    size = int(columns.max()) + 1 if n else 0
    joined = coo_array((np.ones(len(rows)), (rows, columns)), shape=(size, size))
    _, labels = connected_components(joined, directed=False)
    _, first, inverse = np.unique(labels[:n], return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int32)
    rank[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return frozen(rank[inverse], np.int32)
