"""Time enters here, and only here, so that tests can set it."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """A monotone clock."""

    def now(self) -> float:
        """Seconds since some fixed moment."""
        ...

    def busy(self) -> float:
        """Processor seconds that this process has used, over all its threads."""
        ...


class RealClock:
    """The machine's own monotone clock."""

    def now(self) -> float:
        """Seconds of ``time.perf_counter``."""
        return time.perf_counter()

    def busy(self) -> float:
        """Seconds of ``time.process_time``."""
        return time.process_time()


class FakeClock:
    """A clock that moves by ``step`` seconds at each look, and by ``advance``."""

    def __init__(self, step: float = 0.0) -> None:
        self._time = 0.0
        self._step = step

    def now(self) -> float:
        """Seconds so far; then moves on by one step."""
        time_now = self._time
        self._time += self._step
        return time_now

    def busy(self) -> float:
        """As much as has passed: one busy core."""
        return self._time

    def advance(self, seconds: float) -> None:
        """Move the clock forward."""
        self._time += seconds
