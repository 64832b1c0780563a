"""The exact optimum on two devices by minimum cut; alpha-expansion for more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from situs.core import (
    Incumbent,
    Objective,
    Problem,
    Progress,
    RealClock,
    Result,
    Sequential,
    Stop,
    place,
)
from situs.errors import Status
from situs.graph.arrays import Ints
from situs.placers.exact.expansion import expansion_move
from situs.placers.parameters import parameter_texts
from situs.simulate import evaluate, minimum_cut


@dataclass(frozen=True, slots=True)
class MinCut:
    """Minimum of the ``sequential`` model: proven for two devices, a strong local one for more.

    Source: Stone, "Multiprocessor scheduling with the aid of network flow algorithms", IEEE TSE
    3(1), 1977; Boykov, Veksler, Zabih, IEEE PAMI 23(11), 2001, for more devices.

    Differs: A tensor is paid once per destination device, by auxiliary nodes. Memory limits are
    not part of the cut: where they exclude the cut's placement, its value is only a bound.
    """

    name: ClassVar[str] = "mincut"

    def supports(self, problem: Problem) -> str | None:
        """The ``sequential`` model on at least two devices."""
        if not isinstance(problem.model, Sequential):
            return "mincut minimises the sequential model only; use search or cp-sat"
        return None if problem.num_devices >= 2 else "mincut needs at least two devices"

    def __call__(
        self, problem: Problem, objective: Objective, stop: Stop, rng: np.random.Generator
    ) -> Result:
        """Cut, and value the cut's placement with the objective."""
        clock = RealClock()
        started_s = clock.now()
        proven = problem.num_devices == 2
        bound_s = 0.0
        if proven:
            bound_s, assignment = minimum_cut(problem)
        else:
            assignment = _expand(problem, stop)
        value = objective.evaluate(assignment[np.newaxis])
        seconds = float(value.seconds[0])
        elapsed_s = clock.now() - started_s
        found = bool(np.isfinite(seconds))
        optimal = proven and found and seconds <= bound_s * (1 + 1e-12)
        detail = "" if found else "the cut's placement breaks a limit (memory); use search or milp"
        return Result(
            Status.OPTIMAL if optimal else Status.OK if found else value.statuses[0],
            place(problem, assignment) if found else None,
            seconds if found else float("inf"),
            min(bound_s, seconds) if found else bound_s,
            self.name,
            parameter_texts(self),
            evaluations=1,
            elapsed_s=elapsed_s,
            trace=(Incumbent(1, elapsed_s, seconds),) if found else (),
            detail=detail,
        )


def _expand(problem: Problem, stop: Stop) -> Ints:
    """Expansion moves over all devices until none improves the true value."""
    starts = [a for _, a in problem.uniform()]
    starts.append(np.argmin(problem.unit_seconds, axis=1).astype(np.int32)[problem.units])
    values = evaluate(problem, np.stack(starts))
    best, best_s = starts[int(np.argmin(values))], float(values.min())
    improved = True
    while improved and not stop(Progress(best_s=best_s)):
        improved = False
        for alpha in range(problem.num_devices):
            moved = expansion_move(problem, best[problem.unit_heads], alpha)[problem.units]
            value = float(evaluate(problem, moved[np.newaxis])[0])
            if value < best_s:
                best, best_s, improved = moved, value, True
    return best
