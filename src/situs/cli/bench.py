"""``situs bench``: the repository's benchmarks as commands."""

from __future__ import annotations

import json as jsonlib
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from situs.cli.output import Json, print_json
from situs.errors import InputError, WorkError
from situs.placers import get_placer

bench = typer.Typer(help="Benchmarks of the repository.", no_args_is_help=True)


def _run(script: str, *arguments: str, results: Path, json: bool) -> None:
    """Run a script; with ``json`` its table goes to stderr and its results to stdout."""
    path = Path("benchmarks") / script
    if not path.exists():
        raise InputError(f"{path} is not here; run this in a checkout of the repository")
    table = sys.stderr if json else None
    done = subprocess.run([sys.executable, str(path), *arguments], check=False, stdout=table)  # noqa: S603
    if done.returncode:
        raise WorkError("the benchmark failed; its own message is above")
    if json:
        print_json(jsonlib.loads(results.read_text(encoding="utf-8")))


@bench.command()
def solvers(
    data: Annotated[Path, typer.Option(help="Folder that holds msr-fiddle/ and doppler/.")] = Path(
        "shared/placement-benchmarks"
    ),
    budget: Annotated[float, typer.Option(help="Seconds for one latency problem.")] = 60.0,
    search: Annotated[float, typer.Option(help="Seconds of search on one problem.")] = 15.0,
    only: Annotated[str, typer.Option(help="Rows whose 'scenario case' contains this.")] = "",
    json: Json = False,
) -> None:
    """Value, bound, gap and time of our solvers beside published programs (simulated).

    Example: situs bench solvers --data shared/placement-benchmarks --only latency
    """
    if not (data / "msr-fiddle").is_dir():
        raise InputError(f"{data}: no msr-fiddle/ inside; give the folder of the data with --data")
    arguments = ["--data", str(data), "--budget", str(budget), "--search", str(search)]
    results = Path("benchmarks/results/solvers.json")
    _run("solvers.py", *arguments, "--only", only, results=results, json=json)


@bench.command()
def paper(
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of each learned row.")] = 5,
    search: Annotated[float, typer.Option(help="Seconds of search per network.")] = 5.0,
    measured: Annotated[
        bool, typer.Option("--measured", help="Run on this machine's devices, not simulated.")
    ] = False,
    devices: Annotated[str, typer.Option(help="Devices to measure on, comma-separated.")] = "CPU",
    virtual: Annotated[
        list[str] | None, typer.Option(help="Virtual copies of the CPU, CPU_B:threads=1.")
    ] = None,
    evaluations: Annotated[int, typer.Option(help="Measured placements per learned row.")] = 62,
    output: Annotated[Path, typer.Option(help="Folder for paper.md, .json and .png.")] = Path(
        "benchmarks/results"
    ),
    json: Json = False,
) -> None:
    """HSDAG's own experiment: its networks, machine and rows, beside optimum, search and bound.

    Example: situs bench paper

    Example: situs bench paper --measured --virtual CPU_B:threads=1
    """
    arguments = ["--seeds", str(seeds), "--search", str(search), "--output", str(output)]
    if measured:
        arguments += ["--measured", "--evaluations", str(evaluations)]
        arguments += ["--devices", *devices.split(","), "--virtual", *(virtual or [])]
    results = output / ("paper-measured.json" if measured else "paper.json")
    _run("paper.py", *arguments, results=results, json=json)


@bench.command()
def learn(
    placers: Annotated[
        list[str] | None, typer.Option(help="Placers to compare; repeat for several.")
    ] = None,
    graphs: Annotated[
        list[str] | None,
        typer.Option(help="inception-v3, resnet-50, bert-base; repeat for several."),
    ] = None,
    costs: Annotated[
        list[str] | None, typer.Option(help="calibrated, structured; repeat for both.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of each run.")] = 5,
    output: Annotated[Path, typer.Option(help="Path of the results, without suffix.")] = Path(
        "benchmarks/results/learning"
    ),
    json: Json = False,
) -> None:
    """Learned placers against random and local search, at equal evaluations (simulated).

    Example: situs bench learn --placers hsdag --placers random --graphs resnet-50 --seeds 5
    """
    for spec in placers or []:
        get_placer(spec)
    arguments = ["--seeds", str(seeds), "--output", str(output)]
    for option, values in (("--placers", placers), ("--graphs", graphs), ("--costs", costs)):
        arguments += [option, *values] if values else []
    _run("learning.py", *arguments, results=output.with_suffix(".json"), json=json)
