"""What a notebook shows of an outcome: the verdict and the candidates, as a small HTML table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any


def candidates_html(
    verdict: str, candidates: Sequence[Mapping[str, Any]], chosen: str | None
) -> str:
    """A paragraph and a table; every text is escaped.

    Args:
        verdict: One sentence.
        candidates: Rows of ``Outcome.candidate_record``.
        chosen: Name of the candidate that was kept.
    """
    headings = ("candidate", "engine", "predicted ms", "measured ms", "95 % interval", "status")
    rows = []
    for c in candidates:
        interval = c["interval_s"]
        cells = [
            c["name"],
            c["executor"],
            _ms(c["predicted_s"]),
            _ms(c["measured_s"]),
            f"{_ms(interval[0])} to {_ms(interval[1])}" if interval else "",
            c["status"].replace("_", " "),
        ]
        style = ' style="font-weight: bold"' if c["name"] == chosen else ""
        body = "".join(f"<td>{escape(str(cell))}</td>" for cell in cells)
        rows.append(f"<tr{style}>{body}</tr>")
    head = "".join(f"<th>{heading}</th>" for heading in headings)
    return f"<p>{escape(verdict)}</p><table><tr>{head}</tr>{''.join(rows)}</table>"


def _ms(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:.3f}"
