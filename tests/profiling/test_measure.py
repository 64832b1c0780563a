import math

import numpy as np
import pytest

from situs.core import FakeClock, Measurement
from situs.errors import RunError, Status
from situs.profiling.measure import MeasurePlan, compare, measure_interleaved, warm_up


class Fake:
    """Takes the given seconds per run on a fake clock; fails at run ``fails_at``."""

    def __init__(self, clock: FakeClock, seconds: list[float], fails_at: float = math.inf) -> None:
        self.clock, self.seconds, self.fails_at, self.runs = clock, seconds, fails_at, 0

    def run(self) -> None:
        if self.runs >= self.fails_at:
            raise RunError("broke")
        self.clock.advance(self.seconds[min(self.runs, len(self.seconds) - 1)])
        self.runs += 1


PLAN = MeasurePlan(warmup_max=10, min_rounds=5, max_rounds=30, precision=0.01, budget_s=1e9)


def test_warm_up_ends_when_times_stop_falling() -> None:
    clock = FakeClock()
    assert warm_up(Fake(clock, [9, 5, 3, 2, 1, 1, 1, 1, 1]), PLAN, clock) == 8
    assert warm_up(Fake(clock, [1]), PLAN, clock) == 6
    assert warm_up(Fake(clock, [2.0**-k for k in range(50)]), PLAN, clock) == 10


def test_medians_are_right_and_every_sample_is_kept() -> None:
    clock = FakeClock()
    a, b = Fake(clock, [1.0]), Fake(clock, [2.0])
    first, second = measure_interleaved([a, b], np.random.default_rng(0), PLAN, clock)
    assert (first.seconds, second.seconds) == (1.0, 2.0)
    assert len(first.samples_s) == len(second.samples_s) == 5
    comparison = compare(first, second)
    assert comparison is not None
    assert comparison.ratio == 0.5
    assert comparison.faster
    assert not comparison.slower
    assert first.cores == second.cores == 1.0


def test_drift_cancels_in_the_paired_comparison() -> None:
    class Drifting(Fake):
        def run(self) -> None:
            self.clock.advance(self.seconds[0] * (1 + self.clock.now() / 20))
            self.runs += 1

    clock = FakeClock()
    pair = [Drifting(clock, [1.0]), Drifting(clock, [1.1])]
    plan = MeasurePlan(min_rounds=25, max_rounds=25)
    a, b = measure_interleaved(pair, np.random.default_rng(3), plan, clock)
    assert max(a.samples_s) > 1.5 * min(a.samples_s)
    comparison = compare(b, a)
    assert comparison is not None
    assert 1.0 < comparison.ratio < 1.25


def test_a_failing_candidate_leaves_the_others_alone() -> None:
    clock = FakeClock()
    candidates = [Fake(clock, [1.0]), Fake(clock, [1.0], fails_at=9), Fake(clock, [1.0], 0)]
    good, late, never = measure_interleaved(candidates, np.random.default_rng(0), PLAN, clock)
    assert good.status is Status.OK
    assert (late.status, never.status) == (Status.RUN_FAILED, Status.RUN_FAILED)
    assert late.detail == "broke"
    assert compare(good, never) is None


def test_interruption_keeps_what_was_measured() -> None:
    clock = FakeClock()
    candidates = [Fake(clock, [1.0])]
    stop = lambda: candidates[0].runs >= 12  # noqa: E731
    (kept,) = measure_interleaved(candidates, np.random.default_rng(0), PLAN, clock, stop)
    assert kept.status is Status.OK
    assert 0 < len(kept.samples_s) < 5
    (none,) = measure_interleaved(
        [Fake(clock, [1.0])], np.random.default_rng(0), PLAN, clock, lambda: True
    )
    assert none.status is Status.INTERRUPTED


def test_rounds_end_with_the_budget() -> None:
    clock = FakeClock()
    noisy = Fake(clock, np.random.default_rng(0).uniform(1, 3, 1000).tolist())
    plan = MeasurePlan(min_rounds=3, max_rounds=1000, precision=0.0, budget_s=100.0)
    (measured,) = measure_interleaved([noisy], np.random.default_rng(0), plan, clock)
    assert 20 <= len(measured.samples_s) <= 35


@pytest.mark.parametrize("samples", [[], [1.0]])
def test_few_samples(samples: list[float]) -> None:
    measurement = Measurement(Status.OK, np.array(samples))
    assert (measurement.interval_s() is None) == (not samples)
