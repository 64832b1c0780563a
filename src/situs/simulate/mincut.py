"""The exact optimum of the ``sequential`` model on two devices: a minimum cut."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from situs.core import Problem, Sequential
from situs.errors import ProblemError
from situs.graph.arrays import Bools, Floats, Ints, frozen
from situs.simulate._flow_kernels import max_flow, residual_arcs
from situs.simulate.evaluate import evaluate

_LARGEST = 2.0**60


@dataclass(frozen=True, eq=False)
class CutNetwork:
    """The flow network of a two-device problem.

    Nodes: the units, then two auxiliary nodes for every tensor that several units read, then
    source (device 0) and sink (device 1). A unit on the source's side runs on device 0.
    """

    tails: Ints
    heads: Ints
    capacities: Floats
    num_nodes: int
    source: int
    sink: int


def cut_network(problem: Problem, pair: tuple[int, int] = (0, 1)) -> CutNetwork:
    """Build the network whose minimum cut is the best ``sequential`` placement on two devices.

    A unit's run time on one device is an arc to the other device's terminal. A tensor with one
    reading unit is a pair of opposite arcs. One with several gets two auxiliary nodes: producer ->
    a (the cost of moving it from the first device to the second) -> every reader (infinite), and
    every reader (infinite) -> b -> producer (the way back); so it is paid once per destination.

    Source: Stone, "Multiprocessor scheduling with the aid of network flow algorithms", IEEE TSE
    3(1), 1977; the auxiliary nodes are those of hyperedge cuts (Lawler 1973).
    """
    first, second = pair
    units, graph = problem.units, problem.graph
    num_units = problem.num_units
    producer = units[graph.edge_producer]
    pairs = np.stack([graph.edge_tensor, producer, units[graph.consumer_ops]], axis=1)
    pairs = np.unique(pairs[pairs[:, 1] != pairs[:, 2]], axis=0)
    tensors, start, counts = np.unique(pairs[:, 0], return_index=True, return_counts=True)
    forward = problem.costs.transfer_s(tensors, first, second) + problem.costs.boundary_s[second]
    backward = problem.costs.transfer_s(tensors, second, first) + problem.costs.boundary_s[first]
    which = np.repeat(np.arange(len(tensors)), counts)
    alone = counts == 1
    single = pairs[alone[which]]
    several = ~alone
    number = np.cumsum(several) - 1
    out_node = num_units + 2 * number
    back_node = out_node + 1
    shared, shared_of = pairs[several[which]], which[several[which]]
    source = num_units + 2 * int(several.sum())
    sink = source + 1
    own = pairs[start, 1]
    infinite = np.full(len(shared), np.inf)
    seconds = problem.unit_seconds
    arcs = [
        (np.full(num_units, source), np.arange(num_units), seconds[:, second]),
        (np.arange(num_units), np.full(num_units, sink), seconds[:, first]),
        (single[:, 1], single[:, 2], forward[alone]),
        (single[:, 2], single[:, 1], backward[alone]),
        (own[several], out_node[several], forward[several]),
        (out_node[shared_of], shared[:, 2], infinite),
        (back_node[several], own[several], backward[several]),
        (shared[:, 2], back_node[shared_of], infinite),
    ]
    return CutNetwork(
        frozen(np.concatenate([a for a, _, _ in arcs]), np.int32),
        frozen(np.concatenate([b for _, b, _ in arcs]), np.int32),
        frozen(np.concatenate([c for _, _, c in arcs]), np.float64),
        sink + 1,
        source,
        sink,
    )


def source_side(network: CutNetwork) -> Bools:
    """``bool[nodes]``: the source's side of a minimum cut.

    Capacities are scaled to integers of up to 60 bits, so the cut is minimal to 1e-15 of their sum.
    """
    finite = np.isfinite(network.capacities)
    total = float(network.capacities[finite].sum())
    scaled = np.zeros(len(finite), dtype=np.int64)
    # A few infinite arcs in a cut still fit into 64 bits; every finite cut is below one of them.
    scale = _LARGEST / 16 / total if total > 0 else 0.0
    scaled[finite] = np.rint(network.capacities[finite] * scale).astype(np.int64)
    scaled[~finite] = np.int64(_LARGEST / 8)
    offsets, head, twin, residual = residual_arcs(
        network.tails, network.heads, scaled, network.num_nodes
    )
    _, side = max_flow(offsets, head, twin, residual, network.source, network.sink)
    return side


def minimum_cut(problem: Problem) -> tuple[float, Ints]:
    """The least ``sequential`` latency on two devices and a placement that has it.

    Memory limits are not part of the cut: with them the value is still a lower bound.

    Returns:
        Seconds, and ``int32[N]``; ``inf`` and device 0 everywhere if no placement is finite.

    Raises:
        ProblemError: If the problem is not ``sequential`` on exactly two devices.
    """
    if problem.num_devices != 2 or not isinstance(problem.model, Sequential):
        raise ProblemError("a minimum cut needs the sequential model and exactly two devices")
    network = cut_network(problem)
    side = source_side(network)
    assignment = np.where(side[: problem.num_units], 0, 1).astype(np.int32)[problem.units]
    # Values are those of the cut: without memory limits, which evaluate would hold it to.
    memory = np.full(problem.num_devices, np.inf)
    free = replace(problem, limits=replace(problem.limits, memory_bytes=memory))
    return float(evaluate(free, assignment[np.newaxis])[0]), frozen(assignment, np.int32)
