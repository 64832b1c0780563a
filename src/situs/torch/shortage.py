"""How many bytes are missing at least: a proof that nothing fits, or a map that does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from situs.graph.arrays import Floats, Ints
from situs.placers.exact.rows import Rows
from situs.torch.problem import Case

# HiGHS keeps constraints to 1e-7 of the scaled figures.
_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Shortage:
    """The least total excess over the memory limits.

    Attributes:
        least_bytes: Proven: every map exceeds the limits by this in all; 0 = nothing proven.
        assignment: ``int32[N]`` map with the least excess that was found, or None.
    """

    least_bytes: float
    assignment: Ints | None


def least_shortage(one: Case, limit_s: float) -> Shortage:
    """Minimise the bytes beyond all limits, by branch and cut, for at most ``limit_s`` seconds.

    The programme says what ``Case.used_bytes`` counts: for every device, the weights of its
    units, the caches of those that it runs, and the largest activations and the largest copy
    among those, are at most its memory plus its excess. The bound is the solver's dual bound.
    """
    blocks, names = one.blocks, one.machine.cluster.names
    weights, caches, work, copies = _per_unit(one)
    units, devices = len(weights), len(names)
    scale = float(weights.sum() + caches.sum()) or 1.0
    rows = Rows()
    x = rows.variables((units, devices), whole=True)
    rows.add_equal([(x[u], np.ones(devices)) for u in range(units)], 1.0)
    excess = rows.variables((devices,), upper=np.full(devices, np.inf))
    rows.cost(excess, np.ones(devices))
    for d, name in enumerate(names):
        held = [(x[:, d], weights / scale), (excess[d : d + 1], -np.ones(1))]
        if name not in one.machine.streamed:
            copied = [s for s, n in enumerate(names) if n in one.machine.streamed]
            copied = copied if name == one.machine.main else []
            largest = rows.variables((2,), upper=np.full(2, np.inf))
            held.append((largest, np.ones(2)))
            for s in [d, *copied]:
                held.append((x[:, s], caches / scale))
                for u in range(units):
                    for k, size in ((0, work[u]), (1, copies[u] if s != d else 0.0)):
                        if size > 0:
                            cell = (x[u, s : s + 1], np.array([-size / scale]))
                            rows.add_least([(largest[k : k + 1], np.ones(1)), cell], 0)
        rows.add_most(held, float(one.limits[d]) / scale)
    values, bound = rows.solve(limit_s, 1e-4)
    least = bound * scale if bound > _TOLERANCE else 0.0
    if values is None:
        return Shortage(least, None)
    device = np.argmax(values[x], axis=1).astype(np.int32)
    return Shortage(least, device[blocks.graph.units])


def _per_unit(one: Case) -> tuple[Floats, Floats, Floats, Floats]:
    """``float64[U]`` each: weights, cache, most activations of a block, most weights of a block."""
    blocks, units = one.blocks, one.blocks.graph.units
    count = int(units.max()) + 1
    weights, caches, work, copies = np.zeros((4, count))
    graph = blocks.graph
    # Blocks with a common weight are one unit, so that each weight has one unit.
    first = graph.reader_ops[graph.reader_offsets[:-1]]
    np.add.at(weights, units[first], graph.constant_bytes)
    np.maximum.at(copies, units, blocks.weight_bytes)
    if one.counting == "run":
        np.add.at(caches, units, blocks.cache_bytes)
        np.maximum.at(work, units, blocks.workspace_bytes)
    return weights, caches, work, copies
