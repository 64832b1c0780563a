"""The rows of a report: JSON values that the page draws, every time in seconds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from situs.core import Placement, Problem
from situs.core.problem_record import rounded
from situs.errors import PlacementError, ProblemError
from situs.graph.arrays import Ints
from situs.report.explain import shapes_of
from situs.report.layout import Layout, layered
from situs.report.reasons import cost_weights, heaviest_ops, placed_seconds, reasons, unit_moves
from situs.report.saved import Saved
from situs.simulate import bound, evaluate, peak_memory, timeline

_BOUNDARIES = 200
_DIGITS = 4


def report_rows(saved: Saved) -> dict[str, Any]:
    """Everything that the page shows, as JSON values.

    Raises:
        MissingExtraError: If the layout's package is not installed.
    """
    problem, assignment, record = saved.problem, saved.assignment, saved.record
    predicted = float(evaluate(problem, assignment[np.newaxis])[0])
    lower = bound(problem)
    return {
        "title": problem.graph.name,
        "verdict": str(record.get("verdict", "")),
        "executor": str(record.get("executor", "")),
        "execution_model": type(problem.model).__name__.lower(),
        "cost_source": problem.costs.source,
        "fingerprint": problem.graph.fingerprint,
        "seed": record.get("seed"),
        "predicted_s": predicted if math.isfinite(predicted) else None,
        "bound": {"seconds": lower.seconds, "name": lower.name},
        "devices": device_rows(saved),
        "candidates": candidate_rows(saved),
        "convergence": convergence_rows(saved),
        "ops": op_rows(problem, assignment),
        "groups": group_rows(problem, assignment),
        "timeline": timeline_rows(problem, assignment),
        "subgraphs": subgraph_rows(problem, assignment),
        "boundaries": boundary_rows(problem, assignment),
        "environment": {str(k): str(v) for k, v in dict(record.get("environment", {})).items()},
        "costs": {str(k): str(v) for k, v in problem.costs.notes},
        "placers": [
            {
                "placer": str(p["placer"]),
                "parameters": {str(k): str(v) for k, v in p["parameters"].items()},
                "status": str(p["status"]),
                "predicted_s": p["predicted_s"],
                "bound_s": p["bound_s"],
                "evaluations": p["evaluations"],
                "elapsed_s": p["elapsed_s"],
                "detail": str(p["detail"]),
            }
            for p in record.get("placers", [])
        ],
    }


def candidate_rows(saved: Saved) -> list[dict[str, Any]]:
    """Every candidate that was tried, in the order of the record."""
    record = saved.record
    return [
        {
            "name": str(c["name"]),
            "executor": str(c["executor"]),
            "status": str(c["status"]),
            "detail": str(c["detail"]),
            "measured_s": c["measured_s"],
            "interval_s": c["interval_s"],
            "samples": len(c["samples_s"]),
            "stage": str(c["stage"]),
            "predicted_s": c["predicted_s"],
            "ratio": c["ratio_to_best_single"],
            "subgraphs": c["subgraphs"],
            "moved_bytes": c["moved_bytes"],
            "chosen": c["name"] == record.get("chosen") and c["executor"] == record.get("executor"),
            "best_single": c["name"] == record.get("best_single"),
        }
        for c in record.get("candidates", [])
    ]


def convergence_rows(saved: Saved) -> list[dict[str, Any]]:
    """Best so far of each placer against evaluations and time; it holds until the search ended."""
    rows = []
    for p in saved.record.get("placers", []):
        points = [list(map(float, point)) for point in p.get("trace", [])]
        if not points:
            continue
        end = [float(p["evaluations"]), float(p["elapsed_s"]), points[-1][2]]
        if end[0] > points[-1][0] or end[1] > points[-1][1]:
            points.append(end)
        rows.append(
            {
                "placer": str(p["placer"]),
                "evaluations": [x[0] for x in points],
                "elapsed_s": [x[1] for x in points],
                "best_s": [x[2] for x in points],
            }
        )
    return rows


def device_rows(saved: Saved) -> list[dict[str, Any]]:
    """Work, idle time, transfers and memory of each device; times predicted by the costs."""
    problem, assignment = saved.problem, saved.assignment
    counts = Placement(problem.graph.fingerprint, problem.cluster.names, assignment).counts()
    seconds = placed_seconds(problem, assignment)
    total = float(evaluate(problem, assignment[np.newaxis])[0])
    try:
        peak = peak_memory(problem, assignment)
    except PlacementError:
        # A file edited by hand may break a rule; then it has no schedule to take memory from.
        peak = np.full(problem.num_devices, np.nan)
    crossing = _crossings(problem, assignment)
    rows = []
    for d, device in enumerate(problem.cluster.devices):
        busy = float(seconds[assignment == d].sum())
        idle = total - busy / device.streams
        limit = float(problem.memory_bytes[d])
        rows.append(
            {
                "name": device.name,
                "label": device.label,
                "full_name": device.full_name,
                "precision": device.precision,
                "properties": dict(device.properties),
                "ops": counts[device.name],
                "busy_s": busy,
                "idle_s": max(idle, 0.0) if math.isfinite(idle) else None,
                "sent_bytes": float(sum(c["bytes"] for c in crossing if c["source"] == d)),
                "received_bytes": float(sum(c["bytes"] for c in crossing if c["target"] == d)),
                "peak_bytes": float(peak[d]) if math.isfinite(peak[d]) else None,
                "limit_bytes": limit if math.isfinite(limit) else None,
            }
        )
    return rows


def op_rows(problem: Problem, assignment: Ints) -> dict[str, Any]:
    """Columns over the ops, and the lines of their edges."""
    graph = problem.graph
    pairs = zip(graph.edge_producer.tolist(), graph.consumer_ops.tolist(), strict=True)
    moves = unit_moves(problem, assignment)
    return {
        "name": list(graph.op_names),
        "type": list(graph.op_types),
        "shapes": [", ".join(shapes_of(problem, i)) for i in range(problem.num_ops)],
        "device": assignment.tolist(),
        "seconds": rounded(problem.costs.seconds, _DIGITS),
        "weight": rounded(cost_weights(problem, assignment), _DIGITS),
        "why": [r.text(problem.cluster.labels) for r in reasons(problem, assignment, moves)],
        "unit": problem.units.tolist(),
        "unit_moves_s": rounded(moves, _DIGITS),
        **_drawn(layered(problem.num_ops, pairs), assignment),
    }


def group_rows(problem: Problem, assignment: Ints) -> dict[str, Any]:
    """Columns over the groups of ops that move together, and the lines between them.

    A group may be reached again from its own readers, so that its edges may form cycles; an edge
    against the order of the groups' first ops is drawn but does not shape the layers.
    """
    graph, units = problem.graph, problem.units
    device = assignment[problem.unit_heads]
    columns = {
        "size": np.bincount(units, minlength=problem.num_units).tolist(),
        "head": heaviest_ops(problem).tolist(),
        "device": device.tolist(),
        "seconds": rounded(problem.unit_seconds, _DIGITS),
    }
    if problem.num_units == problem.num_ops:
        # Nothing collapses: the drawing of the ops is all that there is.
        return columns
    rank = np.argsort(np.argsort(problem.unit_heads, kind="stable"), kind="stable")
    a, b = units[graph.edge_producer], units[graph.consumer_ops]
    forward = rank[a] < rank[b]
    pairs = zip(a[forward].tolist(), b[forward].tolist(), strict=True)
    return columns | _drawn(layered(problem.num_units, pairs), device)


def timeline_rows(problem: Problem, assignment: Ints) -> dict[str, Any]:
    """Spans of the predicted schedule by device and by link, or why there is none."""
    try:
        found = timeline(problem, assignment)
    except (ProblemError, PlacementError) as error:
        return {"lanes": [], "missing": str(error)}
    labels, producer = problem.cluster.labels, problem.graph.tensor_producer
    lanes = [
        {
            "label": label,
            "device": d,
            "op": (ops := np.flatnonzero(assignment == d)).tolist(),
            "start_s": rounded(found.start_s[ops], 9),
            "end_s": rounded(found.end_s[ops], 9),
        }
        for d, label in enumerate(labels)
    ]
    links = sorted(set(zip(found.source.tolist(), found.target.tolist(), strict=True)))
    for source, target in links:
        moves = np.flatnonzero((found.source == source) & (found.target == target))
        lanes.append(
            {
                "label": f"{labels[source]} → {labels[target]}",
                "device": source,
                "op": producer[found.tensor[moves]].tolist(),
                "start_s": rounded(found.transfer_start_s[moves], 9),
                "end_s": rounded(found.transfer_end_s[moves], 9),
            }
        )
    return {
        "lanes": lanes,
        "missing": "",
        "seconds": found.seconds,
        "critical_path": found.critical_path.tolist(),
    }


def subgraph_rows(problem: Problem, assignment: Ints) -> list[dict[str, Any]]:
    """The connected sets of ops that share a device, in order of their first op."""
    graph = problem.graph
    u, v = graph.edge_producer, graph.consumer_ops
    same = assignment[u] == assignment[v]
    shape = (graph.num_ops, graph.num_ops)
    inner = coo_array((np.ones(int(same.sum())), (u[same], v[same])), shape=shape)
    count, part = connected_components(inner, directed=False)
    seconds = placed_seconds(problem, assignment)
    rows = []
    for k in range(count):
        ops = np.flatnonzero(part == k)
        rows.append(
            {
                "device": int(assignment[ops[0]]),
                "ops": len(ops),
                "first": int(ops[0]),
                "last": int(ops[-1]),
                "seconds": float(seconds[ops].sum()),
                "weight_bytes": int(graph.op_constant_bytes[ops].sum()),
            }
        )
    return sorted(rows, key=lambda row: int(row["first"]))


def boundary_rows(problem: Problem, assignment: Ints) -> dict[str, Any]:
    """Crossings of tensors: totals, and the dearest ones."""
    rows = sorted(_crossings(problem, assignment), key=lambda row: -float(row["seconds"]))
    return {
        "count": len(rows),
        "bytes": float(sum(row["bytes"] for row in rows)),
        "seconds": float(sum(row["seconds"] for row in rows)),
        "dearest": [
            row | {"seconds": row["seconds"] if math.isfinite(row["seconds"]) else None}
            for row in rows[:_BOUNDARIES]
        ],
    }


def _crossings(problem: Problem, assignment: Ints) -> list[dict[str, Any]]:
    """Each tensor once per other device that reads it; the boundary's fixed time is included."""
    graph, costs = problem.graph, problem.costs
    tensors, targets = graph.cut(assignment)
    producers = graph.tensor_producer[tensors]
    return [
        {
            "producer": int(op),
            "source": int(assignment[op]),
            "target": int(d),
            "bytes": float(costs.transfer_size[t]),
            "seconds": float(costs.transfer_s(t, assignment[op], d) + costs.boundary_s[d]),
        }
        for t, d, op in zip(tensors.tolist(), targets.tolist(), producers.tolist(), strict=True)
    ]


def _drawn(layout: Layout, device: Ints) -> dict[str, Any]:
    """Positions, and for each edge its device (-1 where it crosses) and points, flattened."""
    # Layers run from left to right: screens are wide.
    x, y = (-layout.y).round(2), (-layout.x).round(2)
    return {
        "x": x.tolist(),
        "y": y.tolist(),
        "edge": [
            [int(device[a]) if device[a] == device[b] else -1, *_flat(points)]
            for (a, b), points in zip(layout.edges, layout.lines, strict=True)
        ],
    }


def _flat(points: tuple[tuple[float, float], ...]) -> list[float]:
    return [round(v, 2) for across, down in points for v in (-down, -across)]
