"""Value a handful of candidate assignments and keep the best: the end of every simple placer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from situs.core import Incumbent, Objective, Problem, RealClock, Result, place
from situs.errors import Status
from situs.graph.arrays import Ints


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
