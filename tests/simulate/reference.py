"""Slow, obvious simulators that share no code with the kernels, to hold the kernels against."""

from __future__ import annotations

import math

import numpy as np

from situs.core import Dataflow, Pipeline, Problem, violation


def crossings(problem: Problem, a: np.ndarray) -> list[tuple[int, int, int]]:
    """Sorted (tensor, source, target) of every transfer, one per tensor and destination."""
    graph = problem.graph
    found = set()
    for e in range(graph.num_edges):
        source, target = int(a[graph.edge_producer[e]]), int(a[graph.consumer_ops[e]])
        if source != target:
            found.add((int(graph.edge_tensor[e]), source, target))
    return sorted(found)


def sequential(problem: Problem, a: np.ndarray) -> float:
    if violation(problem, a):
        return math.inf
    costs = problem.costs
    total = sum(float(costs.seconds[i, a[i]]) for i in range(problem.num_ops))
    for t, source, target in crossings(problem, a):
        total += float(costs.transfer_s(t, source, target) + costs.boundary_s[target])
    return total


def pipeline(problem: Problem, a: np.ndarray) -> float:
    model, costs = problem.model, problem.costs
    assert isinstance(model, Pipeline)
    if violation(problem, a) or (model.contiguous and not all_convex(problem, a)):
        return math.inf
    load: dict[object, float] = dict.fromkeys(range(problem.num_devices), 0.0)
    for i in range(problem.num_ops):
        load[int(a[i])] += float(costs.seconds[i, a[i]])
    leaving = set()
    for t, source, target in crossings(problem, a):
        if model.transfers == "link":
            load[target] += float(costs.boundary_s[target])
            load.setdefault((source, target), 0.0)
            load[source, target] += float(costs.transfer_s(t, source, target))
        else:
            if source != 0:
                leaving.add((t, source))
            if target != 0:
                load[target] += float(costs.boundary_s[target] + costs.transfer_s(t, 0, target))
    for t, source in leaving:
        load[source] += float(costs.transfer_s(t, source, 0))
    for d, device in enumerate(problem.cluster.devices):
        load[d] /= device.streams
    return max(load.values())


def all_convex(problem: Problem, a: np.ndarray) -> bool:
    graph, model = problem.graph, problem.model
    assert isinstance(model, Pipeline)
    successors: list[set[int]] = [set() for _ in range(problem.num_ops)]
    for e in range(graph.num_edges):
        successors[graph.edge_producer[e]].add(int(graph.consumer_ops[e]))
    own = [(int(a[i]), graph.op_types[i] in model.backward_types) for i in range(problem.num_ops)]
    for i in range(problem.num_ops):
        seen: set[int] = set()
        frontier = [j for j in successors[i] if own[j] != own[i]]
        while frontier:
            j = frontier.pop()
            if own[j] == own[i]:
                return False
            if j not in seen:
                seen.add(j)
                frontier += successors[j]
    return True


def dataflow(problem: Problem, a: np.ndarray, priority: np.ndarray) -> float:
    """Makespan; walks from instant to instant, scanning everything at each."""
    model, costs, graph = problem.model, problem.costs, problem.graph
    assert isinstance(model, Dataflow)
    if violation(problem, a):
        return math.inf
    n = problem.num_ops
    edges = [
        (int(graph.edge_tensor[e]), int(graph.edge_producer[e]), int(graph.consumer_ops[e]))
        for e in range(graph.num_edges)
    ]
    arrival: dict[tuple[int, int], float] = {}  # (tensor, reader) -> time
    free: dict[tuple[int, int], float] = {}
    end: dict[int, float] = {}
    done: set[int] = set()
    now = 0.0
    while len(done) < n:
        for i in sorted(i for i in end if i not in done and end[i] <= now):
            done.add(i)
            sent: dict[tuple[int, int], float] = {}
            for t, u, v in edges:
                if u != i:
                    continue
                source, target = int(a[u]), int(a[v])
                if source == target:
                    arrival[t, v] = now
                    continue
                key = (t, target if model.charge == "tensor" else n + v)
                if key not in sent:
                    begin = now
                    if model.links == "shared":
                        begin = max(now, free.get((source, target), 0.0))
                    finish = begin + float(costs.transfer_s(t, source, target))
                    free[source, target] = finish
                    sent[key] = finish + float(costs.boundary_s[target])
                arrival[t, v] = sent[key]
        if any(math.isinf(x) for x in arrival.values()):
            return math.inf
        ready = {}
        for i in range(n):
            reads = [(t, v) for t, _, v in edges if v == i]
            if i not in end and all(r in arrival and arrival[r] <= now for r in reads):
                ready[i] = max((arrival[r] for r in reads), default=0.0)
        for d, device in enumerate(problem.cluster.devices):
            running = sum(1 for i in end if i not in done and a[i] == d)
            first = -priority if model.dispatch == "priority" else ready
            queue = sorted((first[i], i) for i in ready if a[i] == d)
            for _, i in queue[: device.streams - running]:
                end[i] = now + float(costs.seconds[i, d])
        if any(end[i] == now for i in end if i not in done):
            continue
        future = [x for x in arrival.values() if x > now]
        future += [end[i] for i in end if i not in done]
        if len(done) < n:
            now = min(future)
    return max(end.values(), default=0.0)
