"""The ``dataflow`` model as a SimPy programme, the usual way to write such a simulator."""

from __future__ import annotations

import heapq
from collections.abc import Generator

import numpy as np
import simpy

from situs.core import Problem
from situs.simulate.arrays import problem_arrays

# After SimPy's own events (0 urgent, 1 normal) of the same instant.
_LAST = 2


def simpy_latency(problem: Problem, assignment: np.ndarray) -> float:
    """Makespan with priority dispatch, shared links, and a transfer per tensor and destination."""
    p, graph = problem_arrays(problem), problem.graph
    env = simpy.Environment()
    a, seconds = assignment.tolist(), p.seconds
    links: dict[tuple[int, int], simpy.Resource] = {}
    queues: list[list[tuple[float, int]]] = [[] for _ in range(problem.num_devices)]
    free = [int(k) for k in p.streams]
    waiting = np.diff(p.input_offsets).tolist()
    readers: list[dict[int, list[int]]] = [{} for _ in range(graph.num_tensors)]
    for t, v in zip(graph.edge_tensor.tolist(), graph.consumer_ops.tolist(), strict=True):
        readers[t].setdefault(a[v], []).append(v)

    def wake(d: int) -> None:
        event = simpy.Event(env)
        event.callbacks.append(lambda _: dispatch(d))
        event._ok, event._value = True, None
        env.schedule(event, priority=_LAST)

    def dispatch(d: int) -> None:
        while queues[d] and free[d]:
            free[d] -= 1
            env.process(run(heapq.heappop(queues[d])[1], d))

    def arrive(t: int, d: int) -> None:
        for v in readers[t][d]:
            waiting[v] -= 1
            if waiting[v] == 0:
                heapq.heappush(queues[d], (-p.rank_s[v], v))
                wake(d)

    def send(t: int, source: int, target: int) -> Generator[simpy.Event, None, None]:
        link = links.setdefault((source, target), simpy.Resource(env, 1))
        with link.request() as turn:
            yield turn
            yield env.timeout(float(problem.costs.transfer_s(t, source, target)))
        yield env.timeout(float(p.boundary_s[target]))
        arrive(t, target)

    def run(i: int, d: int) -> Generator[simpy.Event, None, None]:
        yield env.timeout(float(seconds[i, d]))
        free[d] += 1
        wake(d)
        for t in range(p.op_tensors[i], p.op_tensors[i + 1]):
            for target in readers[t]:
                if target == d:
                    arrive(t, d)
                else:
                    env.process(send(t, d, target))

    for i in range(problem.num_ops):
        if waiting[i] == 0:
            heapq.heappush(queues[a[i]], (-p.rank_s[i], i))
            wake(a[i])
    env.run()
    return float(env.now)
