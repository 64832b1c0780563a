"""A mixed-integer programme grown row by row, in the form that HiGHS takes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from situs.graph.arrays import Floats, Ints

Terms = Sequence[tuple[Ints, Floats]]


class Rows:
    """Variables in [0, upper], rows ``low <= a x <= high``, and a cost to minimise."""

    def __init__(self) -> None:
        self._upper: list[Floats] = []
        self._whole: list[Floats] = []
        self._count = 0
        self._columns: list[Ints] = []
        self._weights: list[Floats] = []
        self._rows: list[Ints] = []
        self._low: list[float] = []
        self._high: list[float] = []
        self._costs: list[tuple[Ints, Floats]] = []
        self._forbidden: list[int] = []

    def variables(
        self, shape: tuple[int, ...], upper: Floats | None = None, whole: bool = False
    ) -> Ints:
        """Numbers of new variables in the given shape."""
        size = int(np.prod(shape))
        numbers: Ints = np.arange(self._count, self._count + size, dtype=np.int32).reshape(shape)
        self._count += size
        self._upper.append(np.ones(size) if upper is None else np.ravel(upper).astype(np.float64))
        self._whole.append(np.full(size, float(whole)))
        return numbers

    def forbid(self, variable: int) -> None:
        """Keep a variable at 0."""
        self._forbidden.append(int(variable))

    def cost(self, variables: Ints, weight: Floats) -> None:
        """Add to the cost."""
        self._costs.append((variables, weight))

    def _add(self, terms: Terms, low: float, high: float) -> None:
        columns = np.concatenate([np.ravel(v) for v, _ in terms])
        self._columns.append(columns.astype(np.int32))
        self._weights.append(np.concatenate([np.ravel(w) for _, w in terms]))
        self._rows.append(np.full(len(columns), len(self._low), dtype=np.int32))
        self._low.append(low)
        self._high.append(high)

    def add_least(self, terms: Terms, low: float) -> None:
        """``sum >= low``."""
        self._add(terms, low, np.inf)

    def add_most(self, terms: Terms, high: float) -> None:
        """``sum <= high``."""
        self._add(terms, -np.inf, high)

    def add_equal(self, rows: Sequence[tuple[Ints, Floats]], value: float) -> None:
        """Each of ``rows`` equals ``value``."""
        for row in rows:
            self._add([row], value, value)

    def solve(self, limit_s: float, gap: float) -> tuple[Floats | None, float]:
        """Best values found, if any, and a lower bound on the cost."""
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import coo_array

        upper = np.concatenate(self._upper)
        upper[self._forbidden] = 0.0
        cost = np.zeros(self._count)
        for variables, weight in self._costs:
            np.add.at(cost, np.ravel(variables), np.ravel(weight))
        matrix = coo_array(
            (
                np.concatenate(self._weights),
                (np.concatenate(self._rows), np.concatenate(self._columns)),
            ),
            shape=(len(self._low), self._count),
        ).tocsr()
        answer = milp(
            cost,
            constraints=LinearConstraint(matrix, np.array(self._low), np.array(self._high)),
            bounds=Bounds(0.0, upper),
            integrality=np.concatenate(self._whole),
            options={"time_limit": max(min(limit_s, 1e6), 0.01), "mip_rel_gap": gap},
        )
        bound = getattr(answer, "mip_dual_bound", None)
        low = float(bound) if bound is not None and np.isfinite(bound) else 0.0
        return answer.x, max(low, 0.0)
