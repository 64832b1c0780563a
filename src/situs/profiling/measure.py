"""Measure runnables fairly: warm-up until stable, interleaved rounds, every sample kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from situs.core import Clock, Measurement, RealClock
from situs.errors import RunError, Status
from situs.graph.arrays import Floats


class Runs(Protocol):
    """Something that can be run again and again."""

    def run(self) -> None:
        """Run once."""
        ...


@dataclass(frozen=True, slots=True)
class MeasurePlan:
    """How long and how often to measure.

    Attributes:
        warmup_max: Most warm-up runs of one candidate.
        warmup_stable: Warm-up ends when the best of the last this many runs no longer improves on
            the best before them by 5 %.
        min_rounds: Fewest counted rounds.
        max_rounds: Most counted rounds.
        precision: Rounds end when each contender's interval of the median is within this share of
            the median, half-width.
        budget_s: Rounds end after this time, s.
    """

    warmup_max: int = 20
    warmup_stable: int = 3
    min_rounds: int = 12
    max_rounds: int = 200
    precision: float = 0.02
    budget_s: float = 20.0


def warm_up(runs: Runs, plan: MeasurePlan, clock: Clock) -> int:
    """Run until run times stop falling; returns the number of runs."""
    times: list[float] = []
    k = plan.warmup_stable
    while len(times) < plan.warmup_max:
        begin = clock.now()
        runs.run()
        times.append(clock.now() - begin)
        if len(times) >= 2 * k and min(times[-k:]) >= 0.95 * min(times[:-k]):
            break
    return len(times)


def _interval(samples: Sequence[float]) -> tuple[float, float, float]:
    measurement = Measurement(Status.OK, np.array(samples))
    low, high = measurement.interval_s() or (0.0, 0.0)
    return measurement.seconds or 0.0, low, high


def measure_interleaved(
    candidates: Sequence[Runs],
    rng: np.random.Generator,
    plan: MeasurePlan = MeasurePlan(),
    clock: Clock | None = None,
    stop: Callable[[], bool] = lambda: False,
    on_round: Callable[[int, int], None] = lambda done, total: None,
) -> list[Measurement]:
    """Measure candidates in rounds: each round runs every candidate twice, in random order.

    The second run counts; the first brings the candidate's data back into the caches that the
    others have used, as in a real series of requests. A drift of the machine's speed thus meets
    all candidates alike, and round ``i`` of two candidates is a pair. A candidate that fails is
    recorded as failed and leaves the rounds.
    """
    clock = clock or RealClock()
    samples: list[list[float]] = [[] for _ in candidates]
    busy: list[list[float]] = [[] for _ in candidates]
    warmups = [0] * len(candidates)
    failures: dict[int, Measurement] = {}

    def attempt(i: int, work: Callable[[], None]) -> bool:
        try:
            work()
        except RunError as error:
            failures[i] = Measurement.failed(Status.RUN_FAILED, str(error))
            return False
        return True

    def warm(i: int) -> None:
        warmups[i] = warm_up(candidates[i], plan, clock)

    alive = [i for i in range(len(candidates)) if attempt(i, partial(warm, i))]
    end = clock.now() + plan.budget_s
    for done in range(plan.max_rounds):
        if not alive or stop() or (done >= plan.min_rounds and clock.now() >= end):
            break
        for i in rng.permutation(alive).tolist():
            if not attempt(i, candidates[i].run):
                alive.remove(i)
                continue
            busy_s, begin = clock.busy(), clock.now()
            if attempt(i, candidates[i].run):
                samples[i].append(clock.now() - begin)
                busy[i].append(clock.busy() - busy_s)
            else:
                alive.remove(i)
        on_round(done + 1, plan.max_rounds)
        if done + 1 >= plan.min_rounds and all(
            high - low <= 2 * plan.precision * median
            for median, low, high in (_interval(samples[i]) for i in alive)
        ):
            break
    return [
        failures.get(i) or _finished(samples[i], busy[i], warmups[i])
        for i in range(len(candidates))
    ]


def _finished(samples: list[float], busy: list[float], warmup: int) -> Measurement:
    if not samples:
        return Measurement.failed(Status.INTERRUPTED, "interrupted before its first counted run")
    cores = float(np.median(np.array(busy) / np.maximum(samples, 1e-9)))
    return Measurement(Status.OK, np.array(samples), warmup, cores=cores)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Paired comparison of two measurements of one interleaved run.

    Attributes:
        ratio: Median of candidate / reference over the rounds; below 1 is faster.
        low: Lower end of its confidence interval.
        high: Upper end.
    """

    ratio: float
    low: float
    high: float

    @property
    def faster(self) -> bool:
        """Whether the candidate is faster beyond the interval."""
        return self.high < 1.0

    @property
    def slower(self) -> bool:
        """Whether it is slower beyond the interval."""
        return self.low > 1.0


def compare(candidate: Measurement, reference: Measurement) -> Comparison | None:
    """Compare pair by pair; None if either failed."""
    pairs = min(len(candidate.samples_s), len(reference.samples_s))
    if pairs == 0:
        return None
    ratios: Floats = candidate.samples_s[:pairs] / reference.samples_s[:pairs]
    return Comparison(*_interval(ratios.tolist()))
