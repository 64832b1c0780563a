"""The loop of every learner: ask, value, tell; with a best, a budget and a checkpoint."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from situs.core import Incumbent, Objective, Problem, Progress, RealClock, Result, Stop, place
from situs.errors import Status, require_extra
from situs.graph.arrays import Floats, Ints
from situs.placers.learned.learner import Learner, best_of
from situs.placers.learned.standing import Standing

if TYPE_CHECKING:
    from situs.placers.learned.checkpoint import Checkpoint


@dataclass(frozen=True, slots=True)
class Budget:
    """How long a learner trains.

    Attributes:
        episodes: At most this many.
        samples: Placements per episode.
        patience: Ends after this many episodes in which neither the best nor the mean of an
            episode improved; 0 = never.
        checkpoint: Folder of its checkpoints; "" = none.
    """

    episodes: int
    samples: int
    patience: int
    checkpoint: str


class _Training:
    def __init__(self, problem: Problem, objective: Objective, standing: Standing) -> None:
        self.problem, self.objective, self.standing = problem, objective, standing
        self.failure = Status.INFEASIBLE
        self._clock = RealClock()
        self._started_s = self._clock.now() - standing.elapsed_s

    @property
    def best_s(self) -> float:
        trace = self.standing.trace
        return trace[-1].seconds if trace else math.inf

    def value(self, assignments: Ints) -> Floats:
        evaluation = self.objective.evaluate(assignments)
        seconds = np.asarray(evaluation.seconds)
        before = self.standing
        evaluations = before.evaluations + len(assignments)
        elapsed_s = self._clock.now() - self._started_s
        k, value_s = best_of(seconds)
        if value_s < self.best_s:
            found = Incumbent(evaluations, elapsed_s, value_s)
            before = replace(
                before, trace=(*before.trace, found), best=assignments[k].copy(), stale=0
            )
        elif not math.isfinite(value_s):
            self.failure = evaluation.statuses[k]
        self.standing = replace(before, evaluations=evaluations, elapsed_s=elapsed_s)
        return seconds


def _kept(problem: Problem, parameters: tuple[tuple[str, str], ...], folder: str) -> Checkpoint:
    require_extra("learn", "safetensors")
    from situs.placers.learned.checkpoint import Checkpoint

    return Checkpoint(Path(folder), problem, parameters)


def train(
    placer: str,
    parameters: tuple[tuple[str, str], ...],
    problem: Problem,
    objective: Objective,
    stop: Stop,
    learner: Learner,
    budget: Budget,
) -> Result:
    """Train until the budget ends, or ``stop`` says so, and return the best placement seen.

    The uniform placements are valued first, like any other. An episode that ``stop`` interrupts
    after its placements were valued is not learned from, but its best placement counts.
    """
    kept = _kept(problem, parameters, budget.checkpoint) if budget.checkpoint else None
    standing = Standing(0, 0, 0.0, 0, math.inf, (), None)
    if kept is not None:
        found = kept.load(learner)
        if found is None:
            # What was not learned from yet must be asked for again after a kill, too.
            kept.save(learner, standing)
        standing = found or standing
    run = _Training(problem, objective, standing)
    uniform = [assignment for _, assignment in problem.uniform()]
    if uniform and not run.standing.evaluations and not stop(Progress()):
        starts = np.stack(uniform)
        learner.begin(starts, run.value(starts))
    figures: dict[str, float] = {}
    reason = f"all {budget.episodes} episodes done"
    while run.standing.episodes < budget.episodes:
        if stop(Progress(run.standing.evaluations, run.best_s, figures=figures)):
            reason = f"stopped after {run.standing.episodes} episodes"
            break
        if budget.patience and run.standing.stale >= budget.patience:
            reason = f"no better placement or mean in {budget.patience} episodes"
            break
        stale = run.standing.stale
        run.standing = replace(run.standing, stale=stale + 1)
        seconds = run.value(learner.ask(budget.samples))
        if stop(Progress(run.standing.evaluations, run.best_s, figures=figures)):
            reason = f"stopped in episode {run.standing.episodes + 1}"
            break
        episode = learner.tell(seconds)
        better = episode.mean_s < run.standing.best_mean_s * (1 - 1e-3)
        run.standing = replace(
            run.standing,
            episodes=episode.number,
            best_mean_s=episode.mean_s if better else run.standing.best_mean_s,
            stale=0 if better else run.standing.stale,
        )
        figures = {
            "episode": float(episode.number),
            "mean_s": episode.mean_s,
            "failed": float(episode.failed),
            **episode.figures,
        }
        if kept is not None:
            kept.save(learner, run.standing)
    stop(Progress(run.standing.evaluations, run.best_s, figures=figures))
    best = run.standing.best
    return Result(
        run.failure if best is None else Status.STOPPED,
        None if best is None else place(problem, best),
        run.best_s,
        placer=placer,
        parameters=parameters,
        evaluations=run.standing.evaluations,
        elapsed_s=run.standing.elapsed_s,
        trace=run.standing.trace,
        detail=reason if best is not None else "no placement that was tried could be valued",
    )
