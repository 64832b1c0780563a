"""Are the outputs of a placement those of the unsplit model?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# Largest error allowed, relative to the largest absolute value of the output, by precision.
TOLERANCE = {"f32": 1e-4, "f16": 2e-2, "bf16": 1e-1}


@dataclass(frozen=True, slots=True)
class OutputCheck:
    """The comparison of outputs with a reference.

    Attributes:
        max_abs: Largest absolute difference.
        max_rel: Largest difference relative to its output's largest absolute reference value.
        tolerance: What ``max_rel`` may be.
        varies: Whether the reference changes with the input; a check that does not proves nothing.
        detail: What is wrong, or empty.
    """

    max_abs: float
    max_rel: float
    tolerance: float
    varies: bool
    detail: str = ""

    @property
    def passed(self) -> bool:
        """Whether the outputs agree within the tolerance."""
        return not self.detail


def tolerance_for(precisions: Sequence[str]) -> float:
    """The tolerance of the coarsest of the effective precisions; unknown ones count as bf16."""
    return max((TOLERANCE.get(p, TOLERANCE["bf16"]) for p in precisions), default=TOLERANCE["f32"])


def outputs_vary(first: Sequence[Array], second: Sequence[Array]) -> bool:
    """Whether some output differs between two different inputs."""
    return any(not np.array_equal(a, b, equal_nan=_floating(a)) for a, b in zip(first, second))  # noqa: B905


def _floating(array: Array) -> bool:
    return bool(np.issubdtype(array.dtype, np.floating))


def compare_outputs(
    outputs: Sequence[Array], reference: Sequence[Array], tolerance: float, varies: bool
) -> OutputCheck:
    """Compare outputs with the reference; NaN or infinity in the reference fails the check.

    Floating outputs may differ by ``tolerance`` of the reference's largest absolute value; all
    others must be equal.
    """
    max_abs = max_rel = 0.0
    detail = ""
    if len(outputs) != len(reference):
        detail = f"{len(outputs)} outputs instead of {len(reference)}"
    for i, (got, want) in enumerate(zip(outputs, reference)):  # noqa: B905
        if got.shape != want.shape:
            detail = detail or f"output {i} has shape {got.shape} instead of {want.shape}"
        elif not _floating(want):
            if not np.array_equal(got, want):
                detail = detail or f"output {i} ({want.dtype}) differs"
        elif want.size:
            exact = want.astype(np.float64)
            if not np.isfinite(exact).all():
                detail = detail or f"output {i} of the reference itself is NaN or infinite"
                continue
            difference = np.abs(got.astype(np.float64) - exact)
            worst = float(difference.max())
            worst = worst if np.isfinite(worst) else float("inf")
            largest = float(np.abs(exact).max())
            relative = worst / largest if largest > 0 else (0.0 if worst == 0 else float("inf"))
            max_abs, max_rel = max(max_abs, worst), max(max_rel, relative)
            if relative > tolerance:
                detail = detail or (
                    f"output {i} differs by {relative:.3g} of its largest value; "
                    f"{tolerance:g} is allowed"
                )
    return OutputCheck(max_abs, max_rel, tolerance, varies, detail)
