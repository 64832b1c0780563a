"""Value a handful of candidate assignments and keep the best: the end of every simple placer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from situs.core import (
    GapClosed,
    Incumbent,
    Objective,
    Problem,
    Progress,
    RealClock,
    Result,
    place,
)
from situs.errors import Status
from situs.graph.arrays import Ints

# Sums in another order round differently.
_ROUNDING = 1e-9


def with_bound(result: Result, low_s: float, started_s: float, gap: float = 0.0) -> Result:
    """A valued result with a lower bound: ``OPTIMAL`` where they are within ``gap`` or rounding.

    ``started_s`` is when the placer began, by ``RealClock``.
    """
    bound_s = min(low_s, result.seconds)
    closed = GapClosed(max(gap, _ROUNDING))(Progress(best_s=result.seconds, bound_s=bound_s))
    return replace(
        result,
        status=Status.OPTIMAL if closed else Status.STOPPED,
        bound_s=bound_s,
        elapsed_s=RealClock().now() - started_s,
    )


def best_of(
    problem: Problem,
    objective: Objective,
    candidates: Sequence[Ints],
    placer: str,
    parameters: tuple[tuple[str, str], ...],
    started_s: float,
    detail: str = "",
) -> Result:
    """Ask the objective for all candidates; the first of equal best ones wins.

    ``started_s`` is when the placer began, by ``RealClock``.
    """
    clock = RealClock()
    if not candidates:
        return Result(
            Status.INFEASIBLE,
            None,
            placer=placer,
            parameters=parameters,
            elapsed_s=clock.now() - started_s,
            detail=detail or "no candidate placement keeps the limits",
        )
    values = objective.evaluate(np.stack(candidates))
    seconds = np.where(np.isnan(values.seconds), np.inf, values.seconds)
    best = int(np.argmin(seconds))
    found = bool(np.isfinite(seconds[best]))
    elapsed_s = clock.now() - started_s
    return Result(
        Status.OK if found else values.statuses[best],
        place(problem, candidates[best]) if found else None,
        float(seconds[best]),
        placer=placer,
        parameters=parameters,
        evaluations=len(candidates),
        elapsed_s=elapsed_s,
        trace=(Incumbent(len(candidates), elapsed_s, float(seconds[best])),) if found else (),
        detail=detail,
    )
