"""Parts of a problem as problems of their own: what large-neighbourhood search solves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from situs.core import Limits, Problem
from situs.costs import CostTable
from situs.graph import Graph
from situs.graph.arrays import Bools, Ints, Longs, csr_from_pairs, csr_rows, frozen
from situs.placers.heuristic.moves import Neighbourhood
from situs.placers.heuristic.walk import Walk

_ROUNDS, _MOVES = 10, 150
_LEAST, _MOST = 64, 512


@dataclass(frozen=True, eq=False)
class Window:
    """Some ops of a problem, everything else staying where it is.

    Attributes:
        problem: The ops, and, free of cost and pinned, the outside producers of what they read.
        ops: ``int32[W]`` op of the whole problem that each op of the part is.
        inside: ``bool[W]`` whether it may move.
    """

    problem: Problem
    ops: Ints
    inside: Bools

    def splice(self, assignment: Ints, part: Ints) -> Ints:
        """``int32[N]`` the whole assignment with the window's part in it."""
        whole = assignment.copy()
        whole[self.ops[self.inside]] = part[self.inside]
        return whole


def narrow_cuts(problem: Problem, order: Longs) -> list[Ints]:
    """Consecutive parts of ``order`` of 64 to 512 ops, cut where the fewest tensors are alive.

    A part whose inputs and outputs are few is nearly a problem of its own: where it gets shorter,
    so does the whole. ``order`` is ``int64[N]``, topological.
    """
    graph, n = problem.graph, len(order)
    at = np.empty(n, dtype=np.int64)
    at[order] = np.arange(n)
    last = at[graph.tensor_producer].copy()
    np.maximum.at(last, graph.edge_tensor, at[graph.consumer_ops])
    steps = np.bincount(at[graph.tensor_producer] + 1, minlength=n + 1)
    alive = np.cumsum(steps - np.bincount(last + 1, minlength=n + 1)[: n + 1])
    parts: list[Ints] = []
    first = 0
    while first < n:
        low, high = first + _LEAST, first + _MOST
        # The first of the narrowest: small parts are searched better in the same time.
        end = n if high >= n else low + int(np.argmin(alive[low:high]))
        parts.append(frozen(order[first:end], np.int32))
        first = end
    return parts


def window(problem: Problem, chosen: Ints, assignment: Ints) -> Window:
    """The ``chosen`` ops as a problem; units that reach outside it are pinned where they are.

    Memory and sub-graph limits are those of the whole and are not carried over: the whole
    placement is what must be valued in the end.
    """
    graph, costs = problem.graph, problem.costs
    chosen_mask = np.zeros(problem.num_ops, dtype=np.bool_)
    chosen_mask[chosen] = True
    offsets, inputs = graph.inputs
    rows = csr_rows(offsets)
    read = np.unique(inputs[chosen_mask[rows]])
    producers = np.unique(graph.tensor_producer[read])
    ops = np.union1d(chosen, producers).astype(np.int32)
    inside = chosen_mask[ops]
    local = np.full(problem.num_ops, -1, dtype=np.int32)
    local[ops] = np.arange(len(ops), dtype=np.int32)
    written = chosen_mask[graph.tensor_producer]
    written[read] = True
    tensors = np.flatnonzero(written)
    number = np.full(graph.num_tensors, -1, dtype=np.int32)
    number[tensors] = np.arange(len(tensors), dtype=np.int32)
    edges = written[graph.edge_tensor] & chosen_mask[graph.consumer_ops]
    consumer_offsets, consumer_ops = csr_from_pairs(
        number[graph.edge_tensor[edges]], local[graph.consumer_ops[edges]], len(tensors)
    )
    part = Graph(
        name=f"{graph.name} (window)",
        op_names=tuple(graph.op_names[i] for i in ops),
        op_types=tuple(graph.op_types[i] for i in ops),
        tensor_producer=local[graph.tensor_producer[tensors]],
        tensor_port=graph.tensor_port[tensors],
        tensor_dtype=tuple(graph.tensor_dtype[t] for t in tensors),
        tensor_shape=tuple(graph.tensor_shape[t] for t in tensors),
        tensor_bytes=graph.tensor_bytes[tensors],
        consumer_offsets=consumer_offsets,
        consumer_ops=consumer_ops,
        constant_bytes=np.zeros(0, dtype=np.int64),
        reader_offsets=np.zeros(1, dtype=np.int32),
        reader_ops=np.zeros(0, dtype=np.int32),
        op_flop=graph.op_flop[ops],
        colocation=np.where(inside, problem.units[ops], -1),
        is_input=graph.is_input[ops],
        is_output=graph.is_output[ops],
    )
    seconds = costs.seconds[ops].copy()
    seconds[~inside] = 0.0
    outside_units = np.zeros(problem.num_units, dtype=np.bool_)
    outside_units[problem.units[~chosen_mask]] = True
    stays = ~inside | outside_units[problem.units[ops]]
    table = CostTable(
        seconds=seconds,
        transfer_size=costs.transfer_size[tensors],
        link_latency_s=costs.link_latency_s,
        link_s_per_byte=costs.link_s_per_byte,
        boundary_s=costs.boundary_s,
        source=costs.source,
    )
    limits = Limits(
        memory_bytes=np.full(problem.num_devices, np.inf),
        pinned=frozen(np.where(stays, assignment[ops], -1), np.int32),
        forbidden=np.where(stays[:, None], False, ~problem.allowed[ops]),
    )
    return Window(Problem(part, problem.cluster, table, problem.model, limits), ops, inside)


def better_window(
    problem: Problem, chosen: Ints, assignment: Ints, heat: float, rng: np.random.Generator
) -> Ints | None:
    """``int32[N]`` with the ``chosen`` ops walked to a better place for themselves, or None.

    ``heat`` is the first temperature as a share of the window's value; it falls to 0.
    """
    part = window(problem, chosen, assignment)
    moves = Neighbourhood(part.problem)
    if not len(moves.free):
        return None
    walk = Walk(part.problem, moves, assignment[part.ops])
    before_s = walk.seconds
    if not np.isfinite(before_s):
        return None
    for k in range(_ROUNDS):
        temperature_s = heat * before_s * (1 - (k + 1) / _ROUNDS)
        walk.follow(walk.propose(_MOVES, temperature_s, rng))
    return part.splice(assignment, walk.best) if walk.best_s < before_s else None
