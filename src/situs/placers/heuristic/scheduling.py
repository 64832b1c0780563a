"""What all list schedulers share: flat costs of a problem, and the end of every one of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from situs.core import Dataflow, Objective, Problem, Result
from situs.graph.arrays import Floats, Ints, frozen
from situs.placers.candidates import best_of
from situs.placers.heuristic import _schedule_kernels as kernels


@dataclass(frozen=True, eq=False)
class Scheduling:
    """Costs of one problem in the form that the kernels take. Axes as in ``CostTable``."""

    problem: Problem

    @cached_property
    def seconds(self) -> Floats:
        """``float64[N, D]`` op times, s; ``inf`` where the op's unit may not go."""
        allowed = self.problem.unit_allowed[self.problem.units]
        return frozen(np.where(allowed, self.problem.costs.seconds, np.inf), np.float64)

    @cached_property
    def mean_s(self) -> Floats:
        """``float64[N]`` mean op time over its allowed devices, s."""
        finite = np.isfinite(self.seconds)
        total = np.where(finite, self.seconds, 0.0).sum(axis=1)
        return frozen(total / np.maximum(finite.sum(axis=1), 1), np.float64)

    @cached_property
    def tensor_s(self) -> Floats:
        """``float64[T]`` mean transfer time of each tensor over the links that exist, s."""
        costs = self.problem.costs
        off = ~np.eye(costs.num_devices, dtype=np.bool_) & np.isfinite(costs.link_latency_s)
        if not off.any():
            return frozen(np.zeros(len(costs.transfer_size)), np.float64)
        latency, per_byte = costs.link_latency_s[off].mean(), costs.link_s_per_byte[off].mean()
        return frozen(latency + costs.transfer_size * per_byte, np.float64)

    @property
    def _forward(self) -> tuple[Ints, Ints, Ints]:
        graph = self.problem.graph
        return graph.op_tensors, graph.consumer_offsets, graph.consumer_ops

    @cached_property
    def arrays(self) -> kernels.Arrays:
        """The problem as the kernels take it."""
        problem, costs = self.problem, self.problem.costs
        return kernels.Arrays(
            *self._forward,
            *problem.graph.inputs,
            problem.graph.tensor_producer,
            problem.units,
            problem.unit_allowed,
            self.problem.unit_constant_bytes,
            self.seconds,
            costs.transfer_size,
            costs.link_latency_s,
            costs.link_s_per_byte,
        )

    @property
    def shared_links(self) -> bool:
        """Whether a link carries one transfer at a time under the problem's model."""
        return isinstance(self.problem.model, Dataflow) and self.problem.model.links == "shared"

    def upward(self) -> Floats:
        """``float64[N]`` upward rank, s."""
        ranks: Floats = kernels.upward_rank(*self._forward, self.mean_s, self.tensor_s)
        return ranks

    def downward(self) -> Floats:
        """``float64[N]`` downward rank, s."""
        ranks: Floats = kernels.downward_rank(*self._forward, self.mean_s, self.tensor_s)
        return ranks

    def optimistic(self) -> Floats:
        """``float64[N, D]`` optimistic cost table of PEFT, s."""
        table: Floats = kernels.optimistic_costs(*self._forward, self.seconds, self.tensor_s)
        return table

    def by_priority(
        self, priority: Floats, bonus: Floats | None = None, insertion: bool = True
    ) -> list[Ints]:
        """Assignments of the ready list in order of ``priority``, one per memory margin."""
        extra = np.zeros(self.seconds.shape) if bonus is None else bonus
        return [
            kernels.schedule_by_priority(
                priority, extra, self.arrays, memory, self.shared_links, insertion
            )
            for memory in self._margins()
        ]

    def earliest(self, favourite: Ints | None = None, queued: bool = False) -> list[Ints]:
        """Assignments of the earliest startable pairs, one per memory margin."""
        children = np.full(self.problem.num_ops, -1, np.int32) if favourite is None else favourite
        shared = queued or self.shared_links
        return [
            kernels.schedule_earliest(self.upward(), children, self.arrays, memory, shared)
            for memory in self._margins()
        ]

    def _margins(self) -> list[Floats]:
        """Memory to plan with: all of it, and less where activations may need some of it."""
        memory = self.problem.memory_bytes
        if np.isinf(memory).all():
            return [memory]
        return [memory * share for share in (1.0, 0.9, 0.75, 0.5)]

    def best(
        self,
        objective: Objective,
        candidates: list[Ints],
        placer: str,
        parameters: tuple[tuple[str, str], ...],
        started_s: float,
    ) -> Result:
        """The best of the candidates and the uniform placements."""
        uniform = [assignment for _, assignment in self.problem.uniform()]
        unique = {a.tobytes(): a for a in [*candidates, *uniform]}
        return best_of(
            self.problem, objective, list(unique.values()), placer, parameters, started_s
        )
