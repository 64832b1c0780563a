"""Lower bounds on the latency of every feasible placement, each with its proof."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array, hstack, vstack

from situs.core import Dataflow, Offload, Problem, Sequential
from situs.graph.arrays import Bools, Floats, frozen
from situs.simulate._rank_kernels import upward_rank
from situs.simulate.mincut import minimum_cut

Indices = NDArray[np.integer[Any]]
# HiGHS takes seconds, not minutes, up to about this many variables.
_LARGEST_LP = 60_000
_OPTIMAL, _INFEASIBLE = 0, 2  # scipy.optimize.linprog's statuses
# Sums in another order round differently; a bound must not exceed a value by rounding.
_ROUNDING = 1 - 1e-12


@dataclass(frozen=True, slots=True)
class Bound:
    """No feasible placement takes less than ``seconds``; ``name`` says which argument proves it."""

    seconds: float
    name: str


def bound(problem: Problem) -> Bound:
    """The best lower bound under the problem's execution model, s; ``inf`` = none is feasible.

    A linear programme is left out where it would have more than 60,000 variables.
    """
    found: list[Bound] = []
    if isinstance(problem.model, Sequential):
        found.append(Bound(least_work_s(problem), "least work"))
        if problem.num_devices == 2:
            found.append(Bound(minimum_cut_s(problem), "minimum cut"))
        else:
            found.append(Bound(sequential_lp_s(problem), "cut relaxation"))
    elif isinstance(problem.model, Offload):
        found.append(Bound(critical_path_s(problem), "critical path"))
    else:
        found.append(Bound(area_s(problem), "area"))
        if isinstance(problem.model, Dataflow):
            found.append(Bound(critical_path_s(problem), "critical path"))
            found.append(Bound(path_and_area_s(problem), "critical path and area"))
        else:
            found.append(Bound(largest_unit_s(problem), "largest unit"))
    return max(found, key=lambda one: one.seconds)


def _best_s(problem: Problem) -> Floats:
    """``float64[N]`` least time of each op over the devices where its unit may go, s."""
    allowed = problem.unit_allowed[problem.units]
    best = np.where(allowed, problem.costs.seconds, np.inf).min(axis=1, initial=np.inf)
    return frozen(best, np.float64)


def least_work_s(problem: Problem) -> float:
    """``sequential``: every unit on its fastest device, transfers free.

    Proof: the latency is the sum of all op times, plus terms >= 0; a unit's ops share a device, so
    they take at least the least ``unit_seconds`` of the unit.
    """
    return float(problem.unit_seconds.min(axis=1, initial=np.inf).sum())


def minimum_cut_s(problem: Problem) -> float:
    """``sequential``, two devices: the least latency without memory limits.

    Proof: see ``minimum_cut``; memory limits only take placements away.
    """
    return minimum_cut(problem)[0]


def critical_path_s(problem: Problem) -> float:
    """``dataflow``, ``offload``: the longest path, each op at its fastest, transfers free.

    Proof: an op starts after its producers end, and runs for at least its least time; by induction
    along a path its last op ends no earlier than the path's sum. A call of ``offload`` starts after
    what it reads, and takes at least the sum of its ops, hence of the path's part inside it.
    """
    return float(_heads_and_tails(problem)[0].max(initial=0.0))


def area_s(problem: Problem) -> float:
    """``dataflow`` and ``pipeline``: the least largest load, with units divided at will.

    The linear programme: minimise z subject to ``sum_u seconds[u, d] x[u, d] <= streams[d] z`` for
    every device, ``sum_d x[u, d] = 1``, ``x >= 0``, and ``x[u, d] = 0`` where not allowed.

    Proof: a placement's 0/1 matrix x is feasible with z = its latency: within a makespan z, a
    device with k streams does at most k z of work; a pipeline's load is that work over k, or more.
    The value returned is of the dual: for any prices y >= 0 with ``sum_d streams[d] y[d] = 1``,
    ``sum_u min_d seconds[u, d] y[d] <= sum_d y[d] (work on d) <= z``; so a solver's tolerance, or
    prices found from a part of the units, can only lower it.
    """
    priced = np.where(problem.unit_allowed, _finite(problem.unit_seconds) * prices(problem), np.inf)
    return float(priced.min(axis=1, initial=np.inf).sum()) * _ROUNDING


def prices(problem: Problem) -> Floats:
    """``float64[D]`` prices of a second of each device, from the area programme's dual."""
    seconds, streams, d = problem.unit_seconds, _streams(problem), problem.num_devices
    heaviest = np.argsort(-seconds.min(axis=1), kind="stable")[: _LARGEST_LP // d]
    chosen = seconds[heaviest]
    u = len(chosen)
    cells = np.arange(u * d)
    load = coo_array((_finite(chosen).ravel(), (cells % d, cells)), (d, u * d))
    level = coo_array((-streams, (np.arange(d), np.zeros(d, dtype=np.int64))), (d, 1))
    once = coo_array((np.ones(u * d), (cells // d, cells)), (u, u * d + 1))
    solution = _minimum(
        np.append(np.zeros(u * d), 1.0),
        csr_array(hstack([load, level])),
        csr_array(once),
        np.append(np.isfinite(chosen).ravel(), True),
    )
    dual = np.maximum(-solution.ineqlin.marginals, 0.0) if solution.status == _OPTIMAL else streams
    total = float(dual @ streams)
    return frozen(dual / total if total > 0 else np.ones(d) / streams.sum(), np.float64)


def largest_unit_s(problem: Problem) -> float:
    """``pipeline``: the unit that is longest even where its load is least.

    Proof: a unit's ops are all on one device, whose load is at least their time over its streams.
    """
    loads = problem.unit_seconds / _streams(problem)
    return float(loads.min(axis=1, initial=np.inf).max(initial=0.0))


def path_and_area_s(problem: Problem) -> float:
    """``dataflow``: for sets of ops, the path before, the area of the set, and the path after.

    For thresholds a and b take the ops whose longest path before is >= a and after is >= b.

    Proof: none of them starts before a, and each is followed by b after its end. So all of their
    work is done in the interval from a to (makespan - b), and that takes at least the set's area.
    The area is the dual value of ``area_s``, op by op.
    """
    tail_and_own, head, own = _heads_and_tails(problem)
    if not np.isfinite(own).all():
        return float("inf")
    tail = tail_and_own - own
    allowed = problem.unit_allowed[problem.units]
    seconds = _finite(problem.costs.seconds) * prices(problem)
    priced = np.where(allowed, seconds, np.inf).min(axis=1)
    best = 0.0
    for a in np.unique(np.quantile(head, np.linspace(0, 1, 24))):
        early = head >= a
        order = np.argsort(-tail[early], kind="stable")
        work = np.cumsum(priced[early][order])
        if len(work):
            best = max(best, float((a + tail[early][order] + work).max()))
    return best * _ROUNDING


def sequential_lp_s(problem: Problem) -> float:
    """``sequential``, any devices: the LP relaxation of the choice of devices.

    Variables ``x[u, d]`` (unit u on d), and ``y[t, s, d] >= 0`` (tensor t goes from s to d), with
    ``sum_d x[u, d] = 1``; for every tensor, other reading unit r and device d:
    ``sum_{s != d} y[t, s, d] >= x[r, d] - x[p, d]``, and for every source s:
    ``sum_{d != s} y[t, s, d] >= x[p, s] - x[r, s]``. Minimise op times + transfers + boundaries.

    Proof: for a placement set y[t, s, d] = 1 where the producer p is on s and some reader on
    d != s. Both families hold: x[r, d] - x[p, d] = 1 only if r is on d and p is elsewhere, and
    then y of that pair is 1. The objective is then the latency. So the optimum is no larger.

    Links that do not exist are forbidden variables. A problem too large gets ``least_work_s``.
    """
    graph, costs, d = problem.graph, problem.costs, problem.num_devices
    pairs = np.stack(
        [graph.edge_tensor, problem.units[graph.edge_producer], problem.units[graph.consumer_ops]],
        axis=1,
    )
    pairs = np.unique(pairs[pairs[:, 1] != pairs[:, 2]], axis=0)
    tensors, number = np.unique(pairs[:, 0], return_inverse=True)
    u, k = problem.num_units, len(tensors)
    size = u * d + k * d * d
    if size > _LARGEST_LP or d == 1:
        return least_work_s(problem)
    seconds = problem.unit_seconds
    source, target = np.divmod(np.arange(d * d), d)
    moves = costs.transfer_s(tensors[:, None], source, target) + costs.boundary_s[target]
    moves = np.where(source == target, np.inf, moves)
    cost = np.concatenate([seconds.ravel(), moves.ravel()])
    usable = np.isfinite(cost)
    rows = np.arange(len(pairs) * d)
    device = np.tile(np.arange(d), len(pairs))
    producer = np.repeat(pairs[:, 1], d) * d + device
    reader = np.repeat(pairs[:, 2], d) * d + device
    first = u * d + np.repeat(number, d) * d * d
    others = np.arange(d)
    into = first[:, None] + others * d + device[:, None]
    out = first[:, None] + device[:, None] * d + others
    shape = (len(rows), size)
    halves = [
        _signed(shape, rows, plus, minus, covered)
        for plus, minus, covered in ((reader, producer, into), (producer, reader, out))
    ]
    cells = np.arange(u * d)
    once = csr_array(coo_array((np.ones(u * d), (cells // d, cells)), (u, size)))
    solution = _minimum(np.where(usable, cost, 0.0), csr_array(vstack(halves)), once, usable)
    if solution.status == _INFEASIBLE:
        return float("inf")
    if solution.status != _OPTIMAL:
        return least_work_s(problem)
    # The solver's tolerance is 1e-7 on every constraint; stay below it.
    return max(least_work_s(problem), float(solution.fun) * (1 - 1e-6) - 1e-9)


def _signed(
    shape: tuple[int, int], rows: Indices, plus: Indices, minus: Indices, covered: Indices
) -> coo_array:
    """Rows ``x[plus] - x[minus] - sum(y[covered])``."""
    width = covered.shape[1]
    values = np.concatenate([np.ones(len(rows)), -np.ones(len(rows) * (1 + width))])
    columns = np.concatenate([plus, minus, covered.ravel()])
    rows = np.concatenate([rows, rows, np.repeat(rows, width)])
    return coo_array((values, (rows, columns)), shape)


def _minimum(cost: Floats, at_most_zero: csr_array, once: csr_array, usable: Bools) -> Any:
    """Solve for ``x >= 0``, 0 where not usable: rows of the first <= 0, of the second = 1."""
    # The stubs do not know that sparse matrices are taken.
    return linprog(  # type: ignore[call-overload]
        cost,
        A_ub=at_most_zero,
        b_ub=np.zeros(at_most_zero.shape[0]),
        A_eq=once,
        b_eq=np.ones(once.shape[0]),
        bounds=[(0.0, np.inf if use else 0.0) for use in usable],
        method="highs",
    )


def _finite(seconds: Floats) -> Floats:
    """Zeros where an op cannot run, to multiply with; the caller masks them."""
    return np.where(np.isfinite(seconds), seconds, 0.0)


def _streams(problem: Problem) -> Floats:
    return np.array([device.streams for device in problem.cluster.devices], dtype=np.float64)


def _heads_and_tails(problem: Problem) -> tuple[Floats, Floats, Floats]:
    """Longest path from each op on (with it), longest path before it, and its own least time."""
    graph, own = problem.graph, _best_s(problem)
    free = np.zeros(graph.num_tensors)
    tails = upward_rank(graph.op_tensors, graph.consumer_offsets, graph.consumer_ops, own, free)
    head = np.zeros(problem.num_ops)
    offsets, inputs = graph.inputs
    for i in range(problem.num_ops):
        before = graph.tensor_producer[inputs[offsets[i] : offsets[i + 1]]]
        head[i] = (head[before] + own[before]).max(initial=0.0)
    return tails, head, own
