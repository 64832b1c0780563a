"""When every op and transfer of a placement runs, and what its latency hangs on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from situs.core import Dataflow, Offload, Problem, Sequential
from situs.errors import PlacementError, ProblemError
from situs.graph.arrays import Floats, Ints, frozen
from situs.simulate._dataflow_kernels import simulate, workspace
from situs.simulate.evaluate import checked, evaluate
from situs.simulate.memory import explain
from situs.simulate.ranks import dispatch_keys, flow_options
from situs.simulate.tables import tables


@dataclass(frozen=True, eq=False)
class Timeline:
    """The schedule of one placement under its problem's execution model.

    Axes: ``N`` ops, ``X`` transfers. Under ``sequential``, ops run one after another in topological
    order, and a transfer runs just before its first reader. Under ``pipeline``, this is one request
    on its own, as ``dataflow`` would run it; the time per request is ``seconds``.

    Attributes:
        assignment: ``int32[N]``.
        start_s: ``float64[N]``.
        end_s: ``float64[N]``.
        tensor: ``int32[X]`` tensor of each transfer.
        source: ``int32[X]`` device that it leaves.
        target: ``int32[X]`` device that it reaches.
        reader: ``int32[X]`` first op that waits for it.
        sent_s: ``float64[X]`` start of the transfer.
        received_s: ``float64[X]`` end on the link; readable ``boundary_s[target]`` later.
        critical_path: Ops of a longest chain of waits, first to last: each started when the one
            before it ended, delivered its tensor, or left its stream.
        seconds: Value of the placement under the problem's model, s.
    """

    assignment: Ints
    start_s: Floats
    end_s: Floats
    tensor: Ints
    source: Ints
    target: Ints
    reader: Ints
    sent_s: Floats
    received_s: Floats
    critical_path: tuple[int, ...]
    seconds: float


def timeline(problem: Problem, assignment: Ints) -> Timeline:
    """Schedule one assignment ``int32[N]``.

    Raises:
        PlacementError: If it breaks a hard rule or uses a missing link.
        ProblemError: Under ``Offload``, whose calls have no order of ops inside.
    """
    if isinstance(problem.model, Offload):
        raise ProblemError("an offload problem has no timeline; use sequential or dataflow")
    a = checked(problem, np.asarray(assignment)[np.newaxis])[0]
    seconds = float(evaluate(problem, a[np.newaxis])[0])
    if not np.isfinite(seconds):
        reason = explain(problem, a) or "a tensor has no link, or a device's ops are not contiguous"
        raise PlacementError(f"no timeline: {reason}")
    if isinstance(problem.model, Dataflow):
        return _flow(problem, a, problem.model, seconds)
    if isinstance(problem.model, Sequential):
        return _one_by_one(problem, a, seconds)
    return _flow(problem, a, Dataflow(), seconds)


def transfers(problem: Problem, a: Ints, per_edge: bool = False) -> Ints:
    """``int32[X]`` edges that carry a transfer: the first one of each tensor and destination."""
    graph = problem.graph
    source, target = a[graph.edge_producer], a[graph.consumer_ops]
    crossing = np.flatnonzero(source != target)
    if not per_edge:
        keys = graph.edge_tensor[crossing].astype(np.int64) * problem.num_devices + target[crossing]
        _, first = np.unique(keys, return_index=True)
        crossing = crossing[np.sort(first)]
    return frozen(crossing, np.int32)


def _flow(problem: Problem, a: Ints, model: Dataflow, seconds: float) -> Timeline:
    graph = problem.graph
    w = workspace(problem.num_ops, graph.num_edges, problem.num_devices)
    simulate(a, tables(problem), dispatch_keys(problem), *flow_options(model), w)
    edges = transfers(problem, a, model.charge == "edge")
    target = a[graph.consumer_ops[edges]]
    received = w.arrived_s[edges] - problem.costs.boundary_s[target]
    return Timeline(
        frozen(a, np.int32),
        frozen(w.start_s, np.float64),
        frozen(w.end_s, np.float64),
        frozen(graph.edge_tensor[edges], np.int32),
        frozen(a[graph.edge_producer[edges]], np.int32),
        frozen(target, np.int32),
        frozen(graph.consumer_ops[edges], np.int32),
        frozen(w.sent_s[edges], np.float64),
        frozen(np.maximum(received, w.sent_s[edges]), np.float64),
        _critical(problem, a, w.start_s, w.end_s, w.order),
        seconds,
    )


def _critical(
    problem: Problem, a: Ints, start: Floats, end: Floats, order: Ints
) -> tuple[int, ...]:
    """Walk back from the op that ends last, always to the wait that was over last."""
    if not problem.num_ops:
        return ()
    graph = problem.graph
    offsets, tensors = graph.inputs
    place = np.empty(problem.num_ops, dtype=np.int64)
    place[order] = np.arange(problem.num_ops)
    path = [int(order[np.argmax(end[order])])]
    while start[path[-1]] > 0:
        i = path[-1]
        before = order[: place[i]]
        same = before[(a[before] == a[i]) & (end[before] == start[i])]
        if len(same):
            # The stream that it took over was left at this very instant.
            path.append(int(same[-1]))
            continue
        producers = graph.tensor_producer[tensors[offsets[i] : offsets[i + 1]]]
        if not len(producers):
            break
        remote = producers[a[producers] != a[i]]
        candidates = remote if len(remote) else producers
        path.append(int(candidates[np.argmax(end[candidates])]))
    return tuple(reversed(path))


def _one_by_one(problem: Problem, a: Ints, seconds: float) -> Timeline:
    graph, costs = problem.graph, problem.costs
    edges = transfers(problem, a)
    edges = edges[np.argsort(graph.consumer_ops[edges], kind="stable")]
    tensor, reader = graph.edge_tensor[edges], graph.consumer_ops[edges]
    source, target = a[graph.edge_producer[edges]], a[reader]
    moved = costs.transfer_s(tensor, source, target)
    # What happens in order: the transfers of an op, each with its start-up, then the op.
    position = np.concatenate([reader, np.arange(problem.num_ops)])
    kind = np.concatenate([np.zeros(len(edges)), np.ones(problem.num_ops)])
    took = np.concatenate(
        [moved + costs.boundary_s[target], costs.seconds[np.arange(problem.num_ops), a]]
    )
    order = np.lexsort((kind, position))
    ends = np.empty(len(took))
    ends[order] = np.cumsum(took[order])
    starts = np.empty(len(took))
    starts[order] = np.concatenate(([0.0], ends[order][:-1]))[: len(took)]
    x = len(edges)
    return Timeline(
        frozen(a, np.int32),
        frozen(starts[x:], np.float64),
        frozen(ends[x:], np.float64),
        frozen(tensor, np.int32),
        frozen(source, np.int32),
        frozen(target, np.int32),
        frozen(reader, np.int32),
        frozen(starts[:x], np.float64),
        frozen(np.minimum(starts[:x] + moved, ends[:x]), np.float64),
        tuple(range(problem.num_ops)),
        seconds,
    )
