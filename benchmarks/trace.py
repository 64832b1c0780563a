"""The trace of ``situs simulate`` on BERT-base, as Perfetto wants it.

Runs the command on the paper's machine with a placement on both devices, then checks the file:
valid JSON of complete events, in order of time, and no two spans of one row at once.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from models import paper_model
from situs.core import Dataflow, Never, Placement, Problem
from situs.core.placement_file import PlacementFile, write_placement
from situs.costs import roofline
from situs.hardware import catalogue
from situs.placers import get_placer
from situs.simulate import SimulatedObjective

MODEL, MACHINE = "bert-base", "paper-i9-flex170"
_MODELS = Path("runs") / "models"


def check(events: list[dict[str, object]]) -> dict[str, int]:
    """Counts of what was checked; stops with the first event that is wrong."""
    spans = [event for event in events if event["ph"] == "X"]
    others = [event for event in events if event["ph"] not in "XM"]
    if others:
        raise SystemExit(f"neither a span nor a name: {others[0]}")
    for before, after in pairwise(spans):
        if after["ts"] < before["ts"]:  # type: ignore[operator]
            raise SystemExit(f"goes back in time: {before} then {after}")
    end: dict[tuple[object, object], float] = defaultdict(float)
    for span in spans:
        row, start, length = (span["pid"], span["tid"]), float(str(span["ts"])), span["dur"]
        if float(str(length)) < 0 or round(1000 * start) < round(1000 * end[row]):
            raise SystemExit(f"overlaps on its row: {span}")
        end[row] = start + float(str(length))
    named = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    if not set(end) <= named:
        raise SystemExit(f"rows without a name: {set(end) - named}")
    return {"spans": len(spans), "rows": len(end)}


def main() -> None:
    imported = paper_model(MODEL, _MODELS)
    machine = catalogue(MACHINE)
    problem = Problem(imported.graph, machine, roofline(imported.graph, machine), Dataflow())
    # Alternate devices every four units, so that there are many transfers to draw.
    device = np.arange(problem.num_units) // 4 % problem.num_devices
    stay = ~problem.unit_allowed[np.arange(problem.num_units), device]
    device[stay] = np.argmax(problem.unit_allowed, axis=1)[stay]
    mixed = device[problem.units].astype(np.int32)
    heft = get_placer("heft")(
        problem, SimulatedObjective(problem), Never(), np.random.default_rng(0)
    )
    rows = []
    with TemporaryDirectory() as folder:
        for name, assignment in (
            ("heft", None if heft.placement is None else heft.placement.assignment),
            ("alternating", mixed),
        ):
            if assignment is None:
                continue
            file, trace = Path(folder) / f"{name}.placement.json", Path(folder) / f"{name}.json"
            placement = Placement(imported.graph.fingerprint, machine.names, assignment)
            write_placement(file, PlacementFile(placement, machine.devices), imported.graph)
            command = [sys.executable, "-m", "situs", "simulate", str(_MODELS / f"{MODEL}.xml")]
            command += ["--cluster", MACHINE, "--placement", str(file)]
            command += ["--execution-model", "dataflow", "--trace", str(trace)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            found = check(json.loads(trace.read_text())["traceEvents"])
            print(f"{MODEL} on {MACHINE}, {name}: {found} (simulated)")
            rows.append({"placement": name, **found})
    path = Path(__file__).parent / "results" / "trace.json"
    path.write_text(json.dumps({"model": MODEL, "machine": MACHINE, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
