"""What overlap within one request is worth: the parallel engine against HETERO and one device.

Models: two towers and a wide branch, built here, and light_inception_v2 with random weights.
Devices: the CPU and a virtual second one, one thread each; beside them, for honesty, the plain CPU
with both threads. Situs places each model itself; everything is then measured interleaved. Also
the cost of a boundary in both engines, and of the parallel engine with everything on one device.
Prints a table and writes JSON.
"""

from __future__ import annotations

import argparse
import json
import os
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as ops

from situs import api
from situs.core import Flag, Measurement, Placement
from situs.executors import Realised
from situs.executors.openvino_hetero import HeteroExecutor
from situs.executors.openvino_parallel import ParallelExecutor
from situs.executors.runtime import with_properties
from situs.graph.arrays import Ints
from situs.hardware import Cluster
from situs.importers import Imported
from situs.profiling.environment import environment
from situs.profiling.inputs import random_inputs
from situs.profiling.measure import MeasurePlan, compare, measure_interleaved
from situs.profiling.trial import Candidate
from situs.testing.models import light_models
from situs.testing.weights import randomize_weights

PLAN = MeasurePlan(min_rounds=40, max_rounds=80, precision=0.01, budget_s=60.0)


def _block(x: Any, channels: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    width = int(x.get_output_shape(0)[1])
    weights = rng.standard_normal((channels, width, 3, 3), dtype=np.float32)
    weights *= np.float32((2 / (9 * width)) ** 0.5)
    y = ops.convolution(x, ops.constant(weights), [1, 1], [1, 1], [1, 1], [1, 1])
    return ops.relu(y)


def branches(count: int, depth: int, channels: int = 48, side: int = 48) -> ov.Model:
    """``count`` chains of convolutions between one input and a concatenation."""
    x = ops.parameter([1, 16, side, side], np.float32, name="x")
    ends = []
    for b in range(count):
        y: Any = x
        for d in range(depth):
            y = _block(y, channels, 100 * b + d)
        ends.append(y)
    joined = ops.concat(ends, 1)
    pooled = ops.reduce_mean(joined, ops.constant(np.array([2, 3])), False)
    return ov.Model([ops.result(pooled)], [x], f"branches{count}x{depth}")


class OneCore:
    """A HETERO placement in a process of its own that may use one processor core only.

    HETERO's sub-models on the CPU take all cores, whatever number of threads their properties say
    and read back; held to one core, its sub-graphs run as on the one-core devices that are meant.
    """

    realised: Realised

    def __init__(self, model: str, wish: Ints, seed: int) -> None:
        context = get_context("spawn")
        here, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(there, model, wish, seed), daemon=True)
        self._process.start()
        self._pipe = here
        self.realised = here.recv()

    def bind(self, inputs: Any) -> None:
        """The process has drawn the same inputs from the same seed."""

    def run(self) -> None:
        """Run once, there."""
        self._pipe.send(True)
        self._pipe.recv()


def _serve(pipe: Any, model: str, wish: Ints, seed: int) -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    imported = api.load(models()[model])
    cluster = api.devices(["CPU:threads=1"], ["CPU_B:threads=1"])
    placement = Placement(imported.graph.fingerprint, cluster.names, wish)
    runnable = HeteroExecutor(cluster).compile(imported, placement)
    runnable.bind(random_inputs(imported.model, np.random.default_rng(seed)))
    pipe.send(runnable.realised)
    while pipe.recv():
        runnable.run()
        pipe.send(True)


def models() -> dict[str, ov.Model]:
    """The models of the benchmark."""
    inception = ov.Core().read_model(light_models()["light_inception_v2"])
    return {
        "chain": branches(1, 12, channels=16, side=32),
        "two towers": branches(2, 6),
        "wide branch": branches(6, 2),
        "light_inception_v2": randomize_weights(inception, seed=1),
    }


def candidates_of(problem: Any, engine: str, placers: list[str], seed: int) -> list[Candidate]:
    meant = api.for_engine(problem, engine)
    _, found = api.find_candidates(meant, placers, seed, Flag(), engine)
    return [c for c in found if c.placement.uniform_device is None]


def run_model(name: str, model: ov.Model, placers: list[str], seed: int) -> dict[str, Any]:
    imported: Imported = api.load(model)
    cluster = api.devices(["CPU:threads=1"], ["CPU_B:threads=1"])
    problem = api.measure_problem(imported, cluster, seed)
    parallel, hetero = ParallelExecutor(cluster, problem.costs), HeteroExecutor(cluster)
    graph = imported.graph

    def whole(device: int) -> Placement:
        ones = np.full(graph.num_ops, device, dtype=np.int32)
        return Placement(graph.fingerprint, cluster.names, ones)

    both = api.devices(["CPU:threads=2"])
    alone2 = Placement(graph.fingerprint, both.names, np.zeros(graph.num_ops, dtype=np.int32))
    rows: list[tuple[str, Any, float | None]] = [
        ("CPU, 1 thread", hetero.compile(imported, whole(0)), None),
        ("CPU_B (virtual), 1 thread", hetero.compile(imported, whole(1)), None),
        ("CPU, 2 threads, plain", HeteroExecutor(both).compile(imported, alone2), None),
        ("parallel engine, all on CPU", parallel.compile(imported, whole(0)), None),
    ]
    proposals = [
        *candidates_of(problem, "hetero", placers, seed),
        *candidates_of(problem, "parallel", placers, seed),
    ]
    for c in proposals:
        engine = parallel if c.executor == "parallel" else hetero
        runnable = engine.compile(imported, c.placement)
        cores = "hetero, all cores" if c.executor == "hetero" else "parallel"
        rows.append((f"{cores}: {c.name}", runnable, c.predicted_s))
        held = OneCore(name, c.placement.assignment, seed)
        label = "hetero" if c.executor == "hetero" else "hetero, parallel's placement"
        rows.append((f"one core, {label}: {c.name}", held, None))
    inputs = random_inputs(imported.model, np.random.default_rng(seed))
    for _, runnable, _ in rows:
        runnable.bind(inputs)
    measured = measure_interleaved([r for _, r, _ in rows], np.random.default_rng(seed), PLAN)
    single = min(measured[:2], key=lambda m: m.seconds or np.inf)
    table = []
    for (label, runnable, predicted_s), m in zip(rows, measured, strict=True):
        ratio = compare(m, single)
        table.append(
            {
                "candidate": label,
                "predicted_s": predicted_s,
                "median_s": m.seconds,
                "interval_s": m.interval_s(),
                "ratio_to_best_single": [ratio.ratio, ratio.low, ratio.high] if ratio else None,
                "subgraphs": runnable.realised.subgraphs,
                "cores": m.cores,
            }
        )
    print(f"\n{name}")
    for row in table:
        r = row["ratio_to_best_single"]
        predicted = f"{row['predicted_s'] * 1e3:.2f}" if row["predicted_s"] else "-"
        print(
            f"  {row['candidate'][:60]:<62}{row['subgraphs']:>4} {predicted:>9} "
            f"{row['median_s'] * 1e3:>9.3f} ms {row['cores']:>4.1f} cores "
            f"{r[0]:.3f} ({r[1]:.3f} to {r[2]:.3f})",
            flush=True,
        )
    best_parallel = _best(table, "parallel: ")
    best_hetero = _best(table, "one core, hetero")
    best_single = single.seconds or np.inf
    speedup = min(best_single, best_hetero) / best_parallel
    print(f"  parallel is {speedup:.2f}x faster than the best of HETERO and one such device")
    for _, runnable, _ in rows:
        if isinstance(runnable, OneCore):
            runnable._process.terminate()
    return {"model": name, "rows": table, "speedup": speedup}


def _best(table: list[dict[str, Any]], prefix: str) -> float:
    values = [r["median_s"] for r in table if r["candidate"].startswith(prefix)]
    return min(values, default=float("inf"))


def boundary_cost(seed: int) -> dict[str, Any]:
    """A chain cut into 12 pieces, in both engines: seconds per boundary."""
    imported = api.load(models()["chain"])
    cluster = api.devices(["CPU:threads=1"], ["CPU_B:threads=1"])
    graph = imported.graph
    order = np.cumsum(np.array(graph.op_types) == "Convolution")
    wish = np.where(order > 0, (order - 1) % 2, 0).astype(np.int32)
    first = np.unique(graph.units, return_index=True)[1]
    cut = Placement(graph.fingerprint, cluster.names, wish[first][graph.units])
    whole = Placement(graph.fingerprint, cluster.names, np.zeros(graph.num_ops, dtype=np.int32))
    inputs = random_inputs(imported.model, np.random.default_rng(seed))
    parallel = ParallelExecutor(cluster)
    unpinned = Cluster(
        tuple(with_properties(d, {"ENABLE_CPU_PINNING": "NO"}) for d in cluster.devices)
    )
    # Each engine against one device with that engine's own pinning.
    runnables: list[Any] = [
        OneCore("chain", whole.assignment, seed),
        OneCore("chain", cut.assignment, seed),
        HeteroExecutor(unpinned).compile(imported, whole),
        parallel.compile(imported, cut),
    ]
    for r in runnables:
        r.bind(inputs)
    plan = MeasurePlan(min_rounds=200, max_rounds=200, budget_s=60.0)
    pinned, by_hetero, free, by_parallel = measure_interleaved(
        runnables, np.random.default_rng(seed), plan
    )

    def per_boundary(m: Measurement, alone: Measurement) -> float:
        return float(np.median(m.samples_s - alone.samples_s)) / 11

    hetero_s, parallel_s = per_boundary(by_hetero, pinned), per_boundary(by_parallel, free)
    print(
        f"boundary: HETERO {hetero_s * 1e6:.1f} us, parallel {parallel_s * 1e6:.1f} us "
        f"({parallel_s / hetero_s:.2f}x); sub-graphs {runnables[1].realised.subgraphs} and "
        f"{runnables[3].realised.subgraphs}"
    )
    return {"hetero_s": hetero_s, "parallel_s": parallel_s, "ratio": parallel_s / hetero_s}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--placers", nargs="*", default=["greedy", "heft", "local-search"])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    boundary = boundary_cost(options.seed)
    rows = [
        run_model(name, m, options.placers, options.seed)
        for name, m in models().items()
        if name != "chain"
    ]
    path = Path(__file__).parent / "results" / "overlap.json"
    document = {"boundary": boundary, "models": rows, "environment": environment()}
    path.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
