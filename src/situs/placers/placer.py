"""What a placer is."""

from __future__ import annotations

from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from situs.core import Objective, Problem, Result, Stop


@runtime_checkable
class Placer(Protocol):
    """Finds a placement for a problem; it cannot tell a simulated objective from a measured one.

    The same problem, objective, parameters and generator state give the same result, except where
    a time budget ends it. Implementations are frozen dataclasses whose fields are the parameters.
    """

    name: ClassVar[str]

    def supports(self, problem: Problem) -> str | None:
        """None if it can solve ``problem``; else one line that says why not."""
        ...

    def __call__(
        self, problem: Problem, objective: Objective, stop: Stop, rng: np.random.Generator
    ) -> Result:
        """Search until done or until ``stop`` says so; never raises for an infeasible problem."""
        ...
