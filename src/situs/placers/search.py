"""The flagship: start from every cheap answer, anneal many chains at once, cut where it can."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from situs.core import (
    Dataflow,
    GapClosed,
    Incumbent,
    MaxEvaluations,
    Objective,
    Problem,
    Progress,
    RealClock,
    Result,
    Sequential,
    Stop,
    place,
    seconds_left,
)
from situs.errors import ParameterError, Status
from situs.graph.arrays import Floats, Ints
from situs.placers.heuristic.moves import Neighbourhood
from situs.placers.heuristic.walk import Walk
from situs.placers.heuristic.windows import better_window, narrow_cuts
from situs.placers.limits import why_infeasible
from situs.placers.parameters import parameter_texts
from situs.simulate import bound, evaluate, timeline
from situs.simulate.schedule_lp import schedule_lp_s

CHEAP = (
    "greedy",
    "heft",
    "peft",
    "cpop",
    "etf",
    "m-etf",
    "m-topo",
    "critical-path",
)
_LARGE = 20_000
_ROUNDING = 1e-9
_PULL_STEPS = 50
_STEP_STATES = 20_000
# Walks keep a simulation with checkpoints each.
_MOST_STATES = 4_000_000
_THREADED_OPS = 200
_LP_SHARE, _LP_LONGEST_S = 0.9, 40.0
_WHOLE_OPS = 4_000
_WINDOWS_AT_ONCE, _WINDOW_HEAT = 16, 1e-3


@dataclass(frozen=True, slots=True)
class Search:
    """Anytime search that knows how far from the optimum it is at most.

    It values the uniform placements and the answers of the cheap placers (list schedulers,
    minimum cut, contiguous splits), then lets ``chains`` annealed walks move units and groups
    (runs in topological order, connected regions of one device, branches between forks and
    joins); the best walk is copied over the worst from time to time. On sequential problems the
    incumbent is expanded to every device by minimum cuts. On dataflow problems of more than 4,000
    ops the walks are in windows of the schedule instead, from one end to the other. It ends by
    itself when the gap is closed, or after ``patience`` steps of all walks (one pass of windows)
    without a better placement.

    Walks move by the problem's own costs, and every improvement is valued by the objective; an
    evaluation is one of either.

    Attributes:
        chains: Walks that step together, on all cores; >= 1.
        patience: Steps without improvement before it ends; >= 1.
        heat: First temperature as a share of the incumbent's value; > 0.
        gap: Gap at which it stops; >= 0.

    Source: Kirkpatrick, Gelatt, Vecchi, "Optimization by simulated annealing", Science 220, 1983;
    restarts by copying good chains as in "go with the winners" (Aldous, Vazirani, FOCS 1994).
    """

    name: ClassVar[str] = "search"
    chains: int = 16
    patience: int = 500
    heat: float = 0.02
    gap: float = 0.0

    def __post_init__(self) -> None:
        if self.chains < 1 or self.patience < 1:
            raise ParameterError("search: chains and patience must be >= 1")
        if not self.heat > 0 or not self.gap >= 0:
            raise ParameterError("search: heat must be > 0 and gap >= 0")

    def supports(self, problem: Problem) -> str | None:
        """Any problem."""
        return None

    def __call__(
        self, problem: Problem, objective: Objective, stop: Stop, rng: np.random.Generator
    ) -> Result:
        """Search until ``stop``, a closed gap, or ``patience``."""
        run = _Run(problem, objective, stop, self.gap, RealClock())
        sources = run.start()
        large = isinstance(problem.model, Dataflow) and problem.num_ops > _WHOLE_OPS
        steps = 0
        bounded = isinstance(problem.model, Dataflow) and not large and not run.finished()
        timed = np.isfinite(seconds_left(stop))
        if bounded and not timed:
            run.sharpen()
        with ThreadPoolExecutor(1) as pool:
            # Beside the walks where the clock ends them: the solver does not hold the interpreter.
            if bounded and timed:
                pool.submit(run.sharpen)
            if run.best is not None and not run.finished():
                steps = _windows(run, rng) if large else _anneal(self, run, rng)
        closed = run.best is not None and GapClosed(_ROUNDING)(run.progress)
        if run.best is None:
            status, detail = Status.INFEASIBLE, why_infeasible(problem) or run.failure
        else:
            status = Status.OPTIMAL if closed else Status.STOPPED
            how = "windows" if large else f"steps of {self.chains} chains"
            detail = f"started from {', '.join(sources)}; {steps} {how}"
        return Result(
            status,
            None if run.best is None else place(problem, run.best),
            run.best_s,
            min(run.bound_s, run.best_s),
            placer=self.name,
            parameters=parameter_texts(self),
            evaluations=run.evaluations,
            elapsed_s=run.elapsed_s,
            trace=tuple(run.trace),
            detail=detail,
        )


class _Run:
    """What one search knows: its best, its bound, its budget."""

    def __init__(
        self, problem: Problem, objective: Objective, stop: Stop, gap: float, clock: RealClock
    ) -> None:
        self.problem, self.objective = problem, objective
        # Sums in another order round differently.
        self._stop, self._closed, self._clock = stop, GapClosed(max(gap, _ROUNDING)), clock
        self._started_s = clock.now()
        self.best: Ints | None = None
        self.best_s = np.inf
        self.bound_s = bound(problem).seconds
        self.evaluations = 0
        self.trace: list[Incumbent] = []
        self.failure = "no placement that was tried keeps the limits"

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return self._clock.now() - self._started_s

    @property
    def progress(self) -> Progress:
        """For stopping rules."""
        return Progress(self.evaluations, self.best_s, self.bound_s)

    def finished(self) -> bool:
        """Whether the budget is used or the gap closed."""
        return self._stop(self.progress) or self._closed(self.progress)

    def value(self, assignments: Ints) -> Floats:
        """Values of ``int32[B, N]``, s; updates the best."""
        seconds = self.objective.evaluate(assignments).seconds
        seconds = np.where(np.isnan(seconds), np.inf, seconds)
        k = int(np.argmin(seconds))
        if seconds[k] < self.best_s:
            self.best_s, self.best = float(seconds[k]), assignments[k].copy()
            done = self.evaluations + len(assignments)
            self.trace.append(Incumbent(done, self.elapsed_s, self.best_s))
        self.evaluations += len(assignments)
        return seconds

    def sharpen(self) -> None:
        """Raise the bound of a dataflow problem by linear programmes, divided and whole."""
        for whole in (False, True):
            left_s = min(seconds_left(self._stop) * _LP_SHARE, _LP_LONGEST_S)
            low_s = schedule_lp_s(self.problem, left_s, whole)
            self.bound_s = max(self.bound_s, min(low_s, self.best_s))
            if not low_s or self.finished():
                return

    def start(self) -> list[str]:
        """Value every cheap answer; who gave one."""
        from situs.placers.registry import get_placer

        uniform = [a for _, a in self.problem.uniform()]
        said = ["uniform"] if uniform else []
        if uniform:
            self.value(np.stack(uniform))
        # Where it is the optimum nothing else need be asked, nor compiled.
        names = ["mincut", *CHEAP, "contiguous"]
        if self.problem.num_ops > _LARGE:
            names = ["mincut", "greedy", "heft", "etf", "m-topo"]
        for name in names:
            if self.finished():
                break
            placer = get_placer(name)
            if placer.supports(self.problem) is not None:
                continue
            result = placer(
                self.problem, self.objective, MaxEvaluations(1 << 30), np.random.default_rng(0)
            )
            if self.problem.limits.max_subgraphs is None:
                self.bound_s = max(self.bound_s, min(result.bound_s, self.best_s))
            if result.placement is not None:
                self.value(result.placement.assignment[None])
                said.append(name)
        return said


def _anneal(search: Search, run: _Run, rng: np.random.Generator) -> int:
    """Step all walks until done; how many steps were made."""
    problem = run.problem
    moves = Neighbourhood(problem)
    if run.best is None or not len(moves.free):
        return 0
    best, best_s = run.best, float(evaluate(problem, run.best[None])[0])
    if not np.isfinite(best_s):
        return 0
    count = max(1, min(search.chains, _MOST_STATES // (problem.num_ops * problem.num_devices)))
    walks = [Walk(problem, moves, best) for _ in range(count)]
    heat = search.heat * 10.0 ** (-3 * np.linspace(1.0, 0.0, count))
    heat[0] = 0.0
    moves_each = int(np.clip(_STEP_STATES // problem.num_ops, 1, 64))
    steps = stale = 0
    expand = isinstance(problem.model, Sequential)
    threads = min(count, len(os.sched_getaffinity(0))) if problem.num_ops >= _THREADED_OPS else 1
    with ThreadPoolExecutor(threads) as pool:
        each = pool.map if threads > 1 else map
        while stale < search.patience and not run.finished():
            proposals = [
                walk.propose(moves_each, h * best_s, rng)
                for walk, h in zip(walks, heat, strict=True)
            ]
            list(each(Walk.follow, walks, proposals))
            run.evaluations += count * moves_each
            steps += 1
            stale += 1
            leader = min(walks, key=lambda walk: walk.best_s)
            if leader.best_s < best_s * (1 - 1e-12):
                best, best_s, stale = leader.best, leader.best_s, 0
                run.value(best[None])
                expand = isinstance(problem.model, Sequential)
            if steps % _PULL_STEPS == 0:
                max(walks, key=lambda walk: walk.seconds).jump(best)
            if expand and stale > _PULL_STEPS:
                expand = False
                _expand(run, moves)
                value_s = float(evaluate(problem, run.best[None])[0])
                if value_s < best_s:
                    best, best_s, stale = run.best, value_s, 0
                    walks[0].jump(best)
    return steps


def _windows(run: _Run, rng: np.random.Generator) -> int:
    """Improve window after window of the schedule until done; how many were tried."""
    problem, tried = run.problem, 0
    better = True
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        while better and run.best is not None and not run.finished():
            if not np.isfinite(evaluate(problem, run.best[None])[0]):
                break
            before_s = run.best_s
            order = np.argsort(timeline(problem, run.best).start_s, kind="stable")
            parts = narrow_cuts(problem, order)
            for k in range(0, len(parts), _WINDOWS_AT_ONCE):
                if run.finished():
                    break
                at_once = parts[k : k + _WINDOWS_AT_ONCE]
                jobs = [
                    pool.submit(better_window, problem, part, run.best, _WINDOW_HEAT, generator)
                    for part, generator in zip(at_once, rng.spawn(len(at_once)), strict=True)
                ]
                moved = [job.result() for job in jobs]
                tried += len(jobs)
                run.evaluations += len(jobs)
                _splice(run, [(p, m) for p, m in zip(at_once, moved, strict=True) if m is not None])
            better = run.best_s < before_s
    return tried


def _splice(run: _Run, pieces: list[tuple[Ints, Ints]]) -> None:
    """Put better windows, as (ops, whole assignment), into the best: all of them, else singly."""
    if run.best is None or not pieces:
        return
    before_s, spliced = run.best_s, run.best.copy()
    for part, moved in pieces:
        spliced[part] = moved[part]
    run.value(spliced[None])
    if run.best_s < before_s or len(pieces) == 1:
        return
    for part, moved in pieces:
        spliced = run.best.copy()
        spliced[part] = moved[part]
        run.value(spliced[None])


def _expand(run: _Run, moves: Neighbourhood) -> None:
    """Alpha-expansions of the best placement to every device."""
    from situs.placers.exact.expansion import expansion_move

    for device in range(run.problem.num_devices):
        if run.best is None or run.finished():
            return
        moved = expansion_move(run.problem, moves.units_of(run.best), device)
        run.value(moved[run.problem.units][None])
