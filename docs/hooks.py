"""Fills marks in the pages: the placers with their papers, and the benchmarks' JSON as tables."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"
_ROWS = 40


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace ``<!-- placers -->`` and ``<!-- benchmarks -->``."""
    if "<!-- placers -->" in markdown:
        markdown = markdown.replace("<!-- placers -->", placers())
    if "<!-- benchmarks -->" in markdown:
        markdown = markdown.replace("<!-- benchmarks -->", benchmarks())
    return markdown


def placers() -> str:
    """A section per placer, from its docstring."""
    from situs.placers import get_placer
    from situs.placers.registry import placer_names

    parts = []
    for name in placer_names():
        text = inspect.getdoc(type(get_placer(name))) or ""
        summary, _, rest = text.partition("\n")
        parts.append(f"## {name}\n\n{summary}\n")
        for heading in ("Source", "Differs"):
            found = re.search(rf"^{heading}: (.*?)(?=\n\s*\n|\n[A-Z]\w+:|\Z)", rest, re.M | re.S)
            if found:
                parts.append(f"**{heading}.** {' '.join(found[1].split())}\n")
    return "\n".join(parts)


def benchmarks() -> str:
    """A section per result file: its lists of flat records as tables."""
    parts = []
    for path in sorted(RESULTS.glob("*.json")):
        parts.append(f"## {path.stem.replace('_', ' ')}\n")
        parts.append(f"`benchmarks/{path.stem}.py`, from `{path.name}`.\n")
        parts.append(_tables(json.loads(path.read_text(encoding="utf-8"))))
    return "\n".join(parts)


def _tables(value: Any) -> str:
    if isinstance(value, list):
        return _table(value)
    if not isinstance(value, dict):
        return _cell(value)
    flat = {k: v for k, v in value.items() if not isinstance(v, dict | list)}
    parts = [_table([flat])] if flat else []
    for key, part in value.items():
        if isinstance(part, list) and part and isinstance(part[0], dict):
            parts.append(f"**{_cell(key)}**\n\n{_table(part)}")
        elif isinstance(part, dict):
            rows = [{"": k} | (v if isinstance(v, dict) else {"value": v}) for k, v in part.items()]
            parts.append(f"**{_cell(key)}**\n\n{_table(rows)}")
    return "\n".join(parts)


def _table(rows: list[Any]) -> str:
    records = [_flat(row) for row in rows if isinstance(row, dict)]
    keys = list(dict.fromkeys(key for record in records for key in record))
    if not keys:
        return ""
    lines = ["| " + " | ".join(_cell(k) for k in keys) + " |", "|" + " --- |" * len(keys)]
    lines += ["| " + " | ".join(_cell(r.get(k, "")) for k in keys) + " |" for r in records[:_ROWS]]
    if len(records) > _ROWS:
        lines.append(f"\nThe first {_ROWS} of {len(records)} rows.")
    return "\n".join(lines) + "\n"


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """Inner records as columns of their own; lists (samples) are left to the JSON."""
    found: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            found |= {f"{key} {inner}": v for inner, v in _flat(value).items()}
        elif not isinstance(value, list):
            found[key] = value
    return found


def _cell(value: Any) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return re.sub(r"([|<>*_`\[\]])", r"\\\1", text.replace("\n", " "))[:200]
