"""Import time and memory against ``core.read_model``, from 1,000 to 100,000 ops and at 2 GB.

Each model is read in fresh child processes, the two readers in turn; medians of ``REPEATS`` runs.
Prints a table and writes ``results/import_scale.json``.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
REPEATS = 3
RESULTS = Path(__file__).parent / "results" / "import_scale.json"

CHILD = """
import json, re, sys, time
import openvino as ov
from situs.importers import load_model
core = ov.Core()
wall, cpu = time.perf_counter(), time.process_time()
if sys.argv[2] == "read_model":
    kept, ops = core.read_model(sys.argv[1]), 0
else:
    kept = load_model(sys.argv[1])
    ops = kept.graph.num_ops
print(json.dumps({
    "wall_s": time.perf_counter() - wall,
    "cpu_s": time.process_time() - cpu,
    "peak_bytes": 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]),
    "ops": ops,
}))
"""


def residual_blocks(ops: int, path: Path) -> Path:
    """An IR of two-branch blocks, five ops each, with a constant in every branch."""
    import openvino as ov
    from openvino import opset15 as op

    x = op.parameter([1, 16], np.float32, name="x")
    y, count = x, 2
    weights = np.ones((1, 16), np.float32)
    while count < ops:
        a = op.relu(op.add(y, op.constant(weights)))
        b = op.tanh(op.multiply(y, op.constant(weights)))
        y, count = op.add(a, b), count + 5
    ov.save_model(ov.Model([op.result(y)], [x], "blocks"), path, compress_to_fp16=False)
    return path


def large_onnx(gigabytes: float, folder: Path) -> Path:
    """An ONNX of 64 MiB matrices whose weights lie in one external file."""
    from onnx import TensorProto, helper, save

    size, name = 4096, "x"
    nodes, weights = [], []
    with (folder / "weights.bin").open("wb") as file:
        for i in range(round(gigabytes * 1e9 / (4 * size * size))):
            weight = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[size, size])
            weight.data_location = TensorProto.EXTERNAL
            weight.external_data.add(key="location", value="weights.bin")
            weight.external_data.add(key="offset", value=str(file.tell()))
            weight.external_data.add(key="length", value=str(4 * size * size))
            np.full((size, size), i + 1, np.float32).tofile(file)
            file.flush()
            file.seek(0, os.SEEK_END)
            weights.append(weight)
            nodes.append(helper.make_node("MatMul", [name, f"w{i}"], [f"y{i}"]))
            name = f"y{i}"
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, size])
    y = helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, size])
    graph = helper.make_graph(nodes, "large", [x], [y], weights)
    path = folder / "large.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), str(path))
    return path


def measure(path: Path) -> dict[str, dict[str, float]]:
    """Medians of both readers, in turn."""
    runs: dict[str, list[dict[str, float]]] = {"read_model": [], "load_model": []}
    for _ in range(REPEATS):
        for reader in runs:
            command = [sys.executable, "-c", CHILD, str(path), reader]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            runs[reader].append(json.loads(output))
    return {
        reader: {key: statistics.median(run[key] for run in found) for key in found[0]}
        for reader, found in runs.items()
    }


def main() -> None:
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        cases = [(f"{n} ops", residual_blocks(n, folder / f"n{n}.xml")) for n in SIZES]
        cases.append(("2 GB ONNX", large_onnx(2.0, folder)))
        print(f"{'model':>12} {'read s':>8} {'import s':>9} {'ratio':>6} {'memory ratio':>13}")
        for name, path in cases:
            found = measure(path)
            read, ours = found["read_model"], found["load_model"]
            rows.append({"model": name, **found})
            print(
                f"{name:>12} {read['wall_s']:8.2f} {ours['wall_s']:9.2f} "
                f"{ours['wall_s'] / read['wall_s']:6.2f} "
                f"{ours['peak_bytes'] / read['peak_bytes']:13.2f}"
            )
    times = [row["load_model"]["wall_s"] for row in rows[: len(SIZES)]]
    exponent = float(np.polyfit(np.log(SIZES), np.log(times), 1)[0])
    print(f"growth exponent of import over {SIZES[0]}..{SIZES[-1]} ops: {exponent:.2f}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"exponent": exponent, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
