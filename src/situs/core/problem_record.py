"""A problem's costs and limits as JSON values, so that a saved placement can be explained later."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from situs.core.model import Dataflow, ExecutionModel, Offload, Pipeline, Sequential
from situs.core.problem import Limits, Problem
from situs.costs import CostTable
from situs.errors import PlacementError
from situs.graph import Graph
from situs.graph.arrays import Floats, frozen
from situs.hardware import Cluster, Device

_MODELS: dict[str, type[ExecutionModel]] = {
    "sequential": Sequential,
    "dataflow": Dataflow,
    "pipeline": Pipeline,
    "offload": Offload,
}
# A measured time is not known to more digits than these, and they keep the file small.
_DIGITS = 6


def rounded(values: Floats, digits: int = _DIGITS) -> list[Any]:
    """Rounded numbers, nested like ``values``; None for not finite, which JSON cannot say."""
    if values.ndim > 1:
        return [rounded(row, digits) for row in values]
    return [float(f"{v:.{digits}g}") if math.isfinite(v) else None for v in values.tolist()]


def _array(values: Any) -> Floats:
    return frozen(np.array(values, dtype=np.float64), np.float64)


def _infinite(values: list[Any]) -> Floats:
    """The array that ``rounded`` wrote."""
    array = np.array(values, dtype=np.float64)
    array[np.isnan(array)] = np.inf
    return frozen(array, np.float64)


def problem_to_record(problem: Problem) -> dict[str, Any]:
    """Costs, limits and execution model as JSON values; graph and devices are kept elsewhere.

    Times are rounded to six digits. Transfer sizes are left out where they are the tensors' bytes.
    """
    costs, limits = problem.costs, problem.limits
    own_sizes = np.array_equal(costs.transfer_size, problem.graph.tensor_bytes)
    return {
        "execution_model": type(problem.model).__name__.lower(),
        "execution_parameters": asdict(problem.model),
        "cost_source": costs.source,
        "notes": [list(pair) for pair in costs.notes],
        "seconds": rounded(costs.seconds),
        "transfer_size": None if own_sizes else rounded(costs.transfer_size),
        "link_latency_s": rounded(costs.link_latency_s),
        "link_s_per_byte": rounded(costs.link_s_per_byte),
        "boundary_s": rounded(costs.boundary_s),
        "memory_bytes": rounded(problem.memory_bytes),
        "streams": [device.streams for device in problem.cluster.devices],
        "pinned": None if limits.pinned is None else limits.pinned.tolist(),
        "forbidden": None if limits.forbidden is None else limits.forbidden.tolist(),
        "together": None if limits.together is None else limits.together.tolist(),
        "max_subgraphs": limits.max_subgraphs,
    }


def problem_from_record(record: Any, graph: Graph, devices: tuple[Device, ...]) -> Problem:
    """The problem that ``problem_to_record`` described.

    Raises:
        PlacementError: If the record is missing or malformed.
        ProblemError: If its numbers do not fit the graph and the devices.
    """
    if not isinstance(record, dict):
        raise PlacementError(
            "the placement file holds no costs (an earlier version wrote it); run situs place again"
        )
    try:
        parameters = dict(record["execution_parameters"])
        if "backward_types" in parameters:
            parameters["backward_types"] = tuple(map(str, parameters["backward_types"]))
        model = _MODELS[record["execution_model"]](**parameters)
        sizes = record["transfer_size"]
        costs = CostTable(
            seconds=_infinite(record["seconds"]).reshape(graph.num_ops, len(devices)),
            transfer_size=_array(graph.tensor_bytes if sizes is None else sizes),
            link_latency_s=_infinite(record["link_latency_s"]),
            link_s_per_byte=_array(record["link_s_per_byte"]),
            boundary_s=_array(record["boundary_s"]),
            source=str(record["cost_source"]),
            notes=tuple((str(k), str(v)) for k, v in record["notes"]),
        )
        pinned, together, forbidden = (record[k] for k in ("pinned", "together", "forbidden"))
        limits = Limits(
            memory_bytes=_infinite(record["memory_bytes"]),
            pinned=None if pinned is None else frozen(pinned, np.int32),
            forbidden=None if forbidden is None else frozen(forbidden, np.bool_),
            max_subgraphs=record["max_subgraphs"],
            together=None if together is None else frozen(together, np.int32),
        )
        streams = [int(k) for k in record["streams"]]
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise PlacementError(
            f"the costs in the placement file are damaged: bad or missing {error}; "
            "run situs place again"
        ) from error
    if len(streams) != len(devices):
        raise PlacementError("the costs in the placement file are of other devices than it names")
    running = tuple(replace(d, streams=k) for d, k in zip(devices, streams, strict=True))
    return Problem(graph, Cluster(running), costs, model, limits)
