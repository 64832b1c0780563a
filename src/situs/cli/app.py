"""The typer application: one file per sub-command, registered here."""

from __future__ import annotations

import typer

from situs.cli.devices import devices
from situs.cli.explain import explain
from situs.cli.export import export
from situs.cli.inspect import inspect
from situs.cli.place import place
from situs.cli.report import report
from situs.cli.run import run
from situs.cli.simulate import simulate
from situs.cli.solvers import solvers

app = typer.Typer(
    name="situs",
    help="Decide on which device each operator of a neural network runs, and run it that way.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (place, run, inspect, devices, simulate, explain, report, export):
    app.command()(command)

bench = typer.Typer(help="Benchmarks of the repository.", no_args_is_help=True)
bench.command()(solvers)
app.add_typer(bench, name="bench")
