"""``situs simulate``: the latency of a placement on a described machine."""

from __future__ import annotations

import math
from json import dumps
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from situs import api
from situs.cli.output import (
    Json,
    Model,
    Shape,
    milliseconds,
    out,
    parse_shapes,
    print_json,
    print_pairs,
)
from situs.core import (
    Dataflow,
    ExecutionModel,
    Pipeline,
    Placement,
    Problem,
    Sequential,
    count_subgraphs,
)
from situs.core.placement_file import check_writable, read_placement, write_text
from situs.costs import roofline
from situs.errors import ParameterError, PlacementError
from situs.graph.arrays import Ints
from situs.hardware import Cluster, catalogue, load_cluster
from situs.simulate import (
    bound,
    evaluate,
    memory_shortfall,
    peak_memory,
    timeline,
    trace_events,
)

MODELS: dict[str, ExecutionModel] = {
    "sequential": Sequential(),
    "dataflow": Dataflow(),
    "pipeline": Pipeline(),
}


def simulate(
    model: Model,
    cluster: Annotated[
        str, typer.Option(help="Cluster file (TOML), or a machine of the catalogue: rtx-4090.")
    ],
    placement: Annotated[
        str, typer.Option(help="Placement file, or the name of one device for all ops.")
    ],
    execution_model: Annotated[
        str, typer.Option(help="What latency means: sequential, dataflow or pipeline.")
    ] = "sequential",
    trace: Annotated[
        Path | None, typer.Option(help="Write a trace for Perfetto or chrome://tracing.")
    ] = None,
    shape: Shape = None,
    json: Json = False,
) -> None:
    """Simulate a placement of MODEL on a described machine; nothing is measured.

    Op times come from the roofline of each device, so that they are only as good as its figures.

    Example: situs simulate model.onnx --cluster rtx-4090 --placement cuda:0 --trace out.json
    """
    if execution_model not in MODELS:
        raise ParameterError(
            f"--execution-model must be one of {', '.join(MODELS)}; got {execution_model!r}"
        )
    if trace is not None:
        check_writable(trace)
    machine = load_cluster(cluster) if Path(cluster).suffix == ".toml" else catalogue(cluster)
    graph = api.load_graph(model, parse_shapes(shape))
    problem = Problem(graph, machine, roofline(graph, machine), MODELS[execution_model])
    assignment = _assignment(problem, placement, machine)
    seconds = float(evaluate(problem, assignment[np.newaxis])[0])
    best = bound(problem)
    feasible = math.isfinite(seconds)
    peak = peak_memory(problem, assignment)
    reason = None
    if not feasible:
        reason = memory_shortfall(problem, assignment) or "a tensor has no link to travel on"
    if trace is not None:
        events = trace_events(timeline(problem, assignment))
        write_text(trace, dumps({"traceEvents": events, "displayTimeUnit": "ms"}) + "\n")
    counts = Placement(graph.fingerprint, machine.names, assignment).counts()
    if json:
        print_json(
            {
                "model": graph.name,
                "cluster": machine.name,
                "execution_model": execution_model,
                "simulated": True,
                "simulated_s": seconds if feasible else None,
                "infeasible": reason,
                "lower_bound_s": best.seconds,
                "lower_bound": best.name,
                "ops": counts,
                "subgraphs": count_subgraphs(graph, assignment),
                "peak_memory_bytes": dict(zip(machine.names, peak.tolist(), strict=True)),
                "trace": None if trace is None else str(trace),
            }
        )
        return
    memory = zip(machine.names, peak.tolist(), strict=True)
    print_pairs(
        {
            "latency": f"{milliseconds(seconds)} ms per request (simulated, {execution_model})"
            if feasible
            else f"infeasible (simulated): {reason}",
            "lower bound": f"{milliseconds(best.seconds)} ms (simulated; {best.name})",
            "machine": f"{machine.name} (described, not measured)",
            "ops": ", ".join(f"{name} {k}" for name, k in counts.items() if k),
            "sub-graphs": str(count_subgraphs(graph, assignment)),
            "memory": ", ".join(f"{name} {b / 2**20:.1f} MiB" for name, b in memory if b)
            + " (simulated peak)",
        }
    )
    if trace is not None:
        out.print(f"trace written to {trace}", markup=False, soft_wrap=True)


def _assignment(problem: Problem, text: str, machine: Cluster) -> Ints:
    """Read a placement file whose device names are the machine's, or one device for all ops."""
    path = Path(text)
    if not path.is_file() and path.suffix != ".json":
        return np.full(problem.num_ops, machine.index(text), dtype=np.int32)
    placement = read_placement(path, problem.graph).placement
    missing = [name for name in placement.devices if name not in machine.names]
    if missing:
        raise PlacementError(
            f"{path}: uses device {missing[0]}, which {machine.name} lacks; "
            f"its devices are {', '.join(machine.names)}"
        )
    number = np.array([machine.names.index(name) for name in placement.devices], dtype=np.int32)
    return np.asarray(number[placement.assignment], dtype=np.int32)
