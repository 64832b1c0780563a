"""``situs report``: one HTML file to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from situs.cli.explain import Saved
from situs.cli.output import Json, out, print_json
from situs.core.placement_file import check_writable, write_text
from situs.report.html import report_html
from situs.report.rows import report_rows
from situs.report.saved import read_saved


def report(
    placement: Saved,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Default: PLACEMENT with .html.")
    ] = None,
    json: Json = False,
) -> None:
    """Write one HTML file that shows a placement; it needs no network.

    Candidates and intervals, the graph by device, the timeline, convergence, devices, boundaries
    and what is needed to reproduce it. With --json the same rows are printed and no file is made.

    Example: situs report model.placement.json
    """
    path = output or placement.with_suffix(".html")
    if json:
        print_json(report_rows(read_saved(placement)))
        return
    check_writable(path)
    write_text(path, report_html(read_saved(placement)))
    out.print(f"written to {path}", markup=False, soft_wrap=True)
