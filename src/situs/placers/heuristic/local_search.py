"""Iterated local search over the objective itself, simulated or measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from situs.core import Incumbent, Objective, Problem, Progress, RealClock, Result, Stop, place
from situs.errors import ParameterError, Status
from situs.graph.arrays import Ints
from situs.placers.heuristic.moves import Neighbourhood
from situs.placers.parameters import parameter_texts


@dataclass(frozen=True, slots=True)
class LocalSearch:
    """Moves units and groups, keeps what is not worse, and kicks the best when it is stuck.

    Each candidate costs one evaluation of the objective, so that its budget compares with that of
    a learned placer. Starts from the best of the uniform placements and each unit's fastest device.

    Attributes:
        patience: Moves in a row that may fail before a kick; >= 1.
        kicks: Kicks in a row that may fail before it ends; >= 0.
        strength: Moves in one kick; >= 1.

    Source: Lourenco, Martin, Stutzle, "Iterated Local Search", Handbook of Metaheuristics, 2003.
    """

    name: ClassVar[str] = "local-search"
    patience: int = 200
    kicks: int = 20
    strength: int = 3

    def __post_init__(self) -> None:
        for key, least in (("patience", 1), ("kicks", 0), ("strength", 1)):
            if getattr(self, key) < least:
                raise ParameterError(f"local-search: {key} must be >= {least}")

    def supports(self, problem: Problem) -> str | None:
        """Any problem."""
        return None

    def __call__(
        self, problem: Problem, objective: Objective, stop: Stop, rng: np.random.Generator
    ) -> Result:
        """Search until ``stop``, or until ``kicks`` kicks in a row found nothing better."""
        clock = RealClock()
        started_s = clock.now()
        moves = Neighbourhood(problem)
        trace: list[Incumbent] = []
        evaluations = 0
        best_s, best = np.inf, np.zeros(problem.num_ops, dtype=np.int32)

        def value(assignment: Ints) -> float:
            nonlocal evaluations, best_s, best
            seconds = float(objective.evaluate(assignment[None]).seconds[0])
            evaluations += 1
            if seconds < best_s:
                best_s, best = seconds, assignment.copy()
                trace.append(Incumbent(evaluations, clock.now() - started_s, seconds))
            return np.inf if np.isnan(seconds) else seconds

        def finished() -> bool:
            return stop(Progress(evaluations, best_s))

        fastest = np.argmin(problem.unit_seconds, axis=1).astype(np.int32)
        for start in (*(a for _, a in problem.uniform()), fastest[problem.units]):
            if not finished():
                value(start)

        current, current_s = moves.units_of(best if trace else fastest[problem.units]), best_s
        failed_moves = failed_kicks = 0
        while len(moves.free) and failed_kicks <= self.kicks and not finished():
            units, target = moves.draw(current, rng)
            candidate = current.copy()
            candidate[units] = target
            before_s = best_s
            seconds = value(candidate[problem.units])
            if best_s < before_s:
                failed_moves = failed_kicks = 0
            else:
                failed_moves += 1
            if seconds <= current_s:
                current, current_s = candidate, seconds
            if failed_moves >= self.patience:
                failed_moves, failed_kicks = 0, failed_kicks + 1
                current, current_s = moves.units_of(best), np.inf
                for _ in range(self.strength):
                    units, target = moves.draw(current, rng)
                    current[units] = target

        return Result(
            Status.STOPPED if trace else Status.INFEASIBLE,
            place(problem, best) if trace else None,
            best_s,
            placer=self.name,
            parameters=parameter_texts(self),
            evaluations=evaluations,
            elapsed_s=clock.now() - started_s,
            trace=tuple(trace),
            detail="" if trace else "no placement that was tried keeps the limits",
        )
