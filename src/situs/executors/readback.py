"""Read back from compiled models which op really runs in which sub-graph and where."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from situs.core import Placement
from situs.executors.executor import Difference, Realised
from situs.executors.runtime import telling_properties
from situs.graph import Graph
from situs.graph.arrays import Ints

if TYPE_CHECKING:
    import openvino as ov

_PREFIX = re.compile(r"subgraph(\d+): (.*)", re.DOTALL)


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


def original_ops(compiled: ov.CompiledModel, graph: Graph) -> dict[str, list[int]]:
    """The graph's ops that each runtime op runs, by the runtime op's name."""
    return {
        node.get_friendly_name(): [
            graph.op_index[name]
            for name in split_names(info_text(node, "originalLayersNames"), graph.op_index)
        ]
        for node in compiled.get_runtime_model().get_ordered_ops()
    }


def configuration_of(compiled: ov.CompiledModel, device: str) -> tuple[tuple[str, str], ...]:
    """Effective properties of a plainly compiled model."""
    readable = set(compiled.get_property("SUPPORTED_PROPERTIES")) - {"SUPPORTED_PROPERTIES"}
    return tuple(telling_properties({key: compiled.get_property(key) for key in readable}, device))


def realised_plain(
    compiled: ov.CompiledModel, graph: Graph, placement: Placement, device: str, note: str
) -> Realised:
    """A uniform placement that was compiled as the plain device."""
    configuration = configuration_of(compiled, device)
    executed = dict(configuration).get(f"{device}.EXECUTION_DEVICES", device)
    differences = (
        ()
        if device in {name.partition("(")[0] for name in executed.split(",")}
        else (Difference("(all)", device, executed, "the runtime chose another device"),)
    )
    return Realised(
        device=np.full(graph.num_ops, placement.devices.index(device), dtype=np.int32),
        subgraph=np.zeros(graph.num_ops, dtype=np.int32),
        subgraphs=1,
        differences=differences,
        configuration=configuration,
        notes=(note,),
    )


def realised_hetero(compiled: ov.CompiledModel, graph: Graph, placement: Placement) -> Realised:
    """What HETERO itself tells without running: devices, sub-graphs, properties; not op by op."""
    executed = [str(name) for name in compiled.get_property("EXECUTION_DEVICES")]
    differences = tuple(
        Difference("(all its ops)", name, ", ".join(executed), "the runtime left the device out")
        for name in placement.used
        if name not in executed
    )
    configuration: list[tuple[str, str]] = []
    for name, properties in compiled.get_property("DEVICE_PROPERTIES").items():
        configuration += telling_properties(properties, str(name))
    return Realised(
        device=np.full(graph.num_ops, -1, dtype=np.int32),
        subgraph=np.full(graph.num_ops, -1, dtype=np.int32),
        subgraphs=int(compiled.get_property("HETERO_NUMBER_OF_SUBMODELS")),
        differences=differences,
        configuration=tuple(configuration),
    )


def subgraph_of_ops(
    profiled_names: Sequence[str], owners: dict[str, list[int]], num_ops: int
) -> Ints:
    """``int32[N]`` sub-graph of each op from names ``subgraphK: op``; -1 = fused away."""
    subgraph = np.full(num_ops, -1, dtype=np.int32)
    for text in profiled_names:
        match = _PREFIX.fullmatch(text)
        if match is None:
            continue
        for op in owners.get(match[2], []):
            subgraph[op] = int(match[1])
    return subgraph


def realised_exactly(
    quick: Realised, graph: Graph, placement: Placement, subgraph: Ints, executed: Sequence[str]
) -> Realised:
    """Where each op runs, from the sub-graph that the runtime reports for it.

    A sub-graph's device is the one that most of its ops were planned on; devices in the order of
    their first sub-graph must then be those that the runtime lists, in its order.
    """
    planned, present = placement.assignment, subgraph >= 0
    votes = np.zeros((max(quick.subgraphs, 1), len(placement.devices)), dtype=np.int64)
    np.add.at(votes, (subgraph[present], planned[present]), 1)
    used = [placement.devices.index(name) for name in executed if name in placement.devices]
    votes[:, [d for d in range(len(placement.devices)) if d not in used]] = -1
    device_of = votes.argmax(axis=1).astype(np.int32)
    device = np.where(present, device_of[np.maximum(subgraph, 0)], -1).astype(np.int32)
    differences = list(quick.differences)
    for op in np.flatnonzero(present & (device != planned)):
        cause = (
            "the runtime left the device out"
            if int(planned[op]) not in used
            else f"the runtime put it into sub-graph {int(subgraph[op])}"
        )
        names = placement.devices
        differences.append(
            Difference(graph.op_names[op], names[planned[op]], names[device[op]], cause)
        )
    order = list(dict.fromkeys(int(device_of[k]) for k in np.unique(subgraph[present])))
    if order != [d for d in used if d in order]:
        differences.append(
            Difference(
                "(sub-graphs)",
                ", ".join(placement.devices[d] for d in order),
                ", ".join(executed),
                "the order of devices that the runtime tells does not match its sub-graphs",
            )
        )
    return Realised(
        device, subgraph, quick.subgraphs, tuple(differences), quick.configuration, quick.notes
    )
