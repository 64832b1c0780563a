"""A timeline as Chrome trace events, which Perfetto and chrome://tracing open."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from situs.graph.arrays import Floats
from situs.simulate.timeline import Timeline

_DEVICES, _LINKS = 1, 2
_NS_PER_S = 1e9
_NS_PER_US = 1000


def trace_events(timeline: Timeline) -> list[dict[str, Any]]:
    """Complete events (``ph = X``, times in µs), one row per device stream and link in use.

    Events come in order of time. Spans of one row do not overlap: what runs at once on a device or
    an unlimited link gets rows of its own. Write ``{"traceEvents": events}`` as JSON.

    Source: "Trace Event Format", the Chromium project's document of the format.
    """
    problem, graph = timeline.problem, timeline.problem.graph
    labels = problem.cluster.labels
    events: list[dict[str, Any]] = [
        _meta("process_name", _DEVICES, 0, f"{graph.name}: devices (simulated)"),
        _meta("process_name", _LINKS, 0, f"{graph.name}: links (simulated)"),
    ]
    critical = set(timeline.critical_path.tolist())
    spans: list[dict[str, Any]] = []
    tid = 0
    for d, label in enumerate(labels):
        ops = np.flatnonzero(timeline.assignment == d)
        rows = _rows(timeline.start_s[ops], timeline.end_s[ops])
        for row in range(max(rows, default=0) + 1):
            name = label if row == 0 else f"{label} stream {row + 1}"
            events.append(_meta("thread_name", _DEVICES, tid + row, name))
        for i, row in zip(ops.tolist(), rows, strict=True):
            args = {"type": graph.op_types[i], "op": i, "critical": i in critical}
            start, end = float(timeline.start_s[i]), float(timeline.end_s[i])
            spans.append(_span(graph.op_names[i], _DEVICES, tid + row, start, end, args))
        tid += max(rows, default=0) + 1
    links = sorted(set(zip(timeline.source.tolist(), timeline.target.tolist(), strict=True)))
    for a, b in links:
        moves = np.flatnonzero((timeline.source == a) & (timeline.target == b))
        rows = _rows(timeline.transfer_start_s[moves], timeline.transfer_end_s[moves])
        for row in range(max(rows) + 1):
            name = f"{labels[a]} -> {labels[b]}" + (f" ({row + 1})" if row else "")
            events.append(_meta("thread_name", _LINKS, tid + row, name))
        for m, row in zip(moves.tolist(), rows, strict=True):
            t = int(timeline.tensor[m])
            name = f"{graph.op_names[graph.tensor_producer[t]]}:{graph.tensor_port[t]}"
            args = {"tensor": t, "bytes": int(graph.tensor_bytes[t])}
            start, end = float(timeline.transfer_start_s[m]), float(timeline.transfer_end_s[m])
            spans.append(_span(name, _LINKS, tid + row, start, end, args))
        tid += max(rows) + 1
    return events + sorted(spans, key=lambda event: (event["ts"], event["tid"], event["dur"]))


def _rows(start: Floats, end: Floats) -> list[int]:
    """First free row for each span, in order of start; rows are as few as can be."""
    rows = [0] * len(start)
    free: list[int] = []
    used: list[tuple[float, int]] = []
    count = 0
    for k in sorted(range(len(start)), key=lambda k: (start[k], end[k])):
        while used and used[0][0] <= start[k]:
            heapq.heappush(free, heapq.heappop(used)[1])
        if not free:
            free, count = [count], count + 1
        rows[k] = heapq.heappop(free)
        heapq.heappush(used, (float(end[k]), rows[k]))
    return rows


def _meta(kind: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}


def _span(
    name: str, pid: int, tid: int, start_s: float, end_s: float, args: dict[str, Any]
) -> dict[str, Any]:
    # Whole nanoseconds, so that one span's end and the next one's start stay equal.
    start_ns, end_ns = round(start_s * _NS_PER_S), round(end_s * _NS_PER_S)
    return {
        "name": name,
        "ph": "X",
        "pid": pid,
        "tid": tid,
        "ts": start_ns / _NS_PER_US,
        "dur": (end_ns - start_ns) / _NS_PER_US,
        "args": args,
    }
