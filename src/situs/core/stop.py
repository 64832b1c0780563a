"""Stopping rules: small callables that a placer asks between steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from situs.core.clock import Clock, RealClock
from situs.errors import ParameterError


@dataclass(frozen=True, slots=True)
class Progress:
    """What a search knows about itself when it asks whether to stop.

    Attributes:
        evaluations: Placements valued so far.
        best_s: Value of the best one, s.
        bound_s: Proven lower bound, s.
        figures: What the placer wants watched beside (episode, mean, entropy), by name.
    """

    evaluations: int = 0
    best_s: float = math.inf
    bound_s: float = 0.0
    figures: Mapping[str, float] = field(default_factory=dict)


class Stop(Protocol):
    """``stop(progress)`` is True when the search should end; it must be asked again cheaply."""

    def __call__(self, progress: Progress) -> bool:
        """Whether to stop now."""
        ...


class Never:
    """Never stops: for placers that end by themselves."""

    def __call__(self, progress: Progress) -> bool:
        """Always False."""
        return False


class MaxSeconds:
    """Stops a given time after its construction."""

    def __init__(self, seconds: float, clock: Clock | None = None) -> None:
        if not seconds >= 0:
            raise ParameterError(f"a time budget must be >= 0 seconds, got {seconds}")
        self._clock = clock or RealClock()
        self._end = self._clock.now() + seconds

    def __call__(self, progress: Progress) -> bool:
        """Whether the time is over."""
        return self._clock.now() >= self._end

    def remaining_s(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self._end - self._clock.now())


@dataclass(frozen=True, slots=True)
class MaxEvaluations:
    """Stops when the objective has been asked for this many placements."""

    evaluations: int

    def __post_init__(self) -> None:
        if self.evaluations < 1:
            raise ParameterError(f"evaluations must be >= 1, got {self.evaluations}")

    def __call__(self, progress: Progress) -> bool:
        """Whether the evaluations are used up."""
        return progress.evaluations >= self.evaluations


@dataclass(frozen=True, slots=True)
class GapClosed:
    """Stops when ``(best - bound) / best`` is at most ``gap``."""

    gap: float = 0.0

    def __call__(self, progress: Progress) -> bool:
        """Whether the proven gap is small enough."""
        if not math.isfinite(progress.best_s):
            return False
        return progress.best_s - progress.bound_s <= self.gap * progress.best_s


@dataclass(slots=True)
class Flag:
    """Stops once ``set`` was called (Ctrl-C sets one)."""

    raised: bool = field(default=False)

    def set(self) -> None:
        """Ask the search to stop at its next look."""
        self.raised = True

    def __call__(self, progress: Progress) -> bool:
        """Whether it was set."""
        return self.raised


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Stops when any of its rules does."""

    rules: tuple[Stop, ...]

    def __call__(self, progress: Progress) -> bool:
        """Whether some rule says stop."""
        return any(rule(progress) for rule in self.rules)


@dataclass(frozen=True, slots=True)
class Watched:
    """Shows every progress to someone, and stops when its rule does."""

    rule: Stop
    watch: Callable[[Progress], None]

    def __call__(self, progress: Progress) -> bool:
        """Whether the rule says stop."""
        self.watch(progress)
        return self.rule(progress)


def seconds_left(stop: Stop) -> float:
    """Smallest time budget inside a rule, s, for solvers with a clock of their own; inf if none."""
    if isinstance(stop, MaxSeconds):
        return stop.remaining_s()
    if isinstance(stop, Watched):
        return seconds_left(stop.rule)
    if isinstance(stop, AnyOf):
        return min((seconds_left(rule) for rule in stop.rules), default=math.inf)
    return math.inf
