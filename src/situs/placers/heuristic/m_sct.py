"""m-SCT: small communication times with memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from situs.core import Objective, Problem, RealClock, Result, Stop
from situs.graph.arrays import Ints
from situs.placers.heuristic.scheduling import Scheduling
from situs.placers.parameters import parameter_texts


@dataclass(frozen=True, slots=True)
class MemorySCT:
    """ETF in which every op may have one favourite child that follows it to its device.

    Source: Jeon et al., "Baechi", SoCC 2020, section 3.3, after Hanen, Munier, "An approximation
    algorithm for scheduling dependent tasks on m processors with small communication delays",
    Discrete Applied Mathematics 108, 2001: favourites by rounding a linear relaxation.

    Differs: Above ``LP_EDGES`` edges the favourite is the child on the longest way to the end; a
    favourite goes home when it starts there before it could finish elsewhere, no device waits.
    """

    name: ClassVar[str] = "m-sct"

    def supports(self, problem: Problem) -> str | None:
        """Any problem."""
        return None

    def __call__(
        self, problem: Problem, objective: Objective, stop: Stop, rng: np.random.Generator
    ) -> Result:
        """Schedule once per memory margin and value the result beside the uniform ones."""
        started_s = RealClock().now()
        costs = Scheduling(problem)
        candidates = costs.earliest(favourite_children(costs))
        return costs.best(objective, candidates, self.name, parameter_texts(self), started_s)


LP_EDGES = 5000


def favourite_children(costs: Scheduling) -> Ints:
    """``int32[N]`` favourite child of each op, or -1; no op is the favourite of two."""
    graph = costs.problem.graph
    u, v = graph.edge_producer, graph.consumer_ops
    moved_s = costs.tensor_s[graph.edge_tensor]
    if 0 < len(u) <= LP_EDGES:
        weight = _relaxed(costs, u, v, moved_s)
    else:
        weight = moved_s + costs.upward()[v]
        weight = weight / max(float(weight.max(initial=0.0)), 1e-300)
    favourite = np.full(graph.num_ops, -1, dtype=np.int32)
    wanted = np.zeros(graph.num_ops, dtype=np.bool_)
    for e in np.argsort(-weight, kind="stable"):
        if weight[e] <= 0.1:
            break
        if favourite[u[e]] < 0 and not wanted[v[e]]:
            favourite[u[e]] = v[e]
            wanted[v[e]] = True
    return favourite


def _relaxed(costs: Scheduling, u: Ints, v: Ints, moved_s: np.ndarray) -> np.ndarray:
    """Share in [0, 1] to which each edge wants no transfer, in the least relaxed makespan."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    n, m = costs.problem.num_ops, len(u)
    edges = np.arange(m)
    # Variables: start of each op, kept share of each edge, makespan.
    rows = np.concatenate([edges, edges, edges, m + np.arange(n), m + np.arange(n)])
    columns = np.concatenate([u, v, n + edges, np.arange(n), np.full(n, n + m)])
    values = np.concatenate([np.ones(m), -np.ones(m), -moved_s, np.ones(n), -np.ones(n)])
    limits = np.concatenate([-costs.mean_s[u] - moved_s, -costs.mean_s])
    one_child = (m + n + u, n + edges, np.ones(m))
    one_parent = (m + 2 * n + v, n + edges, np.ones(m))
    matrix = coo_array(
        (
            np.concatenate([values, one_child[2], one_parent[2]]),
            (
                np.concatenate([rows, one_child[0], one_parent[0]]),
                np.concatenate([columns, one_child[1], one_parent[1]]),
            ),
        ),
        shape=(m + 3 * n, n + m + 1),
    )
    objective = np.zeros(n + m + 1)
    objective[-1] = 1.0
    upper = np.full(n + m + 1, np.inf)
    upper[n : n + m] = 1.0
    answer = milp(
        objective,
        constraints=LinearConstraint(
            matrix.tocsr(), -np.inf, np.concatenate([limits, np.ones(2 * n)])
        ),
        bounds=Bounds(0.0, upper),
    )
    shares: np.ndarray = answer.x[n : n + m] if answer.x is not None else np.zeros(m)
    return shares
