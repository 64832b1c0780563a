"""``situs explain``: why an op is where it is."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from situs.cli.output import Json, milliseconds, out, print_json, print_pairs
from situs.report.explain import Explanation
from situs.report.explain import explain as explain_op
from situs.report.saved import read_saved

Saved = Annotated[Path, typer.Argument(help="File that situs place wrote.")]


def explain(
    placement: Saved,
    op: Annotated[str, typer.Option(help="Name of the op, or a part that only it has.")],
    json: Json = False,
) -> None:
    """Say why an op is where it is: its times, its share, its transfers, and what a move changes.

    Example: situs explain model.placement.json --op conv1
    """
    saved = read_saved(placement)
    found = explain_op(saved.problem, saved.assignment, saved.op(op))
    if json:
        print_json(found.record())
    else:
        _show(found, saved.labels)


def _change(seconds: float) -> str:
    return f"{seconds * 1e3:+.4f}" if math.isfinite(seconds) else "not allowed"


def _show(found: Explanation, labels: tuple[str, ...]) -> None:
    print_pairs(
        {
            "op": f"{found.name} ({found.type})",
            "outputs": ", ".join(found.shapes) or "none",
            "device": labels[found.device],
            "why": found.reason.text(labels),
            "cost weight": f"{found.cost_weight * 100:.2f} % of the placement's op times",
            "group": f"{len(found.group)} ops move together",
        }
    )
    table = Table(box=None, title="milliseconds per request")
    for heading in ("device", f"op ({found.cost_source})", "op alone moves", "group moves"):
        table.add_column(heading, justify="left" if heading == "device" else "right")
    for d, label in enumerate(labels):
        here = d == found.device
        seconds = float(found.seconds[d])
        table.add_row(
            escape(f"{label} *" if here else label),
            milliseconds(seconds) if math.isfinite(seconds) else "not supported",
            "" if here else _change(float(found.alone_moves_s[d])),
            "" if here else _change(float(found.group_moves_s[d])),
        )
    out.print(table)
    out.print("Changes of the latency are predicted by the saved costs.")
    for t in found.transfers:
        way = "awaits" if t.incoming else "sends"
        out.print(
            f"{way} {t.producer}: {labels[t.source]} -> {labels[t.target]}, "
            f"{t.size_bytes:.0f} B, {milliseconds(t.seconds)} ms (predicted)",
            markup=False,
            soft_wrap=True,
        )
