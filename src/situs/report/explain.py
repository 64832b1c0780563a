"""Everything that the saved costs say about one op: where it is, what it costs, what moves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from situs.core import Problem
from situs.graph.arrays import Floats, Ints
from situs.report.reasons import Reason, alone_moves, cost_weights, reasons, unit_moves


@dataclass(frozen=True, slots=True)
class Transfer:
    """One crossing of a tensor between two devices.

    Attributes:
        incoming: Whether the op awaits it, rather than sends it.
        producer: Name of the op that writes the tensor.
        source: Number of the device that it leaves.
        target: Number of the device that it reaches.
        size_bytes: What travels, B.
        seconds: Time on the link and of the boundary, s; ``inf`` without a link.
    """

    incoming: bool
    producer: str
    source: int
    target: int
    size_bytes: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """One op of a placement. Axis: ``D`` devices; times by the saved costs.

    Attributes:
        name: Of the op.
        type: Of the op.
        shapes: Element type and shape of each output.
        devices: ``D`` device names.
        device: Number of the device that it is on.
        seconds: ``float64[D]`` time of the op, s; ``inf`` where it is not supported.
        cost_weight: Share of the op in the summed op times of the placement, 0 to 1.
        reason: Why it is where it is.
        group: Names of the ops that move with it, itself included.
        group_moves_s: ``float64[D]`` change of the latency if the whole group moved, s.
        alone_moves_s: ``float64[D]`` change if it alone moved, s, allowed or not.
        transfers: Crossings that it takes part in.
        cost_source: ``measured`` or ``modelled``: where op times come from.
    """

    name: str
    type: str
    shapes: tuple[str, ...]
    devices: tuple[str, ...]
    device: int
    seconds: Floats
    cost_weight: float
    reason: Reason
    group: tuple[str, ...]
    group_moves_s: Floats
    alone_moves_s: Floats
    transfers: tuple[Transfer, ...]
    cost_source: str

    def record(self) -> dict[str, Any]:
        """JSON values; None for infinite and unknown."""
        names = self.devices
        return {
            "op": self.name,
            "type": self.type,
            "outputs": list(self.shapes),
            "device": names[self.device],
            "seconds": dict(zip(names, _finite(self.seconds), strict=True)),
            "cost_source": self.cost_source,
            "cost_weight": self.cost_weight,
            "reason": self.reason.code,
            "why": self.reason.text(names),
            "group": list(self.group),
            "predicted_change_s": {
                "group": dict(zip(names, _finite(self.group_moves_s), strict=True)),
                "alone": dict(zip(names, _finite(self.alone_moves_s), strict=True)),
            },
            "transfers": [
                {
                    "direction": "in" if t.incoming else "out",
                    "producer": t.producer,
                    "from": names[t.source],
                    "to": names[t.target],
                    "bytes": t.size_bytes,
                    "seconds": t.seconds if math.isfinite(t.seconds) else None,
                }
                for t in self.transfers
            ],
        }


def _finite(values: Floats) -> list[float | None]:
    return [float(v) if math.isfinite(v) else None for v in values]


def shapes_of(problem: Problem, op: int) -> tuple[str, ...]:
    """``f32[1,3,224,224]`` for each output of an op."""
    graph = problem.graph
    return tuple(
        f"{graph.tensor_dtype[t]}[{','.join(map(str, graph.tensor_shape[t]))}]"
        for t in range(int(graph.op_tensors[op]), int(graph.op_tensors[op + 1]))
    )


def transfers_of(problem: Problem, assignment: Ints, op: int) -> tuple[Transfer, ...]:
    """Crossings of the tensors that an op reads or writes; each tensor once per other device."""
    graph = problem.graph
    offsets, inputs = graph.inputs
    here = int(assignment[op])
    wanted = [(int(t), here, True) for t in inputs[offsets[op] : offsets[op + 1]]]
    for t in range(int(graph.op_tensors[op]), int(graph.op_tensors[op + 1])):
        readers = graph.consumer_ops[graph.consumer_offsets[t] : graph.consumer_offsets[t + 1]]
        wanted += [(t, int(d), False) for d in np.unique(assignment[readers])]
    return tuple(
        Transfer(
            incoming,
            graph.op_names[int(graph.tensor_producer[t])],
            source,
            target,
            float(problem.costs.transfer_size[t]),
            float(problem.costs.transfer_s(t, source, target) + problem.costs.boundary_s[target]),
        )
        for t, target, incoming in wanted
        if (source := int(assignment[graph.tensor_producer[t]])) != target
    )


def explain(problem: Problem, assignment: Ints, op: int) -> Explanation:
    """Explain one op of a placement by the problem's costs.

    Args:
        problem: What was placed.
        assignment: ``int32[N]`` the placement.
        op: Number of the op.
    """
    graph, unit = problem.graph, problem.units[op : op + 1]
    members = np.flatnonzero(problem.units == unit[0])
    moves = unit_moves(problem, assignment, unit)
    return Explanation(
        name=graph.op_names[op],
        type=graph.op_types[op],
        shapes=shapes_of(problem, op),
        devices=problem.cluster.names,
        device=int(assignment[op]),
        seconds=problem.costs.seconds[op],
        cost_weight=float(cost_weights(problem, assignment)[op]),
        reason=reasons(problem, assignment, moves)[op],
        group=tuple(graph.op_names[int(i)] for i in members),
        group_moves_s=moves[int(unit[0])],
        alone_moves_s=alone_moves(problem, assignment, op),
        transfers=transfers_of(problem, assignment, op),
        cost_source=problem.costs.source,
    )
