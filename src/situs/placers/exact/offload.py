"""Latency of a model offloaded call by call, with proof."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from situs.core import Clock, Problem
from situs.graph.arrays import Bools, Ints
from situs.placers.exact.calls import OffloadArrays
from situs.placers.exact.offload_ideals import given_ops, offload_ideals
from situs.placers.exact.offload_search import OffloadSearch
from situs.placers.exact.offload_seconds import offload_seconds, op_arrays
from situs.placers.exact.offload_units import variants

_WHOLE = 1500
_LARGEST_GROUP = 1500


@dataclass(frozen=True, slots=True)
class OffloadAnswer:
    """A placement, its latency and a proven bound on the least one, s."""

    assignment: Ints
    seconds: float
    bound_s: float
    detail: str


def best_offload(
    problem: Problem, clock: Clock, end_s: float, max_ideals: int, largest_group: int, seed: int
) -> OffloadAnswer | None:
    """Best calls found until the clock shows ``end_s``; None if none was found."""
    ops = op_arrays(problem)
    if given_ops(problem).all():
        on_host = np.zeros(problem.num_ops, dtype=np.int32)
        seconds = offload_seconds(ops, on_host)
        return OffloadAnswer(on_host, seconds, seconds, "only the host can run it")
    exact = variants(problem)
    best, best_s, bound_s = None, np.inf, np.inf
    details = []
    for variant in exact or [problem]:
        model = offload_ideals(variant, max_ideals)
        if model is None:
            bound_s = 0.0
            details.append(f"over {max_ideals} ideals: no bound")
            continue
        search = OffloadSearch(model, clock, np.zeros(0, np.int32), cutoff_s=best_s)
        search.run(end_s, largest_group, seed)
        size = model.stages.num_nodes * (model.accelerators + 1)
        if not search.closed and size <= _WHOLE and clock.now() < end_s:
            search.whole(end_s, seed)
        bound_s = min(bound_s, search.bound_s if exact else 0.0)
        details.append(f"{len(model.ideals.sets)} ideals")
        if np.isfinite(search.best_s):
            call = _fitting(ops, model.stages.assignment(search.best), model.stages.weightless)
            seconds = offload_seconds(ops, call)
            if seconds < best_s:
                best, best_s = call, seconds
    if best is None:
        return None
    return OffloadAnswer(best, best_s, min(bound_s, best_s), "; ".join(details))


def _fitting(ops: OffloadArrays, call: Ints, weightless: Bools) -> Ints:
    """Send the idle ops of calls that are too large to the CPU."""
    held = np.bincount(call, ops.node_bytes)
    over = held > ops.limit_bytes
    over[0] = False
    fitted: Ints = np.where(over[call] & weightless, 0, call).astype(np.int32)
    return fitted
