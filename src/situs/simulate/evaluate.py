"""Latency of placements under the problem's execution model."""

from __future__ import annotations

import numpy as np

from situs.core import Problem, Sequential
from situs.errors import ProblemError
from situs.graph.arrays import Floats, Ints


def evaluate(problem: Problem, assignments: Ints) -> Floats:
    """``float64[B]`` latency of ``int32[B, N]`` assignments, s; ``inf`` = infeasible."""
    if not isinstance(problem.model, Sequential):
        raise ProblemError(f"no simulator for {problem.model}")
    return np.array([_sequential(problem, assignment) for assignment in assignments])


def _sequential(problem: Problem, assignment: Ints) -> float:
    graph, costs = problem.graph, problem.costs
    total = float(costs.seconds[np.arange(graph.num_ops), assignment].sum())
    pairs = np.unique(np.stack([graph.edge_tensor, assignment[graph.consumer_ops]], axis=1), axis=0)
    source = assignment[graph.tensor_producer[pairs[:, 0]]]
    crossing = source != pairs[:, 1]
    tensors, targets = pairs[crossing, 0], pairs[crossing, 1]
    moved = costs.transfer_s(tensors, source[crossing], targets)
    return total + float(moved.sum() + costs.boundary_s[targets].sum())
