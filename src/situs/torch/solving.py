"""The best map of one case: segments first, branch and cut for what they leave open."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from situs.core import MaxSeconds, Problem, Sequential
from situs.graph.arrays import Floats, Ints
from situs.placers.exact.milp import MILP
from situs.placers.exact.segments import Segments, best_splits
from situs.simulate import bound
from situs.simulate.bounds import least_work_s, sequential_lp_s
from situs.torch.problem import Case, Goal
from situs.torch.shortage import least_shortage
from situs.torch.valuing import PlainObjective, block_seconds

_GAP = 1e-6
_ATTEMPTS = 6


@dataclass(frozen=True, eq=False)
class Answer:
    """The best map found in one case.

    Attributes:
        assignment: ``int32[N]`` device of each block, or None.
        value: Its value.
        bound: Proven lower bound over the case's maps; inf if none fits.
        short_bytes: Proven least excess over the limits in all, B; 0 = nothing proven.
    """

    assignment: Ints | None
    value: float
    bound: float
    short_bytes: float


def value_of(one: Case, goal: Goal, assignment: Ints) -> float:
    """The goal's value whatever the limits: seconds, or the fullest device's share."""
    if goal == "fit":
        used, limits = one.used_bytes(assignment), one.limits
        shares = np.divide(used, limits, out=np.full(len(used), np.inf), where=limits > 0)
        return float(shares[used > 0].max(initial=0.0))
    return block_seconds(one.problem(goal), assignment)


def solve(one: Case, goal: Goal, known: Sequence[Ints], seconds: float) -> Answer:
    """Search and prove, for about ``seconds``; ``known`` maps are taken into account.

    Bounds and the proof that nothing fits are those of a relaxation, which counts weights (and
    cache where it stays with them) against the whole limits. Maps must fit with everything.
    """
    stop = MaxSeconds(seconds)
    relaxed = one.problem(goal, one.limits)
    found = [*known, *_segments(one, goal, one.limits), *_segments(one, goal, one.safe_room)]
    best, value = _best(one, goal, found)
    if best is None:
        missing = least_shortage(one, max(seconds / 2, 0.5))
        if missing.least_bytes > 0:
            return Answer(None, math.inf, math.inf, missing.least_bytes)
        if missing.assignment is not None:
            best, value = _best(one, goal, [missing.assignment])
    low = _low(relaxed)
    for room in (one.limits, one.safe_room):
        if value <= low * (1 + _GAP):
            break
        problem = one.problem(goal, room)
        result = MILP(gap=_GAP)(problem, PlainObjective(problem), stop, np.random.default_rng(0))
        if room is one.limits:
            low = max(low, result.bound_s)
        if result.placement is not None:
            offered = [result.placement.assignment] + ([best] if best is not None else [])
            best, value = _best(one, goal, offered)
            if room is one.limits:
                break  # The safe problem's answers are among this one's.
    return Answer(best, value, min(low, value), 0.0)


def _segments(one: Case, goal: Goal, room: Floats) -> list[Ints]:
    """Splits into segments, with less room each time for what the last one had too much."""
    found: list[Ints] = []
    room = room.copy()
    for _ in range(_ATTEMPTS):
        problem = one.problem(goal, room)
        if Segments().supports(problem) is not None:
            break
        splits = best_splits(problem)
        if not splits:
            break
        found += splits
        best = min(splits, key=lambda split: block_seconds(problem, split))
        over = np.maximum(one.used_bytes(best) - one.limits, 0.0)
        if not over.any():
            break
        room = np.maximum(room - over, 0.0)
    return found


def _low(problem: Problem) -> float:
    """A lower bound; for two devices the relaxation has the value of the minimum cut."""
    if isinstance(problem.model, Sequential):
        return max(least_work_s(problem), sequential_lp_s(problem))
    return bound(problem).seconds


def _best(one: Case, goal: Goal, found: Sequence[Ints]) -> tuple[Ints | None, float]:
    best, value = None, math.inf
    for assignment in found:
        if (one.used_bytes(assignment) > one.limits).any():
            continue
        worth = value_of(one, goal, assignment)
        if worth < value:
            best, value = assignment, worth
    return best, value
