"""The typer application: one file per sub-command, registered here."""

from __future__ import annotations

import typer

from situs.cli.bench import bench
from situs.cli.devices import devices
from situs.cli.doctor import doctor
from situs.cli.explain import explain
from situs.cli.export import export
from situs.cli.inspect import inspect
from situs.cli.place import place
from situs.cli.report import report
from situs.cli.run import run
from situs.cli.simulate import simulate

app = typer.Typer(
    name="situs",
    help="""Decide on which device each operator of a neural network runs, and run it that way.

    Exit codes: 0 done; 1 the work failed, or was not realised as planned under --strict; 2 bad
    input. Defaults of options: situs.toml here, or the file that SITUS_CONFIG names.

    Example: situs place model.onnx --devices CPU,GPU""",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (place, run, inspect, devices, simulate, explain, report, export, doctor):
    app.command()(command)

app.add_typer(bench, name="bench")


def options_of(application: typer.Typer) -> dict[str, set[str]]:
    """Names of every command's options, as its function has them."""
    group = typer.main.get_group(application)
    return {
        name: {p.name for p in command.params if p.param_type_name == "option" and p.name}
        for name, command in group.commands.items()
    }
