"""Latency of a model offloaded call by call, with proof."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from situs.core import Clock, Objective, Offload, Problem, RealClock, Result, Stop, seconds_left
from situs.errors import ParameterError
from situs.graph.arrays import Bools, Ints
from situs.placers.candidates import best_of, with_bound
from situs.placers.exact.calls import OffloadArrays
from situs.placers.exact.offload_ideals import given_ops, offload_ideals
from situs.placers.exact.offload_search import OffloadSearch
from situs.placers.exact.offload_seconds import offload_seconds, op_arrays
from situs.placers.exact.offload_units import variants
from situs.placers.parameters import parameter_texts

_WHOLE = 1500
_LARGEST_GROUP = 1500


@dataclass(frozen=True, slots=True)
class OffloadCalls:
    """Which call of an accelerator runs what: shortest ways through the ideals, with a bound.

    Attributes:
        max_seconds: Longest time without another budget, s; > 0.
        max_ideals: Largest number of ideals to list; >= 2. Beyond it nothing is found.

    Source: latency minimisation of Tarnawski et al., "Efficient algorithms for device placement of
    DNN graph operators", NeurIPS 2020, section 4.

    Differs: The paper solves one integer programme. Here a dynamic programme over ideals relaxes
    how calls and the host overlap inside a region, and CP-SAT answers the regions that it uses.
    """

    name: ClassVar[str] = "offload"
    max_seconds: float = 60.0
    max_ideals: int = 60_000

    def __post_init__(self) -> None:
        if not self.max_seconds > 0 or self.max_ideals < 2:
            raise ParameterError("offload: max_seconds must be > 0 and max_ideals >= 2")

    def supports(self, problem: Problem) -> str | None:
        """One call on each of equal accelerators."""
        model, costs = problem.model, problem.costs
        if not isinstance(model, Offload) or model.calls != 1:
            return "offload places calls of the offload model, one per accelerator; use search"
        columns = (
            costs.seconds[:, 1:].T,
            problem.allowed[:, 1:].T,
            costs.link_latency_s[0, 1:],
            costs.link_latency_s[1:, 0],
            costs.link_s_per_byte[0, 1:],
            costs.link_s_per_byte[1:, 0],
            problem.memory_bytes[1:],
        )
        if problem.num_devices < 2 or any((column != column[:1]).any() for column in columns):
            return "offload needs accelerators of equal costs, links and memory; use search"
        if costs.boundary_s.any() or problem.limits.max_subgraphs is not None:
            return "offload knows no boundary costs and no limit of sub-graphs; use search"
        return None

    def __call__(
        self, problem: Problem, objective: Objective, stop: Stop, rng: np.random.Generator
    ) -> Result:
        """Search until the gap is closed or the time is over; value the answer."""
        clock = RealClock()
        started_s = clock.now()
        end_s = started_s + min(self.max_seconds, seconds_left(stop))
        seed = int(rng.integers(1 << 30))
        answer = best_offload(problem, clock, end_s, self.max_ideals, _LARGEST_GROUP, seed)
        candidates = [assignment for _, assignment in problem.uniform()]
        if answer is not None:
            candidates.append(answer.assignment)
        result = best_of(
            problem, objective, candidates, self.name, parameter_texts(self), started_s
        )
        if answer is None or not result.status.found:
            return result
        return replace(with_bound(result, answer.bound_s, started_s), detail=answer.detail)


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
    exact = variants(problem)
    best, best_s, bound_s = None, np.inf, np.inf
    details = []
    for variant in exact or [problem]:
        if given_ops(variant).all():
            on_host = np.zeros(problem.num_ops, dtype=np.int32)
            seconds = offload_seconds(ops, on_host)
            bound_s = min(bound_s, seconds)
            details.append("only the host can run it")
            if seconds < best_s:
                best, best_s = on_host, seconds
            continue
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
