"""Every placement of a small problem: the reference that exact placers are held to."""

from __future__ import annotations

import itertools

import numpy as np

from situs.core import Problem, count_subgraphs
from situs.simulate import evaluate


def every_assignment(problem: Problem) -> np.ndarray:
    """``int32[B, N]`` all assignments that keep units together on allowed devices."""
    choices = [np.flatnonzero(row) for row in problem.unit_allowed]
    units = np.array(list(itertools.product(*choices)), dtype=np.int32)
    return units.reshape(len(units), -1)[:, problem.units]


def least(problem: Problem) -> float:
    """The optimum under the problem's model and limits; inf if nothing is feasible."""
    assignments = every_assignment(problem)
    values = evaluate(problem, assignments)
    most = problem.limits.max_subgraphs
    if most is not None:
        counts = np.array([count_subgraphs(problem.graph, a) for a in assignments])
        values = np.where(counts > most, np.inf, values)
    return float(values.min(initial=np.inf))
