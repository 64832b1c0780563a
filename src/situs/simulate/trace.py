"""Chrome trace events of a timeline: the format that Perfetto and chrome://tracing open."""

from __future__ import annotations

import json
from typing import Any

from situs.core import Problem
from situs.simulate.timeline import Timeline


def trace_events(problem: Problem, timeline: Timeline) -> list[dict[str, Any]]:
    """Complete ("X") events sorted by time: a row per device stream and per directed link.

    Times are in microseconds, as the format wants. Links with overlapping transfers and devices
    with several streams get a row for each that is in use at once, so that none overlap on a row.

    Source: Trace Event Format (Google), "Complete Events" and "Metadata Events".
    """
    names, graph = problem.cluster.names, problem.graph
    label = " (simulated)" if problem.simulated else ""
    critical = set(timeline.critical_path)
    spans: list[tuple[float, float, str, str, dict[str, Any]]] = []
    for i, d in enumerate(timeline.assignment.tolist()):
        arguments = {"type": graph.op_types[i], "critical": i in critical}
        begin, end = float(timeline.start_s[i]), float(timeline.end_s[i])
        spans.append((begin, end, names[d], graph.op_names[i], arguments))
    for x, t in enumerate(timeline.tensor.tolist()):
        source, target = names[int(timeline.source[x])], names[int(timeline.target[x])]
        producer = graph.op_names[int(graph.tensor_producer[t])]
        arguments = {"tensor": t, "bytes": int(graph.tensor_bytes[t])}
        begin, end = float(timeline.sent_s[x]), float(timeline.received_s[x])
        spans.append((begin, end, f"{source} -> {target}", producer, arguments))
    spans.sort(key=lambda s: (s[0], s[1]))
    rows: dict[str, list[float]] = {name: [] for name in names}
    number: dict[tuple[str, int], int] = {}
    events: list[dict[str, Any]] = []
    for begin, end, row, name, arguments in spans:
        lanes = rows.setdefault(row, [])
        lane = next((k for k, until in enumerate(lanes) if until <= begin), len(lanes))
        lanes[lane : lane + 1] = [end]
        thread = number.setdefault((row, lane), len(number))
        # Whole nanoseconds: rounding keeps order, so that touching spans still touch.
        first_us, last_us = round(begin * 1e6, 3), round(end * 1e6, 3)
        events.append(
            {
                "name": name,
                "cat": "transfer" if "tensor" in arguments else "op",
                "ph": "X",
                "ts": first_us,
                "dur": round(last_us - first_us, 3),
                "pid": 0,
                "tid": thread,
                "args": arguments,
            }
        )
    head = [_metadata("process_name", 0, f"{graph.name}{label}")]
    for (row, lane), thread in number.items():
        head.append(_metadata("thread_name", thread, f"{row}{f' #{lane + 1}' if lane else ''}"))
    return head + events


def trace_json(problem: Problem, timeline: Timeline) -> str:
    """The text of a trace file."""
    document = {
        "traceEvents": trace_events(problem, timeline),
        "displayTimeUnit": "ms",
        "otherData": {"seconds": timeline.seconds, "simulated": problem.simulated},
    }
    return json.dumps(document, ensure_ascii=False) + "\n"


def _metadata(kind: str, thread: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "ts": 0, "pid": 0, "tid": thread, "args": {"name": name}}
