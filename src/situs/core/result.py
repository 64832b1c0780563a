"""What a placer returns, and what a measurement is."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from situs.core.placement import Placement
from situs.errors import Status
from situs.graph.arrays import Floats, frozen


@dataclass(frozen=True, slots=True)
class Incumbent:
    """A best-so-far of a search: after how many evaluations and seconds it was found."""

    evaluations: int
    elapsed_s: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a placer.

    Attributes:
        status: How it ended; ``OPTIMAL`` only when ``bound_s`` proves it.
        placement: The best placement, or None if none was found.
        seconds: Its value under the placer's objective, s.
        bound_s: Proven lower bound on the best value under the problem's execution model, s.
        placer: Name of the placer.
        parameters: Its parameters, as (name, value) pairs of text.
        seed: Seed of its random generator, or None.
        evaluations: How many placements it valued.
        elapsed_s: How long it took, s.
        trace: Its incumbents, oldest first.
        detail: What a person should know (why infeasible, what was picked).
    """

    status: Status
    placement: Placement | None
    seconds: float = math.inf
    bound_s: float = 0.0
    placer: str = ""
    parameters: tuple[tuple[str, str], ...] = ()
    seed: int | None = None
    evaluations: int = 0
    elapsed_s: float = 0.0
    trace: tuple[Incumbent, ...] = field(default=())
    detail: str = ""

    @property
    def gap(self) -> float:
        """``(seconds - bound) / seconds``: how far from optimal this could be at most, 0 to 1."""
        if not math.isfinite(self.seconds):
            return math.inf
        if self.seconds <= self.bound_s:
            return 0.0
        return (self.seconds - self.bound_s) / self.seconds


@dataclass(frozen=True, eq=False)
class Measurement:
    """Every sample of one measured placement, in the order taken.

    Attributes:
        status: ``OK``, or why it failed; a failed one has no samples.
        samples_s: ``float64[n]`` seconds of each counted run, in order.
        warmup: Runs before the first counted one.
        detail: Reason of a failure, or notes.
        configuration: Threads, precision and properties it ran with, as (key, value) pairs.
        cores: Processor cores that it kept busy: processor time of this process / time, median;
            0 = not measured.
    """

    status: Status
    samples_s: Floats
    warmup: int = 0
    detail: str = ""
    configuration: tuple[tuple[str, str], ...] = ()
    cores: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "samples_s", frozen(self.samples_s, np.float64))

    @classmethod
    def failed(cls, status: Status, detail: str) -> Measurement:
        """A measurement that did not come about."""
        return cls(status, np.empty(0), 0, detail)

    @property
    def seconds(self) -> float | None:
        """Median, s; None if it failed."""
        return float(np.median(self.samples_s)) if len(self.samples_s) else None

    def interval_s(self, confidence: float = 0.95) -> tuple[float, float] | None:
        """Distribution-free confidence interval of the median, s; None if it failed.

        Source: order statistics; Conover, "Practical Nonparametric Statistics", section 3.2.
        """
        n = len(self.samples_s)
        if n == 0:
            return None
        from scipy.stats import binom

        ordered = np.sort(self.samples_s)
        low = max(int(binom.ppf((1 - confidence) / 2, n, 0.5)) - 1, 0)
        high = min(int(binom.ppf((1 + confidence) / 2, n, 0.5)), n - 1)
        return float(ordered[low]), float(ordered[high])
