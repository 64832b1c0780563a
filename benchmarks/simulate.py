"""How fast is a placement judged? Ours, SimPy and C++ -O3, then batches on two cores, and moves.

All three simulate ``dataflow`` (priority dispatch, shared links, a transfer per tensor and
destination) on the same random graphs and must agree to 1e-9. Seconds are CPU time of the process,
so that other work on the machine disturbs them less; medians of interleaved rounds. The two-core
ratio is wall time. Prints tables and writes JSON.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from dataflow_rivals.simpy_dataflow import simpy_latency
from situs.core import Dataflow, ExecutionModel, Limits, Problem, Sequential
from situs.costs import MODELLED, CostTable
from situs.graph import OpSpec, build_graph
from situs.profiling.environment import environment
from situs.simulate import Evaluator, evaluate
from situs.simulate.arrays import problem_arrays
from situs.testing.strategies import clusters

HERE = Path(__file__).parent
OPS, DEVICES, ROUNDS = (200, 1_000, 10_000, 100_000), (2, 4, 8), 5


def random_problem(n: int, devices: int, model: ExecutionModel) -> Problem:
    """A graph like a network's: each op reads one to three of the 16 before it."""
    rng = np.random.default_rng(n + devices)
    ops = []
    for i in range(n):
        reads = np.unique(rng.integers(max(0, i - 16), i, rng.integers(1, 4))) if i else []
        sources = [(int(j), 0) for j in reads]
        ops.append(OpSpec(f"op{i}", "Op", sources, [(1,)], ["u8"], [1]))
    graph = build_graph(f"random{n}", ops)
    free = 1.0 - np.eye(devices)
    costs = CostTable(
        seconds=rng.uniform(1e-5, 1e-3, (n, devices)),
        transfer_size=rng.uniform(1e3, 1e6, n),
        link_latency_s=free * 1e-5,
        link_s_per_byte=free * 1e-10,
        boundary_s=np.full(devices, 1e-5),
        source=MODELLED,
    )
    limits = Limits(memory_bytes=np.full(devices, np.inf))
    return Problem(graph, clusters(devices), costs, model, limits)


def compiled(folder: Path) -> ctypes.CDLL:
    """Build the C++ rival."""
    library = folder / "dataflow.so"
    flags = ["-O3", "-march=native", "-shared", "-fPIC"]
    source = HERE / "dataflow_rivals" / "dataflow.cpp"
    subprocess.run(["g++", *flags, "-o", str(library), str(source)], check=True)
    return ctypes.CDLL(str(library))


def cpp_latencies(library: ctypes.CDLL, problem: Problem, batch: np.ndarray) -> np.ndarray:
    p = problem_arrays(problem)
    out = np.empty(len(batch))

    def pointer(array: np.ndarray) -> ctypes.c_void_p:
        return ctypes.c_void_p(array.ctypes.data)

    inputs = (
        *(p.seconds, p.transfer_size, p.link_latency_s, p.link_s_per_byte, p.boundary_s),
        *(p.streams, p.op_tensors, p.consumer_offsets, p.consumers, p.input_offsets, p.rank_s),
        batch,
    )
    library.dataflow_batch(
        problem.num_ops,
        problem.num_devices,
        *[pointer(array) for array in inputs],
        len(batch),
        pointer(out),
    )
    return out


def seconds(call: Callable[[], object], clock: Callable[[], float]) -> float:
    start = clock()
    call()
    return clock() - start


def rivals(library: ctypes.CDLL, n: int, devices: int) -> dict[str, float]:
    """Median CPU seconds per placement of all three."""
    problem = random_problem(n, devices, Dataflow())
    rng = np.random.default_rng(0)
    size = max(3, 1_000_000 // n)
    batch = rng.integers(0, devices, (size, n), dtype=np.int32)
    ours = evaluate(problem, batch, threads=1)
    assert np.allclose(cpp_latencies(library, problem, batch), ours, rtol=1e-9, atol=0)
    alone = max(1, 2_000 // n)
    for k in range(alone):
        assert math.isclose(simpy_latency(problem, batch[k]), ours[k], rel_tol=1e-9)
    times: dict[str, list[float]] = {"situs": [], "cpp": [], "simpy": []}
    for k in range(ROUNDS):
        clock = time.process_time
        times["situs"].append(seconds(lambda: evaluate(problem, batch, 1), clock) / size)
        times["cpp"].append(seconds(lambda: cpp_latencies(library, problem, batch), clock) / size)
        # SimPy takes seconds a placement on the largest graphs; two rounds tell enough.
        if n <= 1_000 or k < 2:
            one = batch[:alone]
            took = seconds(lambda: [simpy_latency(problem, a) for a in one], clock)  # noqa: B023
            times["simpy"].append(took / alone)
    return {name: statistics.median(values) for name, values in times.items()}


def moves(model: ExecutionModel, n: int = 1_000, devices: int = 4) -> dict[str, float]:
    """CPU seconds per evaluation of one placement from scratch, and per move and undo."""
    problem = random_problem(n, devices, model)
    rng = np.random.default_rng(1)
    start = rng.integers(0, devices, n, dtype=np.int32)
    evaluator = Evaluator(problem, start)
    steps = list(zip(rng.integers(0, n, 500), rng.integers(0, devices, 500), strict=True))
    batch = np.repeat(start[None], 500, axis=0)

    def move() -> None:
        for op, device in steps:
            evaluator.move(int(op), int(device))

    def move_and_undo() -> None:
        for op, device in steps:
            evaluator.move(int(op), int(device))
            evaluator.undo()

    def one_by_one() -> None:
        for row in batch:
            evaluate(problem, row[None])

    calls = {
        "batched": lambda: evaluate(problem, batch, 1),
        "one by one": one_by_one,
        "move": move,
        "move and undo": move_and_undo,
    }
    for call in calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            times[name].append(seconds(call, time.process_time) / 500)
    return {name: statistics.median(values) for name, values in times.items()}


def two_cores() -> float:
    """Wall time on one core over wall time on two."""
    problem = random_problem(1_000, 4, Dataflow())
    batch = np.random.default_rng(0).integers(0, 4, (4_000, 1_000), dtype=np.int32)
    ratios = []
    for _ in range(ROUNDS):
        one = seconds(lambda: evaluate(problem, batch, 1), time.perf_counter)
        ratios.append(one / seconds(lambda: evaluate(problem, batch, 2), time.perf_counter))
    return statistics.median(ratios)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "simulate.json")
    parser.add_argument("--ops", type=int, nargs="+", default=list(OPS))
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        library = compiled(Path(folder))
        print("dataflow, placements per second (CPU time, one core)")
        print(f"{'ops':>7} {'devices':>7} {'situs':>10} {'C++':>10} {'SimPy':>8} "
              f"{'/SimPy':>8} {'/C++':>6} {'ns/(n log2 n)':>14}")  # fmt: skip
        for n in arguments.ops:
            for devices in DEVICES:
                took = rivals(library, n, devices)
                row = {"ops": n, "devices": devices, **{f"{k}_s": v for k, v in took.items()}}
                row["over_simpy"] = took["simpy"] / took["situs"]
                row["over_cpp"] = took["cpp"] / took["situs"]
                row["ns_per_n_log_n"] = took["situs"] / (n * math.log2(n)) * 1e9
                rows.append(row)
                print(f"{n:7} {devices:7} {1 / took['situs']:10.1f} {1 / took['cpp']:10.1f} "
                      f"{1 / took['simpy']:8.2f} {row['over_simpy']:8.0f} {row['over_cpp']:6.2f} "
                      f"{row['ns_per_n_log_n']:14.2f}", flush=True)  # fmt: skip
    table = {}
    for model in (Sequential(), Dataflow()):
        table[type(model).__name__.lower()] = took = moves(model)
        print(f"{type(model).__name__}, 1,000 ops, 4 devices, µs: "
              + ", ".join(f"{name} {value * 1e6:.1f}" for name, value in took.items()))  # fmt: skip
    ratio = two_cores()
    load = os.getloadavg()[0]
    print(f"batch on two threads: {ratio:.2f} x one (load average {load:.1f})")
    arguments.out.parent.mkdir(exist_ok=True)
    document = {
        "environment": dict(environment()),
        "load_average": load,
        "rivals": rows,
        "moves_s": table,
        "two_threads_over_one": ratio,
    }
    arguments.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
