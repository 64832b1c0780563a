"""Read back from a compiled HETERO model which op really runs in which sub-graph and where."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from situs.core import Placement
from situs.executors.executor import Difference, Realised
from situs.executors.runtime import telling_properties
from situs.graph import Graph

if TYPE_CHECKING:
    import openvino as ov


def info_text(node: ov.Node, key: str) -> str:
    """One entry of a runtime node's information as text; empty if there is none."""
    info = node.get_rt_info()
    if key not in info:
        return ""
    value: Any = info[key]
    return str(value.value if hasattr(value, "value") else value)


def split_names(text: str, known: Collection[str]) -> list[str]:
    """Split ``originalLayersNames`` at commas, keeping known names that contain commas whole."""
    if text in known:
        return [text]
    tokens = text.split(",") if text else []
    names: list[str] = []
    start = 0
    while start < len(tokens):
        # The longest run of tokens that is a known name; an unknown token is the runtime's own.
        for end in range(len(tokens), start, -1):
            name = ",".join(tokens[start:end])
            if name in known:
                names.append(name)
                start = end
                break
        else:
            start += 1
    return names


def _subgraph_of_ops(compiled: ov.CompiledModel, graph: Graph) -> tuple[np.ndarray, int]:
    """``int32[N]`` sub-graph of each op (-1 = runs nowhere by itself), and how many there are."""
    subgraph = np.full(graph.num_ops, -1, dtype=np.int32)
    current, last_order = -1, 1 << 62
    for node in compiled.get_runtime_model().get_ordered_ops():
        order = int(info_text(node, "execOrder") or 0)
        # HETERO lists its sub-models one after another, each numbered from 0.
        if order <= last_order:
            current += 1
        last_order = order
        for name in split_names(info_text(node, "originalLayersNames"), graph.op_index):
            op = graph.op_index[name]
            if subgraph[op] < 0:
                subgraph[op] = current
    return subgraph, current + 1


def realised_plain(
    compiled: ov.CompiledModel, graph: Graph, placement: Placement, device: str, note: str
) -> Realised:
    """A uniform placement that was compiled as the plain device."""
    number = placement.devices.index(device)
    properties = {key: compiled.get_property(key) for key in _readable(compiled)}
    ran = {name.split(".")[0] for name in properties.get("EXECUTION_DEVICES", [device])}
    differences = (
        ()
        if device.split(".")[0] in ran
        else (
            Difference("(all)", device, ", ".join(sorted(ran)), "the runtime chose another device"),
        )
    )
    return Realised(
        device=np.full(graph.num_ops, number, dtype=np.int32),
        subgraph=np.zeros(graph.num_ops, dtype=np.int32),
        subgraphs=1,
        differences=differences,
        configuration=tuple(telling_properties(properties, device)),
        notes=(note,) if note else (),
    )


def _readable(compiled: ov.CompiledModel) -> list[str]:
    return [k for k in compiled.get_property("SUPPORTED_PROPERTIES") if k != "SUPPORTED_PROPERTIES"]


def realised_hetero(compiled: ov.CompiledModel, graph: Graph, placement: Placement) -> Realised:
    """Where HETERO really put each op.

    The runtime tells the ops of each sub-graph, the number of sub-graphs, and the devices in the
    order of their first sub-graph. The device of a sub-graph is the one that most of its ops were
    planned on, and the order of first appearance must then agree with what the runtime says; where
    it does not, every op of the doubtful sub-graphs is reported as a difference.
    """
    subgraph, listed = _subgraph_of_ops(compiled, graph)
    total = int(compiled.get_property("HETERO_NUMBER_OF_SUBMODELS"))
    executed = [str(name) for name in compiled.get_property("EXECUTION_DEVICES")]
    planned = placement.assignment
    votes = np.zeros((max(listed, 1), len(placement.devices)), dtype=np.int64)
    present = subgraph >= 0
    np.add.at(votes, (subgraph[present], planned[present]), 1)
    device_of = votes.argmax(axis=1)
    used = set(planned[present].tolist())
    silent = [placement.devices[d] for d in sorted(used) if placement.devices[d] not in executed]
    causes: dict[str, str] = {}
    if silent:
        executed_number = placement.devices.index(executed[0]) if executed else -1
        device_of[np.isin(device_of, [placement.devices.index(s) for s in silent])] = (
            executed_number
        )
        causes["silent"] = f"the runtime gave {', '.join(silent)} no sub-graph at all"
    appearance: list[str] = []
    for number in device_of[votes.sum(axis=1) > 0]:
        name = placement.devices[int(number)]
        if name not in appearance:
            appearance.append(name)
    consistent = [name for name in executed if name in appearance] == appearance
    realised = np.where(present, device_of[np.maximum(subgraph, 0)], -1).astype(np.int32)
    differences = []
    for op in np.flatnonzero(present & (realised != planned)):
        name = placement.devices[int(planned[op])]
        cause = (
            causes["silent"] if name in silent else "the runtime merged it into another sub-graph"
        )
        differences.append(
            Difference(graph.op_names[op], name, placement.devices[int(realised[op])], cause)
        )
    if not consistent or (listed != total and listed > 0):
        differences.append(
            Difference(
                "(sub-graphs)",
                f"{listed} on {', '.join(appearance)}",
                f"{total} on {', '.join(executed)}",
                "the runtime's own count or order of devices does not match its list of ops",
            )
        )
    configuration = []
    for name, properties in compiled.get_property("DEVICE_PROPERTIES").items():
        configuration += telling_properties(properties, str(name))
    return Realised(realised, subgraph, total, tuple(differences), tuple(configuration))
