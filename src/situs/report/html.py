"""One self-contained HTML file of a saved placement: rows, drawn by Plotly; no network."""

from __future__ import annotations

import html
import json
from functools import cache
from importlib.resources import files
from typing import Any

from situs.errors import MissingExtraError
from situs.report.rows import report_rows
from situs.report.saved import Saved


def embedded_json(value: Any) -> str:
    """JSON that may stand inside ``<script>``: no text of it can end the element or open a tag."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    # A lone surrogate cannot be encoded; names from damaged models may hold one.
    return text.encode("utf-8", "replace").decode()


def report_html(saved: Saved) -> str:
    """The text of the report.

    Raises:
        MissingExtraError: If Plotly or the layout's package is not installed.
    """
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise MissingExtraError("plotly", "report") from error
    rows = report_rows(saved)
    page = _asset("page.html")
    parts = {
        "title": html.escape(rows["title"][:200]),
        "style": _asset("page.css"),
        "plotly": get_plotlyjs(),
        "data": embedded_json(rows),
        "script": _asset("page.js"),
    }
    # Cut once at the marks, so that no inserted text is searched for marks again.
    pieces = page.split("@@")
    return "".join(parts[p] if k % 2 else p for k, p in enumerate(pieces))


@cache
def _asset(name: str) -> str:
    return (files("situs.report") / "page" / name).read_text(encoding="utf-8")
