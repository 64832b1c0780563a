"""The cost table: seconds per (op, device), seconds per (tensor, link), and bytes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from situs.errors import ProblemError
from situs.graph.arrays import Floats, frozen

MEASURED = "measured"
MODELLED = "modelled"


@dataclass(frozen=True, eq=False)
class CostTable:
    """What ops and transfers cost. Axes: ``N`` ops, ``T`` tensors, ``D`` devices.

    Attributes:
        seconds: ``float64[N, D]`` run time of each op, s; ``inf`` where a device cannot run it.
        transfer_size: ``float64[T]`` amount that moving each tensor sends, B.
        link_latency_s: ``float64[D, D]`` fixed time, s; 0 on the diagonal, inf = no link.
        link_s_per_byte: ``float64[D, D]`` time per unit of ``transfer_size``, s/B; diagonal 0.
        boundary_s: ``float64[D]`` time that a device needs to begin a sub-graph, s.
        source: ``"measured"`` or ``"modelled"``; a modelled table makes simulated results.
        notes: Where the figures come from (threads, precision, versions), as (key, value) pairs.

    Moving tensor ``t`` from device ``a`` to ``b`` takes
    ``link_latency_s[a, b] + transfer_size[t] * link_s_per_byte[a, b]`` seconds.

    Raises:
        ProblemError: If shapes differ, a cost is negative or NaN, or a diagonal is not zero.
    """

    seconds: Floats
    transfer_size: Floats
    link_latency_s: Floats
    link_s_per_byte: Floats
    boundary_s: Floats
    source: str
    notes: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        for field in fields(self)[:5]:
            array = frozen(getattr(self, field.name), np.float64)
            object.__setattr__(self, field.name, array)
            if np.isnan(array).any() or (array < 0).any():
                raise ProblemError(f"cost table: {field.name} has a negative or NaN entry")
        if self.seconds.ndim != 2:
            raise ProblemError("cost table: seconds must be [ops, devices]")
        d = self.num_devices
        for name in ("link_latency_s", "link_s_per_byte"):
            matrix = getattr(self, name)
            if matrix.shape != (d, d) or np.diagonal(matrix).any():
                raise ProblemError(f"cost table: {name} must be [{d}, {d}] with a zero diagonal")
        if self.boundary_s.shape != (d,) or not np.isfinite(self.boundary_s).all():
            raise ProblemError(f"cost table: boundary_s must be {d} finite numbers")
        if np.isinf(self.link_s_per_byte).any() or np.isinf(self.transfer_size).any():
            raise ProblemError("cost table: a missing link is an infinite link_latency_s, only")
        if self.source not in (MEASURED, MODELLED):
            raise ProblemError(f"cost table: source must be {MEASURED!r} or {MODELLED!r}")

    @property
    def num_ops(self) -> int:
        """Number of ops ``N``."""
        return int(self.seconds.shape[0])

    @property
    def num_devices(self) -> int:
        """Number of devices ``D``."""
        return int(self.seconds.shape[1])

    def transfer_s(self, tensor: ArrayLike, source: ArrayLike, target: ArrayLike) -> Any:
        """Seconds to move tensors between devices; arguments broadcast."""
        sizes = self.transfer_size[np.asarray(tensor)]
        a, b = np.asarray(source), np.asarray(target)
        return self.link_latency_s[a, b] + sizes * self.link_s_per_byte[a, b]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CostTable):
            return NotImplemented
        arrays = all(
            np.array_equal(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)[:5]
        )
        return arrays and (self.source, self.notes) == (other.source, other.notes)

    __hash__ = object.__hash__
