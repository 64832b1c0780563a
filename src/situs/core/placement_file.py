"""The placement file: a placement with the identity of its devices and what was measured of it."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from situs.core.placement import Placement
from situs.errors import GraphError, OutputError, PlacementError
from situs.graph import Graph, graph_from_json, graph_to_json
from situs.hardware import Cluster, Device

SCHEMA = "situs-placement/1"
_MAX_BYTES = 1 << 28


@dataclass(frozen=True, slots=True)
class PlacementFile:
    """A placement, the devices that it was found on, and the record of how it was found.

    Attributes:
        placement: Bound to its graph by fingerprint.
        devices: Identity of every device that it names.
        record: Free JSON object: measurements, placer, parameters, seed, versions, machine.
    """

    placement: Placement
    devices: tuple[Device, ...]
    record: dict[str, Any] = field(default_factory=dict)

    def require_devices(self, cluster: Cluster) -> None:
        """Check that every device of the placement is here and is still the same hardware.

        Raises:
            PlacementError: If one is missing, or its name now belongs to other hardware.
        """
        for device in self.devices:
            here = next((d for d in cluster.devices if d.name == device.name), None)
            if here is None:
                raise PlacementError(
                    f"the placement uses device {device.name} ({device.full_name}), which is not "
                    f"here; devices are {', '.join(cluster.names)}"
                )
            if (here.full_name, here.uuid) != (device.full_name, device.uuid):
                raise PlacementError(
                    f"device {device.name} was {device.full_name} {device.uuid} when the placement "
                    f"was found and is {here.full_name} {here.uuid} now; run situs place again"
                )


def check_writable(path: Path) -> None:
    """Fail early if ``path`` could not be written later; leaves nothing behind.

    Raises:
        OutputError: If its folder is missing or not writable, or it is a folder itself.
    """
    if path.is_dir():
        raise OutputError(f"{path}: is a folder; name a file to write")
    folder = path.parent
    if not folder.is_dir():
        raise OutputError(f"{path}: the folder {folder} does not exist; create it first")
    try:
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}; choose another") from error


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all.

    Raises:
        OutputError: If it cannot be written; nothing is left half-written.
    """
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name[:100]}.", delete=False
        ) as file:
            temporary = file.name
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # A temporary file is private; the result should be as readable as any other new file.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise OutputError(f"{path}: cannot be written: {error.strerror}; choose another") from error


def placement_to_json(file: PlacementFile, graph: Graph) -> str:
    """The text of a placement file.

    Raises:
        PlacementError: If the placement does not belong to ``graph``.
    """
    file.placement.require(graph)
    names = file.placement.devices
    document = {
        "schema": SCHEMA,
        "model": graph.name,
        "graph": file.placement.graph,
        "devices": [
            {
                "name": d.name,
                "kind": d.kind,
                "full_name": d.full_name,
                "uuid": d.uuid,
                "virtual": d.virtual,
                "precision": d.precision,
                "properties": dict(d.properties),
            }
            for d in file.devices
        ],
        "ops": {
            name: names[int(d)]
            for name, d in zip(graph.op_names, file.placement.assignment, strict=True)
        },
        "structure": json.loads(graph_to_json(graph)),
        "record": file.record,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def placement_from_json(text: str, graph: Graph, origin: str = "placement") -> PlacementFile:
    """Read a placement file for ``graph``.

    Raises:
        PlacementError: If it is not one, belongs to another graph, or does not cover the ops.
    """
    try:
        document = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise PlacementError(f"{origin}: not a placement file: {error}") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise PlacementError(f"{origin}: not a placement file: 'schema' must be {SCHEMA!r}")
    try:
        devices = tuple(
            Device(
                name=str(d["name"]),
                kind=str(d["kind"]),
                full_name=str(d["full_name"]),
                uuid=str(d["uuid"]),
                virtual=bool(d["virtual"]),
                precision=str(d["precision"]),
                properties=tuple(sorted((str(k), str(v)) for k, v in d["properties"].items())),
            )
            for d in document["devices"]
        )
        names = tuple(d.name for d in devices)
        ops = {str(k): str(v) for k, v in document["ops"].items()}
        fingerprint = str(document["graph"])
        record = dict(document.get("record", {}))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise PlacementError(f"{origin}: not a placement file: bad or missing {error}") from error
    if fingerprint != graph.fingerprint:
        raise PlacementError(
            f"{origin}: belongs to another model ({document.get('model', '')!s:.80}, "
            f"{len(ops)} ops), not to {graph.name!r} ({graph.num_ops} ops); "
            "run situs place on this model"
        )
    missing = [name for name in graph.op_names if name not in ops]
    if missing or len(ops) != graph.num_ops:
        what = f"misses op {missing[0]!r}" if missing else "names ops that the model does not have"
        raise PlacementError(f"{origin}: {what}; run situs place on this model")
    strange = sorted(set(ops.values()) - set(names))
    if strange:
        raise PlacementError(f"{origin}: uses device {strange[0]!r}, which it does not describe")
    assignment = np.array([names.index(ops[name]) for name in graph.op_names], dtype=np.int32)
    return PlacementFile(Placement(fingerprint, names, assignment), devices, record)


def read_placement(path: Path, graph: Graph) -> PlacementFile:
    """Read a placement file from disk; see ``placement_from_json``.

    Raises:
        PlacementError: Also if the file cannot be read.
    """
    return placement_from_json(_text(path), graph, str(path))


def read_with_graph(path: Path) -> tuple[PlacementFile, Graph]:
    """Read a placement file together with the graph that it holds, without its model.

    Raises:
        PlacementError: If it cannot be read, is no placement file, or holds no graph.
    """
    text = _text(path)
    try:
        structure = json.loads(text)["structure"]
    except (json.JSONDecodeError, RecursionError, KeyError, TypeError) as error:
        raise PlacementError(
            f"{path}: not a placement file that holds its graph; run situs place again"
        ) from error
    try:
        graph = graph_from_json(json.dumps(structure))
    except GraphError as error:
        raise PlacementError(f"{path}: {error}; run situs place again") from error
    return placement_from_json(text, graph, str(path)), graph


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise PlacementError(f"{path}: over 256 MiB; this is not a placement file")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise PlacementError(f"{path}: cannot be read: {error}") from error


def write_placement(path: Path, file: PlacementFile, graph: Graph) -> None:
    """Write a placement file, whole or not at all.

    Raises:
        OutputError: If it cannot be written.
    """
    write_text(path, placement_to_json(file, graph))
