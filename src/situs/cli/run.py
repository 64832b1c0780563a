"""``situs run``: run a model as placed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from situs import api
from situs.cli.output import (
    Json,
    Model,
    Shape,
    err,
    interruptible,
    milliseconds,
    parse_shapes,
    print_json,
    print_pairs,
    progress,
)
from situs.core import Progress
from situs.errors import RunError, Status, StrictError
from situs.profiling.running import run_placement, statistics


def run(
    model: Model,
    placement: Annotated[Path, typer.Option(help="File that situs place wrote.")],
    runs: Annotated[int, typer.Option(min=1, help="Counted runs.")] = 50,
    shape: Shape = None,
    seed: Annotated[int, typer.Option(help="Seed of the inputs.")] = 0,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 1 if an op does not run where it was planned.")
    ] = False,
    json: Json = False,
) -> None:
    """Run MODEL as placed: latency statistics, output check, planned against realised devices.

    An exported PyTorch program (.pt2) runs on PyTorch's devices, and its outputs are compared with
    those of the program without a placement.

    Example: situs run model.onnx --placement model.placement.json
    """
    with interruptible() as flag, progress(quiet=json) as on_event:
        if api.is_program(model):
            file, report = api.run_program(
                model, placement, seed, runs, lambda: flag(Progress()), on_event
            )
        else:
            imported = api.load(model, parse_shapes(shape))
            file = api.load_placement(placement, imported)
            report = run_placement(
                api.executor_of(file),
                imported,
                file.placement,
                seed,
                runs,
                lambda: flag(Progress()),
                on_event,
            )
    measurement, check, realised = report.measurement, report.check, report.realised
    labels = {device.name: device.label for device in file.devices}
    differences = realised.differences if realised else ()
    if json:
        print_json(
            {
                "status": measurement.status.name.lower(),
                "detail": measurement.detail,
                "latency": statistics(measurement),
                "samples_s": measurement.samples_s.tolist(),
                "devices": {name: {"virtual": labels[name] != name} for name in labels},
                "ops": file.placement.counts(),
                "subgraphs": realised.subgraphs if realised else None,
                "configuration": dict(realised.configuration) if realised else {},
                "differences": [
                    {"op": d.op, "planned": d.planned, "realised": d.realised, "cause": d.cause}
                    for d in differences
                ],
                "output_check": None
                if check is None
                else {
                    "passed": check.passed,
                    "max_abs": check.max_abs,
                    "max_rel": check.max_rel,
                    "tolerance": check.tolerance,
                    "varies_with_input": check.varies,
                },
                "ratio_to_first_device": None
                if report.comparison is None
                else [report.comparison.ratio, report.comparison.low, report.comparison.high],
            }
        )
    elif measurement.status is Status.OK:
        s = statistics(measurement)
        low, high = measurement.interval_s() or (0.0, 0.0)
        pairs = {
            "latency": f"{milliseconds(s['p50_s'])} ms median of {int(s['n'])} runs "
            f"(95 % interval {milliseconds(low)} to {milliseconds(high)})",
            "p90, p99": f"{milliseconds(s['p90_s'])}, {milliseconds(s['p99_s'])} ms",
            "mean, min": f"{milliseconds(s['mean_s'])}, {milliseconds(s['min_s'])} ms",
            "ops": ", ".join(f"{labels[k]} {v}" for k, v in file.placement.counts().items() if v),
            "sub-graphs": str(realised.subgraphs if realised else ""),
            "as planned": "yes" if not differences else f"no, {len(differences)} differences",
        }
        if check is not None:
            proof = "" if check.varies else " (they do not vary with the input: proves nothing)"
            pairs["outputs"] = f"agree to {check.max_rel:.1e} of the largest value{proof}"
        if report.comparison is not None:
            c = report.comparison
            pairs["vs one device"] = f"ratio {c.ratio:.3f} ({c.low:.3f} to {c.high:.3f})"
        print_pairs(pairs)
    for d in differences[:20]:
        err.print(f"not as planned: {d.op}: {d.planned} -> {d.realised} ({d.cause})", markup=False)
    if measurement.status is not Status.OK:
        raise RunError(f"{measurement.status.name.lower()}: {measurement.detail}")
    if strict and differences:
        raise StrictError(f"{len(differences)} ops do not run where they were planned")
