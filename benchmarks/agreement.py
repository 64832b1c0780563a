"""Do placed models compute what the unsplit model computes? Five real graphs, 24 placements each.

Seeded random weights replace the constant ones that the graphs ship with. Each placement really
runs through HETERO on the CPU and a virtual second CPU device, in f32; outputs are compared with
the CPU alone, and must vary with the input. Prints a table and writes JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import openvino as ov

from situs import api
from situs.core import Placement
from situs.errors import WorkError
from situs.executors.openvino_hetero import HeteroExecutor
from situs.graph.arrays import Ints
from situs.profiling.check import compare_outputs, outputs_vary
from situs.profiling.environment import environment
from situs.profiling.inputs import random_inputs
from situs.testing.models import light_models
from situs.testing.weights import randomize_weights

MODELS = ("inception_v2", "resnet50", "densenet121", "squeezenet", "shufflenet")


def wishes(n: int, count: int, seed: int) -> list[tuple[str, Ints]]:
    """Structured placements (halves, blocks, branches of an interval) and random ones."""
    rng = np.random.default_rng(seed)
    position = np.arange(n)
    out = [("first half on B", position < n // 2), ("second half on B", position >= n // 2)]
    out += [(f"blocks of {k}", (position // k) % 2) for k in (80, 40, 20)]
    while len(out) < count:
        low, high = np.sort(rng.integers(0, n, size=2))
        out.append((f"interval {low}..{high}", (position >= low) & (position < high)))
        share = rng.uniform(0.01, 0.06)
        out.append((f"random {share:.0%}", rng.random(n) < share))
    return [(name, np.asarray(w, dtype=np.int32)) for name, w in out[:count]]


def check_model(name: str, count: int, seed: int) -> dict[str, object]:
    original = ov.Core().read_model(light_models()[f"light_{name}"])
    model = api.load(randomize_weights(original, seed=1))
    graph = model.graph
    cluster = api.devices(["CPU"], ["CPU_B:threads=1"])
    executor = HeteroExecutor(cluster)
    rng = np.random.default_rng(seed)
    inputs, others = random_inputs(model.model, rng), random_inputs(model.model, rng)
    alone = executor.compile(
        model, Placement(graph.fingerprint, cluster.names, np.zeros(graph.num_ops, dtype=np.int32))
    )
    references = []
    for tensors in (others, inputs):
        alone.bind(tensors)
        alone.run()
        references.append(alone.outputs())
    reference = references[1]
    first = np.unique(graph.units, return_index=True)[1]
    failures, errors, subgraphs, unplanned = [], [], [], 0
    for label, wish in wishes(graph.num_ops, count, seed):
        placement = Placement(graph.fingerprint, cluster.names, wish[first][graph.units])
        try:
            placed = executor.compile(model, placement)
            placed.bind(inputs)
            placed.run()
        except WorkError as error:
            failures.append(f"{label}: {error}")
            continue
        check = compare_outputs(placed.outputs(), reference, 1e-4, varies=True)
        errors.append(check.max_rel)
        subgraphs.append(placed.realised.subgraphs)
        unplanned += len(placed.realised.differences)
        if not check.passed:
            failures.append(f"{label}: {check.detail}")
    spread = float(np.std(reference[0]) / np.abs(reference[0]).max())
    return {
        "model": name,
        "ops": graph.num_ops,
        "placements": count,
        "agree": count - len(failures),
        "failures": failures,
        "max_rel_error": max(errors, default=float("nan")),
        "median_subgraphs": float(np.median(subgraphs)),
        "max_subgraphs": max(subgraphs, default=0),
        "differences_from_plan": unplanned,
        "outputs_vary": outputs_vary(references[0], reference),
        "output_spread": spread,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--placements", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rows = []
    heading = (
        f"{'model':<14}{'ops':>6}{'agree':>9}{'max rel':>11}{'sub-graphs':>12}{'vary':>6}{'s':>7}"
    )
    print(heading)
    for name in options.models:
        begin = time.perf_counter()
        row = check_model(name, options.placements, options.seed)
        rows.append(row)
        took_s = time.perf_counter() - begin
        print(
            f"{name:<14}{row['ops']:>6}{row['agree']:>5}/{row['placements']:<3}"
            f"{row['max_rel_error']:>11.1e}{row['median_subgraphs']:>6.0f}/{row['max_subgraphs']:<5}"
            f"{row['outputs_vary']!s:>6}{took_s:>7.0f}",
            flush=True,
        )
        for failure in row["failures"]:  # type: ignore[attr-defined]
            print(f"  {failure}")
    path = Path(__file__).parent / "results" / "agreement.json"
    path.write_text(json.dumps({"rows": rows, "environment": environment()}, indent=1) + "\n")


if __name__ == "__main__":
    main()
