"""A synthetic 100,000-op transformer on 8 devices: HEFT, other list schedulers, and search.

Simulated ``dataflow`` with unequal devices. Prints a table and writes JSON with peak memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np

from situs.core import Dataflow, Limits, MaxSeconds, Problem
from situs.costs import MODELLED, CostTable
from situs.graph import Graph
from situs.hardware import Cluster, Device, Link
from situs.placers import get_placer
from situs.profiling.environment import environment
from situs.simulate import SimulatedObjective, bound

HEADS = 16


def transformer(ops: int, devices: int, seed: int) -> Problem:
    """Blocks of 16 heads (project, score, soften, mix), a merge, and a two-op feed-forward."""
    rng = np.random.default_rng(seed)
    edges: list[tuple[int, int]] = []
    flop: list[float] = []

    def op(sources: list[int], work: float) -> int:
        flop.append(work)
        edges.extend((s, len(flop) - 1) for s in sources)
        return len(flop) - 1

    residual = op([], 0.1)
    while len(flop) + 5 * HEADS + 5 <= ops:
        norm = op([residual], 0.2)
        heads = []
        for _ in range(HEADS):
            query, key, value = (op([norm], 1.0) for _ in range(3))
            score = op([query, key], 1.0)
            heads.append(op([score, value], 1.0))
        merged = op(heads, 4.0)
        added = op([merged, residual], 0.1)
        hidden = op([added], 16.0)
        residual = op([hidden, added], 16.0)
    while len(flop) < ops:
        residual = op([residual], 0.1)
    pairs = np.array(sorted(edges), dtype=np.int32)
    n = len(flop)
    offsets = np.concatenate(([0], np.cumsum(np.bincount(pairs[:, 0], minlength=n))))
    graph = Graph(
        name=f"transformer-{n}",
        op_names=tuple(str(i) for i in range(n)),
        op_types=("MatMul",) * n,
        tensor_producer=np.arange(n, dtype=np.int32),
        tensor_port=np.zeros(n, dtype=np.int32),
        tensor_dtype=("f32",) * n,
        tensor_shape=((1,),) * n,
        tensor_bytes=np.full(n, 65536),
        consumer_offsets=offsets.astype(np.int32),
        consumer_ops=pairs[:, 1],
        constant_bytes=np.zeros(0, dtype=np.int64),
        reader_offsets=np.zeros(1, dtype=np.int32),
        reader_ops=np.zeros(0, dtype=np.int32),
        op_flop=np.array(flop),
        colocation=np.full(n, -1, dtype=np.int32),
        is_input=np.zeros(n, dtype=np.bool_),
        is_output=np.zeros(n, dtype=np.bool_),
    )
    names = [f"D{i}" for i in range(devices)]
    links = tuple(Link(a, b) for a in names for b in names if a != b)
    cluster = Cluster(tuple(Device(name) for name in names), links, "eight unequal devices")
    away = 1.0 - np.eye(devices)
    speed = rng.uniform(1.0, 2.0, devices)
    costs = CostTable(
        seconds=1e-4 * np.array(flop)[:, None] * rng.uniform(0.8, 1.2, (n, 1)) / speed,
        transfer_size=np.full(n, 65536.0),
        link_latency_s=1e-5 * away,
        link_s_per_byte=1e-10 * away,
        boundary_s=np.zeros(devices),
        source=MODELLED,
    )
    return Problem(graph, cluster, costs, Dataflow(), Limits(np.full(devices, np.inf)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", type=int, default=100_000)
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--budget", type=float, default=60.0)
    options = parser.parse_args()
    small = transformer(2_000, options.devices, 0)
    problem = transformer(options.ops, options.devices, 0)
    low_s = bound(problem).seconds
    rows = []
    print(f"{problem.graph.name}, {options.devices} devices; bound {low_s:.4f} s (simulated)")
    for spec in ("heft", "peft", "cpop", "etf", "m-topo", "search"):
        placer = get_placer(spec)
        placer(small, SimulatedObjective(small), MaxSeconds(3), np.random.default_rng(0))
        begin = time.perf_counter()
        result = placer(
            problem,
            SimulatedObjective(problem),
            MaxSeconds(options.budget),
            np.random.default_rng(0),
        )
        took_s = time.perf_counter() - begin
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{spec:<18}{result.seconds:>10.4f} s{took_s:>8.1f} s{peak:>7.2f} GiB", flush=True)
        rows.append({"placer": spec, "value_s": result.seconds, "took_s": took_s, "peak_gib": peak})
    path = Path(__file__).parent / "results" / "scale.json"
    body = {"ops": options.ops, "bound_s": low_s, "rows": rows, "environment": environment()}
    path.write_text(json.dumps(body, indent=1) + "\n")


if __name__ == "__main__":
    main()
