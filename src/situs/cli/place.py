"""``situs place``: find, measure and save a placement."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from situs import api
from situs.cli.output import (
    Devices,
    Json,
    Model,
    Precision,
    Shape,
    Virtual,
    err,
    interruptible,
    milliseconds,
    out,
    parse_shapes,
    print_json,
    progress,
    split_devices,
)
from situs.cli.place_torch import parse_request, place_program, place_torch
from situs.cli.watching import watching
from situs.core.placement_file import check_writable
from situs.core.rules import read_rules
from situs.errors import ParameterError, StrictError
from situs.profiling.outcome import Outcome


def place(
    model: Model,
    devices: Devices = None,
    virtual: Virtual = None,
    placer: Annotated[
        list[str] | None,
        typer.Option(help="Placers to run, name or name{key=value}; repeat for several."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Default: MODEL.placement.json.")
    ] = None,
    shape: Shape = None,
    precision: Precision = "f32",
    max_subgraphs: Annotated[
        int, typer.Option(help="Do not compile candidates with more sub-graphs than this.")
    ] = 32,
    executor: Annotated[
        str,
        typer.Option(help="hetero, parallel (devices overlap within a request), or auto: both."),
    ] = "hetero",
    pins: Annotated[
        Path | None,
        typer.Option(help="TOML rules that put ops on devices: [[pin]] type = ..., device = ..."),
    ] = None,
    reward: Annotated[
        str,
        typer.Option(help="What placers ask: simulated (the measured costs) or measured (runs)."),
    ] = "simulated",
    evaluations: Annotated[
        int | None,
        typer.Option(help="Placements one placer may value [100000 simulated, 500 measured]."),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            help="Folder for measurements and checkpoints; started again, it goes on there."
        ),
    ] = None,
    tensorboard: Annotated[
        Path | None, typer.Option(help="Folder for TensorBoard event files of learned placers.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of inputs, orders and placers.")] = 0,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 1 if an op does not run where it was planned.")
    ] = False,
    framework: Annotated[
        str,
        typer.Option(help="openvino, or torch: config.json (transformers) or .pt2."),
    ] = "openvino",
    max_memory: Annotated[
        list[str] | None,
        typer.Option(help="torch: memory to use, cuda:0=20GiB,cpu=60GiB."),
    ] = None,
    objective: Annotated[
        str, typer.Option(help="torch: latency, throughput, or fit (emptiest fullest device).")
    ] = "latency",
    machine: Annotated[
        str, typer.Option(help="torch: catalogue machine whose figures times are simulated with.")
    ] = "4xa100",
    counting: Annotated[
        str, typer.Option(help="torch: run (weights, cache, activations must fit) or weights.")
    ] = "run",
    tokens: Annotated[
        str, typer.Option(help="torch: batch, prompt tokens, new tokens of one request.")
    ] = "1,512,128",
    json: Json = False,
) -> None:
    """Find the fastest placement of MODEL on this machine's devices, measured and checked.

    Profiles the model on every device, measures the links, runs the placers on those costs, then
    compiles, checks and measures their placements and every single device, and keeps the fastest.

    Example: situs place model.onnx --devices CPU,GPU

    Example: situs place model.onnx --placer hsdag --reward measured --keep runs/model

    With --framework torch: the best device map of a transformers configuration, or the best
    placement of the ops of an exported program (.pt2), both by simulated costs.
    """
    if framework == "torch" and api.is_program(model):
        path = output or Path(model).with_suffix(".placement.json")
        check_writable(path)
        place_program(model, max_memory or [], objective, machine, placer or [], seed, path, json)
        return
    if framework == "torch":
        if output is not None:
            check_writable(output)
        place_torch(
            model,
            max_memory or [],
            objective,
            parse_request(tokens),
            machine,
            counting,
            output,
            json,
        )
        return
    if framework != "openvino" or max_memory:
        raise ParameterError(f"--framework {framework}: use openvino, or torch with --max-memory")
    path = output or Path(model).with_suffix(".placement.json")
    check_writable(path)
    with (
        interruptible() as flag,
        progress(quiet=json) as on_event,
        watching(on_event, tensorboard) as watch,
    ):
        outcome = api.place(
            model,
            split_devices(devices),
            virtual or [],
            placer or api.DEFAULT_PLACERS,
            precision,
            parse_shapes(shape),
            max_subgraphs,
            executor,
            read_rules(pins) if pins is not None else None,
            seed,
            flag,
            on_event,
            api.Searching(reward, evaluations, keep, watch),
        )
    saved = outcome.chosen is not None
    if saved:
        api.save(outcome, path)
    if json:
        print_json(outcome.record() | {"file": str(path) if saved else None})
    else:
        show(outcome)
        if saved:
            out.print(f"written to {escape(str(path))}", soft_wrap=True)
    for difference in outcome.differences()[:20]:
        err.print(
            f"not as planned: {difference.op}: {difference.planned} -> {difference.realised} "
            f"({difference.cause})",
            markup=False,
        )
    if not saved:
        raise typer.Exit(1)
    if strict and outcome.differences():
        raise StrictError(f"{len(outcome.differences())} ops do not run where they were planned")


def show(outcome: Outcome) -> None:
    """Print the table of candidates and the verdict."""
    table = Table(title=f"{outcome.problem.graph.name}: milliseconds per request", box=None)
    for heading, justify in (
        ("candidate", "left"),
        ("ops", "left"),
        ("sub-graphs", "right"),
        ("predicted", "right"),
        ("measured", "right"),
        ("95 % interval", "right"),
        ("vs best single", "right"),
        ("cores", "right"),
        ("outputs", "left"),
    ):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    for trial in outcome.trials:
        record = outcome.candidate_record(trial)
        interval = record["interval_s"]
        ratio = record["ratio_to_best_single"]
        chosen = trial is outcome.chosen
        name = escape(trial.candidate.name)
        if not trial.ok:
            reason = escape(f"{record['status'].replace('_', ' ')}: {record['detail']}")
            predicted = milliseconds(record["predicted_s"])
            table.add_row(name, outcome.label(trial.candidate.placement), "", predicted, reason)
            continue
        check = trial.check
        table.add_row(
            f"[bold]{name} *[/bold]" if chosen else name,
            outcome.label(trial.candidate.placement),
            str(record["subgraphs"]),
            milliseconds(record["predicted_s"]),
            milliseconds(record["measured_s"]) + ("" if trial.final else " (screening)"),
            f"{milliseconds(interval[0])} - {milliseconds(interval[1])}",
            f"{(ratio[0] - 1) * 100:+.1f} %" if ratio else "",
            f"{record['cores']:.1f}",
            "reference" if check is None else f"agree to {check.max_rel:.1e}",
        )
    out.print(table)
    out.print(escape(outcome.verdict()), soft_wrap=True)
    proven = [r for r in outcome.results if r.bound_s > 0]
    if proven:
        best = max(proven, key=lambda r: r.bound_s)
        out.print(
            f"By these costs no placement is below {milliseconds(best.bound_s)} ms (predicted; "
            f"proven by {best.placer}).",
            soft_wrap=True,
        )
