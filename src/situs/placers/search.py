"""The flagship: start from every cheap answer, anneal many chains at once, cut where it can."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from situs.core import (
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
    count_subgraphs,
    place,
)
from situs.errors import ParameterError, Status
from situs.graph.arrays import Bools, Floats, Ints
from situs.placers.heuristic.moves import Neighbourhood
from situs.placers.limits import why_infeasible
from situs.placers.parameters import parameter_texts
from situs.simulate import bound

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


@dataclass(frozen=True, slots=True)
class Search:
    """Anytime search that knows how far from the optimum it is at most.

    It values the uniform placements and the answers of the cheap placers (list schedulers,
    minimum cut, contiguous splits), then lets ``chains`` annealed walks move units and groups
    (runs in topological order, connected regions of one device); the best chain is copied over
    the worst from time to time. On sequential problems the incumbent is expanded to every device
    by minimum cuts. It ends by itself when the gap is closed, or after ``patience`` steps of all
    chains without a better placement.

    Attributes:
        chains: Walks that step together, valued in one batch; >= 1.
        patience: Steps without improvement before it ends; >= 1.
        heat: First temperature as a share of the incumbent's value; > 0.
        gap: Gap at which it stops; >= 0.

    Source: Kirkpatrick, Gelatt, Vecchi, "Optimization by simulated annealing", Science 220, 1983;
    restarts by copying good chains as in "go with the winners" (Aldous, Vazirani, FOCS 1994).
    """

    name: ClassVar[str] = "search"
    chains: int = 16
    patience: int = 4000
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
        steps = 0
        if run.best is not None and not run.finished():
            steps = _anneal(self, run, rng)
        closed = run.best is not None and GapClosed(1e-9)(run.progress)
        if run.best is None:
            status, detail = Status.INFEASIBLE, why_infeasible(problem) or run.failure
        else:
            status = Status.OPTIMAL if closed else Status.STOPPED
            detail = f"started from {', '.join(sources)}; {steps} steps of {self.chains} chains"
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
        self._stop, self._closed, self._clock = stop, GapClosed(gap), clock
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
        """Values of ``int32[B, N]``, with the number of sub-graphs kept; updates the best."""
        most = self.problem.limits.max_subgraphs
        seconds = self.objective.evaluate(assignments).seconds
        seconds = np.where(np.isnan(seconds), np.inf, seconds)
        for k in np.argsort(seconds, kind="stable"):
            if not np.isfinite(seconds[k]):
                break
            if most is not None and count_subgraphs(self.problem.graph, assignments[k]) > most:
                seconds[k] = np.inf
                continue
            if seconds[k] < self.best_s:
                self.best_s, self.best = float(seconds[k]), assignments[k].copy()
                done = self.evaluations + len(assignments)
                self.trace.append(Incumbent(done, self.elapsed_s, self.best_s))
            if most is None:
                break
        self.evaluations += len(assignments)
        return seconds

    def start(self) -> list[str]:
        """Value every cheap answer; who gave one."""
        from situs.placers.registry import get_placer

        uniform = [a for _, a in self.problem.uniform()]
        said = ["uniform"] if uniform else []
        if uniform:
            self.value(np.stack(uniform))
        names = [*CHEAP, "mincut", "contiguous"]
        if self.problem.num_ops > _LARGE:
            names = ["greedy", "heft", "etf", "m-topo", "mincut"]
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
    """Step all chains until done; how many steps were made."""
    problem = run.problem
    moves = Neighbourhood(problem)
    if run.best is None or not len(moves.free):
        return 0
    home = moves.units_of(run.best)
    chains = np.repeat(home[None], search.chains, axis=0)
    values = np.full(search.chains, run.best_s)
    share = np.linspace(0.0, 1.0, search.chains)
    heat = search.heat * np.where(share > 0, 10.0 ** (-3 * (1 - share)), 0.0)
    steps = stale = 0
    expand = isinstance(problem.model, Sequential)
    while stale < search.patience and not run.finished():
        before_s = run.best_s
        candidates = chains.copy()
        for k in range(search.chains):
            units, target = moves.draw(chains[k], rng)
            candidates[k, units] = target
        seconds = run.value(candidates[:, problem.units])
        accept = _accepted(values, seconds, heat * run.best_s, rng)
        chains[accept], values[accept] = candidates[accept], seconds[accept]
        steps += 1
        stale = 0 if run.best_s < before_s else stale + 1
        if stale == 0:
            expand = isinstance(problem.model, Sequential)
        if steps % 100 == 0:
            worst = int(np.argmax(values))
            chains[worst], values[worst] = moves.units_of(run.best), run.best_s
        if expand and stale > 50:
            expand = False
            _expand(run, moves)
            chains[0], values[0] = moves.units_of(run.best), run.best_s
    return steps


def _accepted(
    values: Floats, seconds: Floats, temperature: Floats, rng: np.random.Generator
) -> Bools:
    """Metropolis rule for every chain; a chain without heat takes what is not worse."""
    worse = seconds - values
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        chance = np.where(worse <= 0, 1.0, np.exp(-worse / temperature))
    accept: Bools = np.isfinite(seconds) & (rng.random(len(values)) < np.nan_to_num(chance))
    return accept


def _expand(run: _Run, moves: Neighbourhood) -> None:
    """Alpha-expansions of the best placement to every device."""
    from situs.placers.exact.expansion import expansion_move

    for device in range(run.problem.num_devices):
        if run.best is None or run.finished():
            return
        moved = expansion_move(run.problem, moves.units_of(run.best), device)
        run.value(moved[run.problem.units][None])
