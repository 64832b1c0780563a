"""Import of every ONNX backend test that OpenVINO reads: none may fail, none may change its result.

Some two thousand models of single operators and their expansions. Where the case brings plain
arrays, the prepared model's outputs are compared with the unprepared one's (random operators are
left out). Prints the counts and writes ``results/import_onnx_backend.json``.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

from situs.errors import ModelError
from situs.importers import load_model
from situs.testing.backend import BackendCase, backend_cases

RESULTS = Path(__file__).parent / "results" / "import_onnx_backend.json"
CONFIG = {"INFERENCE_PRECISION_HINT": "f32"}
RANDOM = frozenset(("RandomUniform", "Multinomial"))


def run(core: ov.Core, model: ov.Model, inputs: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    compiled = core.compile_model(model, "CPU", CONFIG)
    result = compiled(list(inputs))
    return [np.array(result[i]) for i in range(len(model.outputs))]


def same(a: np.ndarray, b: np.ndarray) -> bool:
    if a.shape != b.shape or a.dtype.kind not in "fiub":
        return a.shape == b.shape
    return bool(np.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True))


def judge(core: ov.Core, case: BackendCase) -> str:
    try:
        model = core.read_model(case.model)
    except RuntimeError:
        return "OpenVINO cannot read it"
    is_open = any(port.get_partial_shape().is_dynamic for port in model.inputs)
    try:
        imported = load_model(model)
    except ModelError as error:
        return "refused: open input shape" if is_open else f"FAILED: {error}"
    nodes: list[Any] = imported.model.get_ordered_ops()
    if {n.get_friendly_name() for n in nodes} != {*imported.graph.op_names} | {
        *imported.constant_owner
    }:
        return "FAILED: a node is neither an op nor part of a constant"
    if case.inputs is None or RANDOM & {n.get_type_name() for n in nodes}:
        return "imported, outputs not compared"
    try:
        want = run(core, model, case.inputs)
    except (RuntimeError, TypeError):
        return "imported, OpenVINO's CPU cannot run the original"
    got = run(core, imported.model, case.inputs)
    if all(same(a, b) for a, b in zip(want, got, strict=True)):
        return "imported, outputs equal"
    again = run(core, model, case.inputs)
    if not all(same(a, b) for a, b in zip(want, again, strict=True)):
        return "imported, OpenVINO's CPU gives another output each time it runs the original"
    return "FAILED: outputs differ"


def main() -> None:
    core = ov.Core()
    counts: Counter[str] = Counter()
    for case in backend_cases():
        verdict = judge(core, case)
        counts[verdict] += 1
        if verdict.startswith("FAILED"):
            print(f"{case.name}: {verdict}")
    for verdict, count in counts.most_common():
        print(f"{count:5} {verdict}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(counts, indent=1) + "\n")


if __name__ == "__main__":
    main()
