"""Public placement problems as Problems, each with its source's own objective.

Reads the re-encoded JSON files of two releases (kept outside this repository, with their licences):
msr-fiddle (Tarnawski et al., NeurIPS 2020, MIT) and Doppler (Yao et al., ICLR 2026, CC BY 4.0).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from situs.core import Dataflow, ExecutionModel, Limits, Offload, Pipeline, Problem
from situs.costs import MODELLED, CostTable, link_matrices
from situs.errors import ProblemError
from situs.graph import Graph, OpSpec, build_graph
from situs.hardware import Cluster, Device, Link

_DOPPLER_UNIT_S = 1e-10  # The source prints its latency divided by 1e10.
_BACKWARD = "Backward"


def load_instance(path: str | Path, contiguous: bool = True, calls: int = 1) -> Problem:
    """Read one public problem; its relative time unit is taken for seconds.

    Args:
        path: A JSON file with ``nodes``, ``node_fields`` and ``edges``.
        contiguous: msr-fiddle throughput: whether each device's ops must be convex (forward and
            backward parts separately).
        calls: msr-fiddle latency: calls per accelerator.

    Raises:
        ProblemError: If the file is of neither kind.
    """
    document = json.loads(Path(path).read_text(encoding="utf-8"))
    fields = document.get("node_fields")
    if fields == ["compute_time", "output_transfer_time"]:
        return _doppler(document)
    if not fields or "accelerator_time" not in fields:
        raise ProblemError(f"{path}: not a problem of msr-fiddle or doppler")
    return _msr_fiddle(document, contiguous, calls)


def _graph(
    document: dict[str, Any], memory: list[int], backward: list[bool], classes: list[int]
) -> tuple[Graph, list[int]]:
    """The graph, and the number in the file of each op in topological order."""
    count = len(document["nodes"])
    sources: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for u, v in document["edges"]:
        sources[v].append((u, 0))
    specs = [
        OpSpec(
            name=str(i),
            type=_BACKWARD if backward[i] else "Forward",
            sources=sources[i],
            output_shapes=[(0,)],
            output_dtypes=["u8"],
            output_bytes=[0],
            constants=[i],
            colocation=classes[i],
        )
        for i in range(count)
    ]
    graph = build_graph(document["name"], specs, memory)
    return graph, [int(name) for name in graph.op_names]


def _msr_fiddle(document: dict[str, Any], contiguous: bool, calls: int) -> Problem:
    columns = dict(zip(document["node_fields"], zip(*document["nodes"], strict=True), strict=True))
    backward = [bool(x) for x in columns["is_backward"]]
    graph, order = _graph(
        document,
        [int(x) for x in columns["memory_bytes"]],
        backward,
        [int(x) for x in columns["colocation_class"]],
    )
    model: ExecutionModel
    if document["objective"] == "latency":
        model = Offload(calls)
    elif document["cpus"] != 1:
        raise ProblemError(f"{document['name']}: throughput on one CPU only")
    else:
        parts = (_BACKWARD,) if any(backward) else ()
        model, calls = Pipeline("staged", contiguous, parts), 1
    accelerators = int(document["accelerators"]) * calls
    names = ["CPU", *(f"ACC{k}" for k in range(accelerators))]
    # One unit of transfer size is one unit of time between host and accelerator.
    links = [Link("CPU", name, bytes_per_s=1.0) for name in names[1:]]
    links += [Link(name, "CPU", bytes_per_s=1.0) for name in names[1:]]
    links += [
        Link(a, b, bytes_per_s=0.5, origin="through the host")
        for a in names[1:]
        for b in names[1:]
        if a != b
    ]
    on_accelerator = np.where(
        np.array(columns["supported_on_accelerator"], dtype=np.bool_),
        np.array(columns["accelerator_time"], dtype=np.float64),
        np.inf,
    )
    seconds = np.column_stack(
        [np.array(columns["cpu_time"], dtype=np.float64), *[on_accelerator] * accelerators]
    )[order]
    sizes = np.array(columns["output_transfer_time"], dtype=np.float64)[order]
    limit = np.full(len(names), float(document["accelerator_memory_bytes"]))
    limit[0] = np.inf
    return _problem(document, graph, names, links, seconds, sizes, model, Limits(limit))


def _doppler(document: dict[str, Any]) -> Problem:
    nodes = np.array(document["nodes"], dtype=np.float64) * _DOPPLER_UNIT_S
    count = len(nodes)
    graph, order = _graph(document, [0] * count, [False] * count, [-1] * count)
    names = [f"GPU{k}" for k in range(document["devices"])]
    links = [Link(a, b, bytes_per_s=1.0) for a in names for b in names if a != b]
    seconds = np.repeat(nodes[order, :1], len(names), axis=1)
    model = Dataflow("fifo", "unlimited", "edge")
    return _problem(document, graph, names, links, seconds, nodes[order, 1], model, Limits())


def _problem(
    document: dict[str, Any],
    graph: Graph,
    names: list[str],
    links: list[Link],
    seconds: np.ndarray,
    sizes: np.ndarray,
    model: ExecutionModel,
    limits: Limits,
) -> Problem:
    kinds = ["cpu" if name == "CPU" else "gpu" for name in names]
    devices = tuple(Device(name, kind) for name, kind in zip(names, kinds, strict=True))
    cluster = Cluster(devices, tuple(links), document["name"])
    latency, per_byte = link_matrices(cluster)
    zero = np.zeros(len(names))
    notes = (("source", document["source"]), ("licence", document["licence"]))
    costs = CostTable(seconds, sizes, latency, per_byte, zero, MODELLED, notes)
    return Problem(graph, cluster, costs, model, limits)
