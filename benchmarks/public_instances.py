"""Readers of the public placement problems (msr-fiddle, DOPPLER) as Situs problems.

The data are not part of this repository; pass the folder that holds ``msr-fiddle/`` and
``doppler/``. Device 0 is the CPU (host memory) of the msr-fiddle problems.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from situs.core import Dataflow, ExecutionModel, Limits, Pipeline, Problem, Sequential
from situs.costs import MODELLED, CostTable
from situs.graph import OpSpec, build_graph
from situs.hardware import Cluster, Device, Link


def _cluster(names: list[str], title: str) -> Cluster:
    links = tuple(Link(a, b) for a in names for b in names if a != b)
    return Cluster(tuple(Device(name) for name in names), links, title)


def msr_fiddle(path: Path, model: ExecutionModel | None = None) -> tuple[Problem, np.ndarray]:
    """The problem, and ``bool[N]`` whether an op belongs to the backward pass."""
    data: dict[str, Any] = json.loads(path.read_text())
    nodes, k = data["nodes"], int(data["accelerators"])
    sources: list[list[tuple[int, int]]] = [[] for _ in nodes]
    for u, v in data["edges"]:
        sources[v].append((u, 0))
    specs = [
        OpSpec(
            name=f"{i}",
            type="Backward" if node[5] else "Forward",
            sources=sources[i],
            output_shapes=[()],
            output_dtypes=["f32"],
            output_bytes=[0],
            constants=[i],
            colocation=int(node[6]),
        )
        for i, node in enumerate(nodes)
    ]
    graph = build_graph(data["name"], specs, [int(node[2]) for node in nodes])
    rows = np.array([node[:6] for node in nodes], dtype=np.float64)[
        [int(name) for name in graph.op_names]
    ]
    accelerator = np.where(rows[:, 4] > 0, rows[:, 1], np.inf)
    hops = np.full((k + 1, k + 1), 2.0)
    hops[0, :] = hops[:, 0] = 1.0
    np.fill_diagonal(hops, 0.0)
    costs = CostTable(
        seconds=np.column_stack([rows[:, 0], *[accelerator] * k]),
        transfer_size=rows[:, 3],
        link_latency_s=np.zeros((k + 1, k + 1)),
        link_s_per_byte=hops,
        boundary_s=np.zeros(k + 1),
        source=MODELLED,
        notes=(("source", data["source"]),),
    )
    memory = np.array([np.inf] + [float(data["accelerator_memory_bytes"])] * k)
    cluster = _cluster(["CPU", *(f"ACC{i}" for i in range(k))], data["name"])
    chosen = model or (Pipeline("staged") if data["objective"] == "throughput" else Sequential())
    return Problem(graph, cluster, costs, chosen, Limits(memory)), rows[:, 5] > 0


def doppler(path: Path) -> Problem:
    """First come first served devices; every edge its own transfer; links never queue."""
    data: dict[str, Any] = json.loads(path.read_text())
    nodes, k = data["nodes"], int(data["devices"])
    sources: list[list[tuple[int, int]]] = [[] for _ in nodes]
    for u, v in data["edges"]:
        sources[v].append((u, 0))
    specs = [OpSpec(f"{i}", "Op", sources[i], [()], ["f32"], [0]) for i in range(len(nodes))]
    graph = build_graph(data["name"], specs)
    rows = np.array(nodes, dtype=np.float64)[[int(name) for name in graph.op_names]] / 1e10
    away = 1.0 - np.eye(k)
    costs = CostTable(
        np.repeat(rows[:, :1], k, axis=1), rows[:, 1], np.zeros((k, k)), away, np.zeros(k), MODELLED
    )
    model = Dataflow("fifo", "unlimited", "edge")
    return Problem(graph, _cluster([f"D{i}" for i in range(k)], data["name"]), costs, model)
