"""A saved placement in the formats of other tools; each exporter returns the text of a file."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from situs.errors import ParameterError
from situs.report.explain import shapes_of
from situs.report.layout import layered
from situs.report.reasons import cost_weights, reasons
from situs.report.saved import Saved
from situs.simulate import timeline, trace_events

# Fills that dark text is readable on; devices beyond them begin again.
_FILLS = ("#9ec5f4", "#f7b79b", "#93dcbd", "#ecc877", "#f0a9c3", "#c3b4ee", "#b5d68a", "#f2a3a3")


@dataclass(frozen=True, slots=True)
class Export:
    """One format.

    Attributes:
        suffix: End of the file's name.
        summary: What reads it, in a few words.
        text: The exporter.
    """

    suffix: str
    summary: str
    text: Callable[[Saved], str]


def to_csv(saved: Saved) -> str:
    """One line per op: device, times, cost weight, reason."""
    problem, assignment = saved.problem, saved.assignment
    names = problem.cluster.names
    weights = cost_weights(problem, assignment)
    found = io.StringIO()
    writer = csv.writer(found, lineterminator="\n")
    times = [f"seconds {name}" for name in names]
    writer.writerow(["op", "type", "outputs", "device", *times, "cost weight", "group", "why"])
    for i, reason in enumerate(reasons(problem, assignment)):
        seconds = [f"{s:.6g}" if np.isfinite(s) else "" for s in problem.costs.seconds[i]]
        writer.writerow(
            [
                problem.graph.op_names[i],
                problem.graph.op_types[i],
                " ".join(shapes_of(problem, i)),
                names[int(assignment[i])],
                *seconds,
                f"{weights[i]:.6g}",
                int(problem.units[i]),
                reason.text(names),
            ]
        )
    return found.getvalue()


def to_dot(saved: Saved) -> str:
    """Graphviz: ops as boxes coloured by device, crossings bold.

    Nodes have numbers for names and the ops' names for labels, so that any name is safe. Control
    characters, which Graphviz does not take, are left out.
    """
    graph, assignment = saved.problem.graph, saved.assignment
    lines = [f"digraph {_quoted(graph.name)} {{", "  node [shape=box, style=filled];"]
    for i, (name, kind) in enumerate(zip(graph.op_names, graph.op_types, strict=True)):
        device = int(assignment[i])
        tooltip = f"{kind} on {saved.labels[device]}"
        fill = _FILLS[device % len(_FILLS)]
        lines.append(
            f"  n{i} [label={_quoted(name)}, fillcolor={_quoted(fill)}, "
            f"device={_quoted(saved.labels[device])}, tooltip={_quoted(tooltip)}];"
        )
    for a, b in _edges(saved):
        crossing = " [penwidth=3]" if assignment[a] != assignment[b] else ""
        lines.append(f"  n{a} -> n{b}{crossing};")
    return "\n".join([*lines, "}"]) + "\n"


def to_svg(saved: Saved) -> str:
    """A picture in layers from top to bottom, ops coloured by device."""
    from xml.etree.ElementTree import Element, SubElement, tostring

    graph, assignment = saved.problem.graph, saved.assignment
    drawn = layered(graph.num_ops, _edges(saved))
    wide, high = 90.0, 60.0
    width = float(np.ptp(drawn.x)) * wide + 2 * wide
    height = float(np.ptp(drawn.y)) * high / 0.6 + 2 * high

    def spot(x: float, y: float) -> tuple[float, float]:
        return (x - float(drawn.x.min())) * wide + wide, -y * high / 0.6 + high

    root = Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {width:.0f} {height:.0f}",
            "font-family": "sans-serif",
            "font-size": "10",
        },
    )
    SubElement(root, "rect", width="100%", height="100%", fill="#ffffff")
    for (a, b), points in zip(drawn.edges, drawn.lines, strict=True):
        same = assignment[a] == assignment[b]
        line = {
            "points": " ".join(f"{x:.1f},{y:.1f}" for x, y in (spot(*p) for p in points)),
            "fill": "none",
            "stroke": "#999999" if same else "#111111",
            "stroke-width": "1" if same else "3",
        }
        SubElement(root, "polyline", line)
    for i, name in enumerate(graph.op_names):
        device = int(assignment[i])
        x, y = spot(float(drawn.x[i]), float(drawn.y[i]))
        box = {"x": f"{x - 40:.1f}", "y": f"{y - 15:.1f}", "width": "80", "height": "30", "rx": "4"}
        node = SubElement(root, "g", {"class": "op"})
        title = f"{name}\n{graph.op_types[i]} on {saved.labels[device]}"
        SubElement(node, "title").text = _printable(title)
        SubElement(node, "rect", box, fill=_FILLS[device % len(_FILLS)], stroke="#555555")
        text = SubElement(node, "text", x=f"{x:.1f}", y=f"{y + 3:.1f}")
        text.set("text-anchor", "middle")
        text.text = _printable(graph.op_types[i][:14])
    return tostring(root, encoding="unicode") + "\n"


def to_model_explorer(saved: Saved) -> str:
    """Node data of Model Explorer: the device of each op, with a colour per device.

    Source: the "custom node data" guide of Model Explorer (``results``, ``thresholds``, ``bgColor``
    by node id or output tensor name).
    """
    graph, assignment = saved.problem.graph, saved.assignment
    results = {
        name: {
            "value": saved.labels[int(d)],
            "bgColor": _FILLS[int(d) % len(_FILLS)],
            "textColor": "#111111",
        }
        for name, d in zip(graph.op_names, assignment, strict=True)
    }
    return json.dumps({"main": {"results": results}}, indent=1, ensure_ascii=False) + "\n"


def to_openvino(saved: Saved) -> str:
    """Affinity map: HETERO's device string, a default device, and the device of every op by name.

    Affinities are lost when OpenVINO saves a model, so they are set after reading it: see
    ``openvino_loader``.
    """
    placement = saved.file.placement
    counts = placement.counts()
    used = [name for name, count in counts.items() if count]
    document = {
        "schema": "situs-openvino-affinity/1",
        "model": saved.problem.graph.name,
        "graph": placement.graph,
        "device": f"HETERO:{','.join(used)}" if len(used) > 1 else used[0],
        "default": max(counts, key=lambda name: counts[name]),
        "properties": {d.name: dict(d.properties) for d in saved.file.devices if d.name in used},
        "affinity": {
            name: placement.devices[int(d)]
            for name, d in zip(saved.problem.graph.op_names, placement.assignment, strict=True)
        },
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def openvino_loader() -> str:
    """Python that compiles a model with an affinity map; it needs OpenVINO only."""
    return '''"""Compile a model as an affinity map says; needs openvino only. Made by Situs.

Usage: compiled = load("model.xml", "model.affinity.json")
"""

import json
from pathlib import Path

import openvino as ov


def load(model_path, map_path, core=None):
    """Read the model, set the affinity of every node, compile."""
    core = core or ov.Core()
    plan = json.loads(Path(map_path).read_text(encoding="utf-8"))
    model = core.read_model(model_path)
    affinity = dict(plan["affinity"])
    # A constant goes where its first reader goes: ops are met before what they read.
    for node in reversed(model.get_ordered_ops()):
        name = node.get_friendly_name()
        device = affinity.setdefault(name, plan["default"])
        node.get_rt_info()["affinity"] = device
        for port in node.inputs():
            source = port.get_source_output().get_node()
            if source.get_friendly_name() not in plan["affinity"]:
                affinity[source.get_friendly_name()] = device
    if not plan["device"].startswith("HETERO:"):
        return core.compile_model(model, plan["device"], plan["properties"][plan["device"]])
    return core.compile_model(model, plan["device"], {"DEVICE_PROPERTIES": plan["properties"]})
'''


def to_perfetto(saved: Saved) -> str:
    """Chrome trace of the predicted schedule."""
    events = trace_events(timeline(saved.problem, saved.assignment))
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}, ensure_ascii=False) + "\n"


EXPORTS = {
    "csv": Export(".csv", "spreadsheets", to_csv),
    "dot": Export(".dot", "Graphviz", to_dot),
    "model-explorer": Export(".model-explorer.json", "Model Explorer node data", to_model_explorer),
    "openvino": Export(".affinity.json", "OpenVINO affinity map and its loader", to_openvino),
    "perfetto": Export(".trace.json", "Perfetto and chrome://tracing (predicted)", to_perfetto),
    "svg": Export(".svg", "a picture", to_svg),
}
"""Formats that need the placement only, by name."""


def export_text(saved: Saved, kind: str) -> str:
    """A saved placement in one of ``EXPORTS``.

    Raises:
        ParameterError: If there is no such format.
    """
    if kind not in EXPORTS:
        raise ParameterError(f"no export {kind!r}; they are {', '.join(sorted(EXPORTS))}")
    return EXPORTS[kind].text(saved)


def _edges(saved: Saved) -> list[tuple[int, int]]:
    graph = saved.problem.graph
    pairs = zip(graph.edge_producer.tolist(), graph.consumer_ops.tolist(), strict=True)
    return sorted(set(pairs))


def _printable(text: str) -> str:
    """What XML 1.0 and Graphviz can hold: no control characters, no lone surrogates."""
    kept = "".join(c for c in text if c in "\n\t" or (ord(c) >= 32 and c not in "\ufffe\uffff"))
    return kept.encode("utf-8", "replace").decode()


def _quoted(text: str) -> str:
    shown = _printable(text).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + shown.replace("\n", "\\n") + '"'
