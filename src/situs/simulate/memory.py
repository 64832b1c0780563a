"""Peak memory of placements, and why a placement is infeasible."""

from __future__ import annotations

import numpy as np

from situs.core import Dataflow, Offload, Problem, Sequential, count_subgraphs, violation
from situs.graph.arrays import Bools, Floats, Ints, Longs, frozen
from situs.simulate._dataflow_kernels import simulate, workspace
from situs.simulate.ranks import dispatch_keys, flow_options
from situs.simulate.tables import tables


def peak_memory(problem: Problem, assignment: Ints) -> Floats:
    """``float64[D]`` largest memory that each device holds at once, B.

    Every constant counts once on each device that reads it. A tensor lives on its producer's device
    from the start of the producer to its last local reader's end and the end of the last transfer;
    its copy lives on another device from the start of the transfer to the last reader's end there.

    - ``sequential``: time is the topological position; a transfer runs at its first reader.
    - ``dataflow``: time is the simulated schedule; what ends at an instant is freed before what
      begins at that instant is held. A schedule that cannot run (missing link) counts as holding
      everything at once.
    - ``pipeline``: requests overlap, so that all tensors and copies are held at once.
    - ``offload``: as ``pipeline``; every call shows the sum over its accelerator.
    """
    a = np.array(assignment, dtype=np.int32)
    held = constant_memory(problem, a)
    device, size, begin, end = _lives(problem, a)
    if isinstance(problem.model, Sequential | Dataflow) and begin is not None and end is not None:
        closed = isinstance(problem.model, Sequential)
        for d in range(problem.num_devices):
            here = device == d
            held[d] += _peak(begin[here], end[here], size[here], closed)
    else:
        held += np.bincount(device, weights=size, minlength=problem.num_devices)
    if isinstance(problem.model, Offload):
        calls = problem.model.calls
        held[1:] = np.repeat(held[1:].reshape(-1, calls).sum(axis=1), calls)
    return frozen(held, np.float64)


def constant_memory(problem: Problem, a: Ints) -> Floats:
    """``float64[D]`` bytes of constants, each once per device that reads it."""
    graph, d = problem.graph, problem.num_devices
    constant = np.repeat(np.arange(len(graph.constant_bytes)), np.diff(graph.reader_offsets))
    pairs = np.unique(constant * d + a[graph.reader_ops])
    weights = graph.constant_bytes[pairs // d].astype(np.float64)
    return np.bincount(pairs % d, weights=weights, minlength=d).astype(np.float64)


def over_limits(problem: Problem, assignments: Ints) -> Bools:
    """``bool[B]``: a device's peak memory, or the number of sub-graphs, is over its limit."""
    batch = np.asarray(assignments, dtype=np.int32)
    over = np.zeros(len(batch), dtype=np.bool_)
    graph, limit, most = problem.graph, problem.memory_bytes, problem.limits.max_subgraphs
    if most is not None:
        over |= [count_subgraphs(graph, a) > most for a in batch]
    if _fits(problem):
        return over
    for b, a in enumerate(batch):
        if not over[b] and (constant_memory(problem, a) > limit).any():
            over[b] = True
        elif not over[b]:
            over[b] = (peak_memory(problem, a) > limit).any()
    return over


def roomy(problem: Problem) -> bool:
    """Whether no placement at all can exceed a limit."""
    return problem.limits.max_subgraphs is None and _fits(problem)


def _fits(problem: Problem) -> bool:
    # All constants and all tensors are more than any schedule can hold on one device.
    graph = problem.graph
    most = float(graph.constant_bytes.sum() + graph.tensor_bytes.sum())
    return bool(most <= problem.memory_bytes.min())


def explain(problem: Problem, assignment: Ints) -> str | None:
    """Which hard rule or limit an assignment breaks and by how much, in one line; None if none."""
    a = np.asarray(assignment, dtype=np.int32)
    broken = violation(problem, a)
    if broken is not None:
        return broken
    limit = problem.memory_bytes
    peak = peak_memory(problem, a)
    short = np.flatnonzero(peak > limit)
    if len(short):
        return "; ".join(
            f"{problem.cluster.names[d]} is short of {peak[d] - limit[d]:.0f} B "
            f"(needs {peak[d]:.0f}, has {limit[d]:.0f})"
            for d in short
        )
    most = problem.limits.max_subgraphs
    if most is not None and (count := count_subgraphs(problem.graph, a)) > most:
        return f"{count} sub-graphs, and the limit is {most}"
    return None


def _lives(
    problem: Problem, a: Ints
) -> tuple[Ints, Floats, Floats | Longs | None, Floats | Longs | None]:
    """(device, bytes, begin, end) of every tensor and copy; times None if nothing can be timed."""
    graph, n = problem.graph, problem.num_ops
    device = a[graph.tensor_producer]
    target = a[graph.consumer_ops]
    d = problem.num_devices
    remote = target != a[graph.edge_producer]
    keys, first, which = np.unique(
        graph.edge_tensor[remote].astype(np.int64) * d + target[remote],
        return_index=True,
        return_inverse=True,
    )
    copied, to = keys // d, keys % d
    devices = np.concatenate([device, to])
    sizes = graph.tensor_bytes[np.concatenate([np.arange(graph.num_tensors), copied])]
    readers = graph.consumer_ops[remote]
    if isinstance(problem.model, Sequential):
        begin = end = np.arange(n, dtype=np.float64)
        sent = received = readers[first]
    elif isinstance(problem.model, Dataflow):
        w = workspace(n, graph.num_edges, d)
        options = flow_options(problem.model)
        if not np.isfinite(simulate(a, tables(problem), dispatch_keys(problem), *options, w)):
            return devices, sizes.astype(np.float64), None, None
        begin, end = w.start_s, w.end_s
        edges = np.flatnonzero(remote)
        if options[2]:
            # One copy per device in memory, whichever of its transfers brings it.
            sent = np.full(len(keys), np.inf)
            received = np.zeros(len(keys))
            np.minimum.at(sent, which, w.sent_s[edges])
            np.maximum.at(received, which, w.arrived_s[edges])
        else:
            sent, received = w.sent_s[edges[first]], w.arrived_s[edges[first]]
    else:
        return devices, sizes.astype(np.float64), None, None
    local_end = end[graph.tensor_producer].copy()
    local = np.flatnonzero(~remote)
    np.maximum.at(local_end, graph.edge_tensor[local], end[graph.consumer_ops[local]])
    np.maximum.at(local_end, copied, received)
    copy_end = np.array(received)
    np.maximum.at(copy_end, which, end[readers])
    begins = np.concatenate([begin[graph.tensor_producer], sent])
    return devices, sizes.astype(np.float64), begins, np.concatenate([local_end, copy_end])


def _peak(begin: Floats | Longs, end: Floats | Longs, size: Floats, closed: bool) -> float:
    """Largest sum of sizes alive at once; ``closed``: an end still overlaps an equal begin."""
    if not len(size):
        return 0.0
    times = np.concatenate([begin, end])
    change = np.concatenate([size, -size])
    ends = np.repeat([0, 1], len(size))
    order = np.lexsort((ends if closed else 1 - ends, times))
    # An interval of no length must not be freed before it is held.
    return max(0.0, float(np.cumsum(change[order]).max()))
