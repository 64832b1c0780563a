"""``situs bench solvers``: the solvers' table on the public placement problems."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from situs.errors import InputError, WorkError

_SCRIPT = Path("benchmarks") / "solvers.py"


def solvers(
    data: Annotated[Path, typer.Option(help="Folder that holds msr-fiddle/ and doppler/.")] = Path(
        "shared/placement-benchmarks"
    ),
    budget: Annotated[float, typer.Option(help="Seconds for one latency problem.")] = 60.0,
    search: Annotated[float, typer.Option(help="Seconds of search on one problem.")] = 15.0,
    only: Annotated[str, typer.Option(help="Rows whose 'scenario case' contains this.")] = "",
) -> None:
    """Value, bound, gap and time of our solvers beside published programs (simulated)."""
    if not _SCRIPT.exists():
        raise InputError(f"{_SCRIPT} is not here; run this in a checkout of the repository")
    if not (data / "msr-fiddle").is_dir():
        raise InputError(f"{data}: no msr-fiddle/ inside; give the folder of the data with --data")
    command = [sys.executable, str(_SCRIPT), "--data", str(data), "--budget", str(budget)]
    command += ["--search", str(search), "--only", only]
    if subprocess.run(command, check=False).returncode:  # noqa: S603
        raise WorkError("the benchmark failed; its own message is above")
