"""Placements per second: our kernels, SimPy, and plain C++, side by side; moves; two cores.

Writes ``benchmarks/results/simulate.json``. Ratios are medians of interleaved rounds.
"""

from __future__ import annotations

import argparse
import ctypes
import heapq
import json
import math
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import simpy

from situs.core import Dataflow, ExecutionModel, Limits, Problem, Sequential
from situs.costs import MODELLED, CostTable
from situs.graph import OpSpec, build_graph
from situs.hardware import Cluster, Device, Link
from situs.simulate import Evaluator, evaluate
from situs.simulate.ranks import dispatch_keys
from situs.simulate.tables import tables

HERE = Path(__file__).parent


def random_problem(n: int, d: int, model: ExecutionModel, seed: int = 0) -> Problem:
    """A network-like graph: every op reads one or two of the twenty ops before it."""
    rng = np.random.default_rng(seed)
    specs = []
    for i in range(n):
        count = min(i, 1 + int(rng.random() < 0.3))
        sources = sorted({int(s) for s in i - 1 - rng.integers(0, min(i, 20), count)}) if i else []
        specs.append(OpSpec(str(i), "Op", [(s, 0) for s in sources], [(1,)], ["f32"], [4]))
    graph = build_graph(f"random{n}", specs)
    names = [f"D{k}" for k in range(d)]
    cluster = Cluster(
        tuple(Device(x) for x in names), tuple(Link(a, b) for a in names for b in names if a != b)
    )
    off = 1.0 - np.eye(d)
    costs = CostTable(
        rng.uniform(1e-5, 1e-3, (n, d)),
        rng.uniform(1e3, 1e6, n),
        1e-5 * off,
        rng.uniform(1e-10, 5e-10, (d, d)) * off,
        np.full(d, 1e-5),
        MODELLED,
    )
    return Problem(graph, cluster, costs, model, Limits(memory_bytes=np.full(d, np.inf)))


def simpy_makespan(problem: Problem, a: np.ndarray) -> float:
    """The same dataflow semantics with SimPy processes: a worker a device, a resource a link."""
    graph, costs = problem.graph, problem.costs
    env = simpy.Environment()
    d = problem.num_devices
    keys = dispatch_keys(problem).tolist()
    missing = np.bincount(graph.consumer_ops, minlength=problem.num_ops).tolist()
    device = a.tolist()
    queues: list[list[tuple[float, int]]] = [[] for _ in range(d)]
    wakes = [env.event() for _ in range(d)]
    links = {(s, t): simpy.Resource(env, 1) for s in range(d) for t in range(d) if s != t}
    offsets, consumers = graph.consumer_offsets.tolist(), graph.consumer_ops.tolist()
    op_tensors = graph.op_tensors.tolist()

    def arrive(c: int) -> None:
        missing[c] -= 1
        if missing[c] <= 0:
            k = device[c]
            heapq.heappush(queues[k], (keys[c], c))
            if not wakes[k].triggered:
                wakes[k].succeed()

    def transfer(t: int, source: int, target: int, readers: list[int]) -> Any:
        with links[source, target].request() as turn:
            yield turn
            yield env.timeout(float(costs.transfer_s(t, source, target)))
        yield env.timeout(float(costs.boundary_s[target]))
        for c in readers:
            arrive(c)

    def worker(k: int) -> Any:
        while True:
            if not queues[k]:
                wakes[k] = env.event()
                yield wakes[k]
                yield env.timeout(0)
            _, i = heapq.heappop(queues[k])
            yield env.timeout(float(costs.seconds[i, k]))
            for t in range(op_tensors[i], op_tensors[i + 1]):
                groups: dict[int, list[int]] = {}
                for c in consumers[offsets[t] : offsets[t + 1]]:
                    groups.setdefault(device[c], []).append(c)
                for target, readers in groups.items():
                    if target == k:
                        for c in readers:
                            arrive(c)
                    else:
                        env.process(transfer(t, k, target, readers))

    for k in range(d):
        env.process(worker(k))

    def begin() -> Any:
        yield env.timeout(0)
        for i, count in enumerate(list(missing)):
            if count == 0:
                arrive(i)

    env.process(begin())
    env.run()
    return float(env.now)


def build_cpp(folder: str) -> Callable[[Problem, np.ndarray], np.ndarray]:
    library = Path(folder) / "simulate.so"
    source = HERE / "simulate.cpp"
    command = ["g++", "-O3", "-march=native", "-shared", "-fPIC", str(source), "-o", str(library)]
    subprocess.run(command, check=True)
    function = ctypes.CDLL(str(library)).simulate
    pointer = ctypes.c_void_p
    function.argtypes = [ctypes.c_int64] * 3 + [pointer] * 12

    def run(problem: Problem, rows: np.ndarray) -> np.ndarray:
        t = tables(problem)
        out = np.empty(len(rows))
        arrays = (rows, t.seconds, t.op_tensors, t.consumer_offsets, t.consumers, t.num_inputs)
        arrays += (t.size, t.latency, t.per_byte, t.boundary, dispatch_keys(problem), out)
        shape = (len(rows), problem.num_ops, problem.num_devices)
        function(*shape, *(x.ctypes.data for x in arrays))
        return out

    return run


def took_s(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def compare(n: int, d: int, cpp: Callable[[Problem, np.ndarray], np.ndarray], rounds: int) -> dict:
    """One row of the table: seconds per placement of the three, and ratios by round."""
    problem = random_problem(n, d, Dataflow())
    rng = np.random.default_rng(1)
    batch = max(2, 400_000 // n)
    rows = rng.integers(0, d, (batch, n)).astype(np.int32)
    ours = evaluate(problem, rows, threads=1)
    theirs = cpp(problem, rows)
    assert np.allclose(ours, theirs, rtol=1e-9), "the C++ version simulates something else"
    slow = simpy_makespan(problem, rows[0])
    assert math.isclose(slow, ours[0], rel_tol=1e-9), "the SimPy version simulates something else"
    kernel, plain = [], []
    for _ in range(rounds):
        kernel.append(took_s(lambda: evaluate(problem, rows, threads=1)) / batch)
        plain.append(took_s(lambda: cpp(problem, rows)) / batch)
    repeats = 3 if n <= 10_000 else 1
    python = [took_s(lambda: simpy_makespan(problem, rows[0])) for _ in range(repeats)]
    us = statistics.median(kernel)
    return {
        "ops": n,
        "devices": d,
        "kernel_per_s": 1 / us,
        "cpp_per_s": 1 / statistics.median(plain),
        "simpy_per_s": 1 / statistics.median(python),
        "kernel_vs_cpp": statistics.median(p / k for k, p in zip(kernel, plain, strict=True)),
        "kernel_vs_simpy": statistics.median(python) / us,
        "ns_per_n_log2_n": us * 1e9 / (n * math.log2(n)),
    }


def moves(n: int, d: int, model: ExecutionModel, count: int, rounds: int) -> dict:
    """Seconds per random move against re-evaluation, one by one and inside a batch."""
    problem = random_problem(n, d, model)
    rng = np.random.default_rng(2)
    start = rng.integers(0, d, n).astype(np.int32)
    evaluator = Evaluator(problem, start)
    ops, to = rng.integers(0, n, count).tolist(), rng.integers(0, d, count).tolist()
    units, devices = rng.integers(0, n, 20_000), rng.integers(0, d, 20_000)
    rows = np.repeat(start[None], count, axis=0)

    def walk() -> None:
        for i, k in zip(ops, to, strict=True):
            evaluator.move(i, k)
            evaluator.undo()

    def again() -> None:
        for k in range(count):
            evaluate(problem, rows[k : k + 1])

    scans = isinstance(model, Sequential)
    walk(), again(), evaluator.scan(units, devices) if scans else None
    samples: dict[str, list[float]] = {"move": [], "call": [], "batch": [], "scan": []}
    for _ in range(rounds):
        samples["move"].append(took_s(walk) / count / 2)  # A move and its undo are two moves.
        samples["call"].append(took_s(again) / count)
        samples["batch"].append(took_s(lambda: evaluate(problem, rows, threads=1)) / count)
        if scans:
            samples["scan"].append(took_s(lambda: evaluator.scan(units, devices)) / len(units))
    median = {key: statistics.median(values) for key, values in samples.items() if values}
    row = {"ops": n, "devices": d, "model": type(model).__name__.lower()}
    row |= {f"{key}_us": value * 1e6 for key, value in median.items()}
    row["call_over_move"] = median["call"] / median["move"]
    row["batch_over_move"] = median["batch"] / median["move"]
    if scans:
        row["batch_over_scan"] = median["batch"] / median["scan"]
        row["call_over_scan"] = median["call"] / median["scan"]
    return row


def cores(n: int, rounds: int) -> dict:
    problem = random_problem(n, 4, Dataflow())
    rows = np.random.default_rng(3).integers(0, 4, (1_000_000 // n, n)).astype(np.int32)
    evaluate(problem, rows, threads=2)
    one, two = [], []
    for _ in range(rounds):
        one.append(took_s(lambda: evaluate(problem, rows, threads=1)))
        two.append(took_s(lambda: evaluate(problem, rows, threads=2)))
    ratios = [a / b for a, b in zip(one, two, strict=True)]
    return {
        "ops": n,
        "two_over_one": statistics.median(ratios),
        "best_round": max(ratios),
        "cores": len(os.sched_getaffinity(0)),
        "load_average": os.getloadavg()[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", type=int, nargs="*", default=[200, 1_000, 10_000, 100_000])
    parser.add_argument("--devices", type=int, nargs="*", default=[2, 4, 8])
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    table, walked, shared = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        cpp = build_cpp(folder)
        print("placements per second, dataflow, one core (simulated graphs)")
        print(f"{'ops':>7}{'dev':>4}{'ours':>11}{'C++':>11}{'SimPy':>9}{'/C++':>7}{'/SimPy':>8}"
              f"{'ns/(n lg n)':>13}")  # fmt: skip
        for n in options.ops:
            for d in options.devices:
                row = compare(n, d, cpp, options.rounds)
                table.append(row)
                print(
                    f"{n:>7}{d:>4}{row['kernel_per_s']:>11.1f}{row['cpp_per_s']:>11.1f}"
                    f"{row['simpy_per_s']:>9.2f}{row['kernel_vs_cpp']:>7.2f}"
                    f"{row['kernel_vs_simpy']:>8.0f}{row['ns_per_n_log2_n']:>13.2f}",
                    flush=True,
                )
    print("moves, microseconds: one move; evaluate() of one; kernel alone inside a batch; scan")
    for n in (1_000, 10_000):
        for model in (Sequential(), Dataflow()):
            row = moves(n, 4, model, 400 if n == 1_000 else 100, options.rounds)
            walked.append(row)
            print("  " + ", ".join(f"{k} {v:.2f}" if isinstance(v, float) else f"{k} {v}"
                                   for k, v in row.items()), flush=True)  # fmt: skip
    for n in (1_000, 10_000):
        row = cores(n, options.rounds)
        shared.append(row)
        print(f"two threads against one at {n} ops: {row['two_over_one']:.2f} x "
              f"(best round {row['best_round']:.2f}; load {row['load_average']:.1f})")  # fmt: skip
    path = HERE / "results" / "simulate.json"
    path.parent.mkdir(exist_ok=True)
    record = {"dataflow": table, "moves": walked, "cores": shared}
    path.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
