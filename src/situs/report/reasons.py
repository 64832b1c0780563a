"""Why each op is where it is, and what would change if it moved; by the saved costs (predicted)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from situs.core import Problem, violation
from situs.graph.arrays import Floats, Ints, Longs
from situs.simulate import Evaluator

FORCED = "forced"
PINNED = "pinned"
TOGETHER = "co-located"
FUSED = "fused"
CHEAPER = "cheaper"
MEMORY = "memory"
FREE = "indifferent"
KEPT = "kept"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why one op is on its device.

    Attributes:
        code: ``forced`` (no other device supports it), ``pinned`` (by a rule), ``co-located`` and
            ``fused`` (it goes where ``other`` goes), ``cheaper`` (every other device would take
            longer), ``memory`` (another device would be faster but lacks memory), ``indifferent``
            (another device would be as fast), or ``kept`` (the costs expect another device to be
            faster, but this placement as a whole was chosen).
        other: Name of the heaviest op of its unit, where the code speaks of one.
        device: Number of the best other device for its unit; -1 if there is none.
        delta_s: Change of the latency if its whole unit moved there, s; ``inf`` if it may not,
            NaN if the placement has no latency under these costs.
    """

    code: str
    other: str
    device: int
    delta_s: float

    def text(self, devices: tuple[str, ...]) -> str:
        """One line for people; times are predicted."""
        cost = ""
        if self.device >= 0 and math.isfinite(self.delta_s):
            cost = f"moving to {devices[self.device]}: {self.delta_s * 1e3:+.3g} ms (predicted)"
        words = {
            FORCED: "forced: no other device supports it",
            PINNED: "pinned by a rule",
            TOGETHER: f"co-located with {self.other}",
            FUSED: f"fused with {self.other}",
            CHEAPER: "cheaper here",
            MEMORY: "memory: the faster device has no room for it",
            FREE: "indifferent: another device would be as fast",
            KEPT: "kept as part of the chosen placement, though it alone might move",
        }[self.code]
        return f"{words}; {cost}" if cost else words


def unit_moves(problem: Problem, assignment: Ints, units: Ints | None = None) -> Floats:
    """``float64[U, D]`` change of the predicted latency if a unit moved to a device, s.

    0 where it is, ``inf`` where it may not go; NaN everywhere if the placement itself is not
    feasible under these costs.

    Args:
        problem: What was placed.
        assignment: ``int32[N]`` the placement.
        units: Numbers of the units to move; None = all. Rows of others are NaN.
    """
    deltas = np.full((problem.num_units, problem.num_devices), np.nan)
    if violation(problem, assignment) is not None:
        return deltas
    evaluator = Evaluator(problem, assignment)
    base_s = evaluator.seconds
    if not math.isfinite(base_s):
        return deltas
    wanted = np.arange(problem.num_units, dtype=np.int32) if units is None else units
    deltas[wanted] = np.inf
    here = assignment[problem.unit_heads[wanted]]
    allowed = problem.unit_allowed[wanted].copy()
    allowed[np.arange(len(wanted)), here] = False
    row, device = np.nonzero(allowed)
    moved_s = evaluator.price(wanted[row].astype(np.int32), device.astype(np.int32))
    deltas[wanted[row], device] = moved_s - base_s
    deltas[wanted, here] = 0.0
    return deltas


def alone_moves(problem: Problem, assignment: Ints, op: int) -> Floats:
    """``float64[D]`` change of the predicted latency if one op left its unit for a device, s.

    What keeps the unit together may forbid it; this says what it would cost all the same.
    """
    graph = replace(problem.graph, colocation=np.full(problem.num_ops, -1, dtype=np.int32))
    free = replace(problem, graph=graph, limits=replace(problem.limits, together=None))
    return np.asarray(unit_moves(free, assignment, free.units[op : op + 1])[free.units[op]])


def placed_seconds(problem: Problem, assignment: Ints) -> Floats:
    """``float64[N]`` time of each op where it is, s; 0 where the costs say it cannot be."""
    seconds = problem.costs.seconds[np.arange(problem.num_ops), assignment]
    return np.asarray(np.where(np.isfinite(seconds), seconds, 0.0), dtype=np.float64)


def heaviest_ops(problem: Problem) -> Longs:
    """``int64[U]`` the op of each unit that takes longest anywhere: it speaks for the unit."""
    known = np.where(np.isfinite(problem.costs.seconds), problem.costs.seconds, 0.0).max(axis=1)
    order = np.argsort(known, kind="stable")
    head = np.zeros(problem.num_units, dtype=np.int64)
    head[problem.units[order]] = order
    return head


def cost_weights(problem: Problem, assignment: Ints) -> Floats:
    """``float64[N]`` share of each op in the summed op times of this placement; they sum to 1."""
    seconds = placed_seconds(problem, assignment)
    total = seconds.sum()
    return np.asarray(seconds / total if total > 0 else seconds, dtype=np.float64)


def reasons(problem: Problem, assignment: Ints, moves: Floats | None = None) -> list[Reason]:
    """The reason of every op; ``moves`` is what ``unit_moves`` gave, if it is known already."""
    if moves is None:
        moves = unit_moves(problem, assignment)
    head = heaviest_ops(problem)
    size = np.bincount(problem.units, minlength=problem.num_units)
    supported = np.ones((problem.num_units, problem.num_devices), dtype=np.bool_)
    np.logical_and.at(supported, problem.units, np.isfinite(problem.costs.seconds))
    same_class = problem.graph.units == problem.graph.units[head[problem.units]]
    found: list[Reason] = []
    for op in range(problem.num_ops):
        unit, here = int(problem.units[op]), int(assignment[op])
        others = [d for d in range(problem.num_devices) if d != here]
        best = min(others, key=lambda d: (np.nan_to_num(moves[unit, d], nan=np.inf), d), default=-1)
        delta_s = float(moves[unit, best]) if best >= 0 else math.inf
        code, other = _code(problem, op, here, supported[unit], moves[unit], others, delta_s), ""
        if op != head[unit] and size[unit] > 1 and code != PINNED:
            code = TOGETHER if same_class[op] else FUSED
            other = problem.graph.op_names[int(head[unit])]
        found.append(Reason(code, other, best, delta_s))
    return found


def _code(
    problem: Problem,
    op: int,
    here: int,
    supported: np.ndarray[tuple[int], np.dtype[np.bool_]],
    moves: Floats,
    others: list[int],
    delta_s: float,
) -> str:
    if problem.limits.pinned is not None and problem.limits.pinned[op] >= 0:
        return PINNED
    if supported[here] and not any(supported[d] for d in others):
        return FORCED
    unit = problem.units[op]
    if any(np.isinf(moves[d]) and problem.unit_allowed[unit, d] for d in others):
        faster = problem.unit_seconds[unit] < problem.unit_seconds[unit, here]
        if any(faster[d] and np.isinf(moves[d]) for d in others):
            return MEMORY
    if math.isnan(delta_s) or delta_s < 0:
        return KEPT
    return CHEAPER if delta_s > 0 else FREE
