"""What an offloaded placement takes, op by op, without folding."""

from __future__ import annotations

import numpy as np

from situs.core import Problem
from situs.graph.arrays import Ints
from situs.placers.exact.calls import OffloadArrays


def op_arrays(problem: Problem) -> OffloadArrays:
    """The problem op by op, without folding: what an answer is checked against."""
    graph, costs = problem.graph, problem.costs
    offsets, inputs = graph.inputs
    spans = graph.consumer_offsets
    return OffloadArrays(
        np.zeros(problem.num_ops),
        costs.seconds[:, 0],
        costs.seconds[:, 1],
        graph.op_constant_bytes.astype(np.float64),
        float(problem.memory_bytes[1]),
        tuple(
            tuple(graph.tensor_producer[inputs[offsets[i] : offsets[i + 1]]].tolist())
            for i in range(problem.num_ops)
        ),
        tuple(
            (
                int(graph.tensor_producer[t]),
                tuple(graph.consumer_ops[spans[t] : spans[t + 1]].tolist()),
                float(costs.transfer_s(t, 1, 0)),
                float(costs.transfer_s(t, 0, 1)),
            )
            for t in range(graph.num_tensors)
        ),
    )


def offload_seconds(data: OffloadArrays, call: Ints) -> float:
    """Latency of nodes in calls, s; ``inf`` if calls are too large or wait for each other."""
    number = int(call.max(initial=0))
    if (np.bincount(call, data.node_bytes)[1:] > data.limit_bytes * (1 + 1e-12)).any():
        return np.inf
    length = np.zeros(number + 1)
    np.add.at(length, call, np.where(call > 0, data.accelerator_s, 0.0))
    for producer, consumers, out_s, in_s in data.tensors:
        home = int(call[producer]) if producer >= 0 else 0
        targets = {int(call[q]) for q in consumers} - {home}
        if targets and home:
            length[home] += out_s
        for c in targets - {0}:
            length[c] += in_s
    n = len(call)
    # A call is one task; so is each node on the CPU.
    task = np.where(call > 0, call - 1, number + np.arange(n))
    waits: list[set[int]] = [set() for _ in range(number + n)]
    for v in range(n):
        waits[task[v]] |= {int(task[p]) for p in data.predecessors[v]} - {int(task[v])}
    follow: list[list[int]] = [[] for _ in waits]
    open_count = [len(w) for w in waits]
    for t, before in enumerate(waits):
        for b in before:
            follow[b].append(t)
    end = np.zeros(len(waits))
    np.maximum.at(end, task, data.release_s)
    ready = [t for t, k in enumerate(open_count) if k == 0]
    done = 0
    while ready:
        t = ready.pop()
        done += 1
        if t < number:
            end[t] += length[t + 1]
        elif call[t - number] == 0:
            end[t] += data.cpu_s[t - number]
        for f in follow[t]:
            end[f] = max(end[f], end[t])
            open_count[f] -= 1
            if open_count[f] == 0:
                ready.append(f)
    return float(end.max(initial=0.0)) if done == len(waits) else np.inf
