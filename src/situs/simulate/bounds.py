"""Lower bounds: no placement of a problem can be faster, whatever its limits on memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from situs.core import Dataflow, Offload, Problem, Sequential
from situs.graph.arrays import Floats
from situs.simulate.mincut import minimum_cut

_LARGEST_LP = 200_000  # Non-zeros up to which the linear programs are solved.


@dataclass(frozen=True, slots=True)
class Bound:
    """A proven lower bound on the value of every placement.

    Attributes:
        seconds: The bound, s.
        name: The argument that gives it.
    """

    seconds: float
    name: str


def bound(problem: Problem) -> Bound:
    """The best of our lower bounds under the problem's execution model, and its name."""
    if not problem.num_ops:
        return Bound(0.0, "no ops")
    return max(bounds(problem), key=lambda b: b.seconds)


def bounds(problem: Problem) -> list[Bound]:
    """Every lower bound that applies to the problem's execution model."""
    model = problem.model
    if isinstance(model, Sequential):
        if problem.num_devices == 2:
            return [Bound(_below(minimum_cut(problem)[0]), "minimum cut")]
        return [Bound(work(problem), "work"), Bound(cut_relaxation(problem), "LP relaxation")]
    if isinstance(model, Offload):
        # A call takes at least the sum of its ops, hence of any part of a chain inside it.
        return [Bound(paths(problem, np.zeros(problem.num_devices))[0], "critical path")]
    weights = area_weights(problem)
    found = [
        Bound(area(problem, weights), "area"),
        Bound(heaviest_unit(problem), "heaviest unit"),
    ]
    if isinstance(model, Dataflow):
        path, combined = paths(problem, weights)
        found += [Bound(path, "critical path"), Bound(combined, "critical path and area")]
    return found


def _below(seconds: float) -> float:
    """Take the rounding of a long sum off a bound."""
    return seconds * (1 - 1e-12)


def work(problem: Problem) -> float:
    """Sum over units of their least time.

    Proof: ``sequential`` adds up all op times, and the ops of a unit share a device.
    """
    return _below(float(problem.unit_seconds.min(axis=1).sum()))


def heaviest_unit(problem: Problem) -> float:
    """Largest over units of the least ``time / streams``.

    Proof: All ops of a unit run on one device, which does at most ``streams`` seconds of work a
    second.
    """
    per_stream = problem.unit_seconds / _streams(problem)
    return _below(float(per_stream.min(axis=1).max()))


def _streams(problem: Problem) -> Floats:
    return np.array([float(device.streams) for device in problem.cluster.devices])


def area_weights(problem: Problem) -> Floats:
    """``float64[D]`` weights >= 0 with ``weights @ streams == 1`` that make ``area`` large.

    The dual of: minimise L so that the fractional work on each device is at most ``L * streams``.
    """
    seconds, streams = problem.unit_seconds, _streams(problem)
    units, devices = np.nonzero(np.isfinite(seconds))
    if len(units) > _LARGEST_LP:
        # Any weights prove a bound; a sample of the units gives good ones.
        keep = np.unique(units)[:: 1 + len(units) // _LARGEST_LP]
        chosen = np.isin(units, keep)
        units, devices = units[chosen], devices[chosen]
    x = len(units)
    # linprog takes sparse matrices; its type stubs do not know.
    matrix: Any = coo_array(
        (
            np.concatenate([seconds[units, devices], -streams]),
            (
                np.concatenate([devices, np.arange(len(streams))]),
                np.append(np.arange(x), [x] * len(streams)),
            ),
        ),
        shape=(len(streams), x + 1),
    )
    _, dense = np.unique(units, return_inverse=True)
    equal: Any = coo_array((np.ones(x), (dense, np.arange(x))), shape=(int(dense.max()) + 1, x + 1))
    cost = np.zeros(x + 1)
    cost[x] = 1.0
    solved = linprog(cost, matrix, np.zeros(len(streams)), equal, np.ones(equal.shape[0]))
    weights = np.maximum(-solved.ineqlin.marginals, 0.0) if solved.status == 0 else np.zeros(0)
    if not weights.sum() > 0:
        weights = np.ones(len(streams))
    return np.asarray(weights / (weights @ streams))


def area(problem: Problem, weights: Floats) -> float:
    """``sum over units of min over devices of weight * time``.

    Proof: Let C be the makespan, or the largest load. Device d does at most ``C * streams[d]``
    seconds of work, so the work of all devices, weighted, is at most ``C * (weights @ streams)`` =
    C. The weighted work of a unit is at least its minimum over devices. This is weak duality of the
    linear program, so it holds for any weights, and no tolerance of a solver can break it.
    """
    return _below(float(_weighted(problem.unit_seconds, weights).sum()))


def _weighted(seconds: Floats, weights: Floats) -> Floats:
    """Least ``weight * time`` over the devices of finite time, for each row."""
    allowed = np.isfinite(seconds)
    values = np.where(allowed, np.where(allowed, seconds, 0.0) * weights, np.inf)
    return np.asarray(values.min(axis=1), dtype=np.float64)


def paths(problem: Problem, weights: Floats) -> tuple[float, float]:
    """(critical path, critical path and area) of the ``dataflow`` model, s.

    Critical path. Proof: an op starts after every producer has ended, and takes at least its least
    time; so the makespan is at least the longest chain of least times.

    Combined. Let ``head(i)`` be the longest chain before op i and ``tail(i)`` that after it, both
    of least times. For any r, q let S be the ops with head >= r and tail >= q. Proof: every op of S
    starts at r or later, and ends at C - q or earlier, so all work of S is done in a time of
    C - q - r; by the argument of ``area`` its weighted work is at most that, hence
    ``C >= r + q + sum over S of min over devices of weight * time``.

    Source: Fernandez, Bussell, "Bounds on the number of processors and time for multiprocessor
    optimal schedules", IEEE TC C-22(8), 1973, in the spirit; for unrelated devices by duality.
    """
    graph = problem.graph
    seconds = np.where(problem.allowed, problem.costs.seconds, np.inf)
    least = seconds.min(axis=1)
    share = _weighted(seconds, weights)
    n = problem.num_ops
    head, tail = np.zeros(n), np.zeros(n)
    u, v = graph.edge_producer.tolist(), graph.consumer_ops.tolist()
    by_reader = np.argsort(graph.consumer_ops, kind="stable").tolist()
    times = least.tolist()
    heads, tails = head.tolist(), tail.tolist()
    for e in by_reader:
        heads[v[e]] = max(heads[v[e]], heads[u[e]] + times[u[e]])
    for e in range(len(u) - 1, -1, -1):
        tails[u[e]] = max(tails[u[e]], tails[v[e]] + times[v[e]])
    head, tail = np.array(heads), np.array(tails)
    longest = float((head + least).max())
    best = 0.0
    starts = np.unique(np.quantile(head, np.linspace(0, 1, 33), method="lower"))
    ends = np.unique(np.quantile(tail, np.linspace(0, 1, 33), method="lower"))
    for r in starts:
        late = head >= r
        tail_late, share_late = tail[late], share[late]
        for q in ends:
            chosen = tail_late >= q
            if chosen.any():
                best = max(best, float(r + q + share_late[chosen].sum()))
    return _below(longest), _below(best)


def cut_relaxation(problem: Problem) -> float:
    """LP relaxation of ``sequential`` on any number of devices, valued by its dual.

    The program: ``x[u, d]`` is the share of unit u on device d; ``z[t, d] >= x[reader, d] -
    x[producer, d]`` for every reader; minimise op times plus ``w[t, d] * z[t, d]``, where w is the
    least transfer into d from any other device plus d's start-up.

    Proof: A placement gives x in {0, 1}; tensor t is then moved to d exactly if a reader is on d
    and the producer is not, and costs at least w[t, d]. For any multipliers m >= 0 of the
    constraints with ``sum over readers of m[t, d, reader] <= w[t, d]``, relaxing them leaves a sum
    over units of the least reduced cost, which is at most the program's value (weak duality). That
    sum is what we return, so that no tolerance of a solver can break it.
    """
    costs, graph, d = problem.costs, problem.graph, problem.num_devices
    seconds = problem.unit_seconds
    num_units = problem.num_units
    u, v = problem.units[graph.edge_producer], problem.units[graph.consumer_ops]
    edges = np.unique(np.stack([graph.edge_tensor, u, v], axis=1)[u != v], axis=0)
    free = np.isfinite(seconds)
    if not len(edges) or len(edges) * d > _LARGEST_LP or not free.any(axis=1).all():
        return work(problem)
    tensors, which = np.unique(edges[:, 0], return_inverse=True)
    limit = float(np.where(free, seconds, 0.0).max(axis=1).sum()) + 1.0
    into = np.full((len(tensors), d), limit)
    for to in range(d):
        for source in range(d):
            if source != to:
                moved = costs.transfer_s(tensors, source, to) + costs.boundary_s[to]
                into[:, to] = np.minimum(into[:, to], moved)
    e, x, z = len(edges), num_units * d, len(tensors) * d
    row = np.arange(e * d)
    target = np.tile(np.arange(d), e)
    reader = np.repeat(edges[:, 2], d) * d + target
    producer = np.repeat(edges[:, 1], d) * d + target
    paid = x + np.repeat(which, d) * d + target
    ones = np.ones(e * d)
    # linprog takes sparse matrices; its type stubs do not know.
    matrix: Any = coo_array(
        (
            np.concatenate([ones, -ones, -ones]),
            (np.tile(row, 3), np.concatenate([reader, producer, paid])),
        ),
        shape=(e * d, x + z),
    )
    equal: Any = coo_array(
        (np.ones(x), (np.repeat(np.arange(num_units), d), np.arange(x))), shape=(num_units, x + z)
    )
    ceiling = np.concatenate([free.ravel().astype(np.float64), np.ones(z)])
    solved = linprog(
        np.concatenate([np.where(free, seconds, 0.0).ravel(), into.ravel()]),
        matrix,
        np.zeros(e * d),
        equal,
        np.ones(num_units),
        [(0.0, float(most)) for most in ceiling],
    )
    if solved.status != 0:
        return work(problem)
    multipliers = np.maximum(-solved.ineqlin.marginals, 0.0)
    totals = np.bincount(paid - x, weights=multipliers, minlength=z)
    over = totals > into.ravel()
    scale = np.ones(z)
    scale[over] = into.ravel()[over] / totals[over]
    multipliers = multipliers * scale[paid - x]
    reduced = np.where(free, seconds, np.inf).ravel()
    reduced += np.bincount(reader, weights=multipliers, minlength=x)
    reduced -= np.bincount(producer, weights=multipliers, minlength=x)
    return max(work(problem), _below(float(reduced.reshape(num_units, d).min(axis=1).sum())))
