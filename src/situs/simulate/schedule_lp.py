"""A lower bound on the makespan from paths, areas and transfers at once, as a linear programme."""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from situs.core import Dataflow, Problem
from situs.errors import ProblemError
from situs.graph.arrays import Bools, Longs

# HiGHS takes seconds, not minutes, up to about this many numbers in the matrix.
_LARGEST = 400_000
_OPTIMAL = 0  # scipy.optimize.milp's status


@dataclass(slots=True)
class _Rows:
    """Sparse rows, each at most (or equal to) its right side."""

    row: list[NDArray[np.int64]]
    column: list[NDArray[np.int64]]
    value: list[NDArray[np.float64]]
    count: int = 0
    size: int = 0

    @classmethod
    def empty(cls) -> _Rows:
        return cls([], [], [])

    def add(self, columns: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        """Append rows ``[R, K]``."""
        r, k = columns.shape
        self.row.append(np.repeat(np.arange(self.count, self.count + r), k))
        self.column.append(columns.ravel())
        self.value.append(np.broadcast_to(values, columns.shape).ravel())
        self.count += r
        self.size += r * k

    def matrix(self, width: int) -> csr_array:
        """``float64[rows, width]``; columns named twice in a row add up."""
        cells = (np.concatenate(self.row), np.concatenate(self.column))
        return csr_array((np.concatenate(self.value), cells), shape=(self.count, width))


def schedule_lp_s(problem: Problem, limit_s: float, whole: bool = False) -> float:
    """``dataflow``: the least makespan when units may be divided between devices, s.

    Variables: ``x[u, d]`` (part of unit u on d), ``s[i]`` (start of op i), ``w[e, a, b]`` (part of
    edge e that goes from a to b) and the makespan z. ``x[u, :]`` sums to 1 and is 0 where not
    allowed; ``w[e, a, :]`` sums to ``x[producer, a]`` and ``w[e, :, b]`` to ``x[consumer, b]``.
    With ``own[i] = sum_d seconds[i, d] x[i, d]``: a consumer starts no earlier than its producer's
    ``s + own`` plus ``sum_ab transfer_s[a, b] w[e, a, b]``; every ``s + own <= z``; and for every
    join w with nearest common dominator v, each device's work between them is at most its streams
    times ``s[w] - s[v] - own[v]`` (or ``s[w]``, or z, where there is no such op).

    Proof: for a schedule, set x and w to 0 or 1 as it places, s to its starts and z to its
    makespan. A transfer takes at least its own time, whatever the links' rule. What lies between v
    and w runs after v's end and before w's start, on a device that does at most ``streams`` seconds
    of work a second. So every schedule is feasible, and no optimum is above its makespan. It stays
    so with x whole, and what branch and bound has not excluded yet is a bound at any time.

    Args:
        problem: What is placed, under ``dataflow``.
        limit_s: Longest time to solve, s.
        whole: Whether units must not be divided: tighter and slower.

    Returns:
        The bound, s; 0 where the programme is too large, or nothing is known after ``limit_s``.

    Raises:
        ProblemError: If the problem is not of the dataflow model.
    """
    if not isinstance(problem.model, Dataflow):
        raise ProblemError("the schedule's linear programme bounds the dataflow model only")
    graph, costs, d = problem.graph, problem.costs, problem.num_devices
    n, u, e = problem.num_ops, problem.num_units, graph.num_edges
    if e * d * d * 4 + n * d * 4 > _LARGEST:
        return 0.0
    units = problem.units.astype(np.int64)
    finite = np.where(np.isfinite(costs.seconds), costs.seconds, 0.0)
    scale = max(float(finite.max(initial=0.0)), 1e-300)
    seconds = finite / scale
    source, target = graph.edge_producer.astype(np.int64), graph.consumer_ops.astype(np.int64)
    away = np.flatnonzero(units[source] != units[target])
    start, flow = u * d, u * d + n
    last = flow + len(away) * d * d
    devices = np.arange(d)
    # The coupling of an edge's ends, and what it costs.
    a, b = np.divmod(np.arange(d * d), d)
    moved = costs.transfer_s(graph.edge_tensor[away][:, None], a, b) / scale
    moved[:, a == b] = 0.0
    cells = flow + np.arange(len(away))[:, None] * d * d
    usable = np.concatenate(
        [
            problem.unit_allowed.ravel(),
            np.ones(n, dtype=np.bool_),
            np.isfinite(moved).ravel(),
            [True],
        ]
    )
    moved = np.where(np.isfinite(moved), moved, 0.0)
    own = units[:, None] * d + devices
    equal, less = _Rows.empty(), _Rows.empty()
    equal.add(np.arange(u * d).reshape(u, d), np.ones((1, d)))
    for k in range(d):
        ones = np.append(np.ones(d), -1.0)[None]
        equal.add(np.column_stack([cells + k * d + devices, units[source[away]] * d + k]), ones)
        equal.add(np.column_stack([cells + devices * d + k, units[target[away]] * d + k]), ones)
    right = np.concatenate([np.ones(u), np.zeros(equal.count - u)])
    minus, plus = -np.ones((n, 1)), np.ones((n, 1))
    less.add(
        np.column_stack([start + np.arange(n), np.full(n, last), own]),
        np.column_stack([plus, minus, seconds]),
    )
    inner = np.flatnonzero(units[source] == units[target])
    for edges, extra, price in (
        (inner, np.empty((len(inner), 0), np.int64), np.empty((len(inner), 0))),
        (away, cells + np.arange(d * d), moved),
    ):
        s, t = source[edges], target[edges]
        less.add(
            np.column_stack([start + s, start + t, own[s], extra]),
            np.column_stack([plus[s], minus[s], seconds[s], price]),
        )
    streams = np.array([device.streams for device in problem.cluster.devices], dtype=np.float64)
    for first, join, inside in _regions(problem):
        if less.size + len(inside) * d > _LARGEST:
            break
        end = last if join < 0 else start + join
        after = np.empty(0, np.int64) if first < 0 else np.append(own[first], start + first)
        delay = np.empty(0) if first < 0 else np.append(seconds[first], 1.0)
        for k in range(d):
            less.add(
                np.concatenate([own[inside, k], [end], after])[None],
                np.concatenate([seconds[inside, k], [-streams[k]], streams[k] * delay])[None],
            )
    cost = np.zeros(last + 1)
    cost[last] = 1.0
    integrality = np.zeros(last + 1, dtype=np.int64)
    integrality[:start] = whole
    solution = milp(
        cost,
        integrality=integrality,
        bounds=Bounds(0.0, np.where(usable, np.inf, 0.0)),
        constraints=[
            LinearConstraint(equal.matrix(last + 1), right, right),
            LinearConstraint(less.matrix(last + 1), -np.inf, 0.0),
        ],
        options={"time_limit": max(limit_s, 0.01)},
    )
    low = solution.mip_dual_bound if whole else solution.fun
    if low is None or (not whole and solution.status != _OPTIMAL) or not np.isfinite(low):
        return 0.0
    # The solver's tolerance is 1e-7 on every constraint; stay below it.
    return max(float(low) * (1 - 1e-6) - 1e-9, 0.0) * scale


def _regions(problem: Problem) -> list[tuple[int, int, Longs]]:
    """(fork, join, ops strictly between), smallest first; -1 where the graph begins or ends."""
    n = problem.num_ops
    graph = nx.DiGraph()
    graph.add_nodes_from(range(n))
    edges = zip(
        problem.graph.edge_producer.tolist(), problem.graph.consumer_ops.tolist(), strict=True
    )
    graph.add_edges_from(edges)
    graph.add_edges_from([(-1, i) for i in range(n) if not graph.pred[i]])
    dominator = nx.immediate_dominators(graph, -1)
    before = np.eye(n, dtype=np.bool_)
    for i in range(n):
        for p in graph.pred[i]:
            if p >= 0:
                before[i] |= before[p]
    everything: Bools = np.ones(n, dtype=np.bool_)
    found = [(-1, -1, np.flatnonzero(everything))]
    for w in range(n):
        if len(graph.pred[w]) < 2:
            continue
        v = dominator[w]
        inside = before[w].copy()
        inside[w] = False
        if v >= 0:
            inside &= before[:, v]
            inside[v] = False
        if inside.sum() > 1:
            found.append((v, w, np.flatnonzero(inside)))
    return sorted(found, key=lambda region: len(region[2]))
