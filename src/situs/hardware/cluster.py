"""A cluster: devices and the links between them, from code, TOML or the catalogue."""

from __future__ import annotations

import difflib
import math
import tomllib
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from situs.errors import ClusterError
from situs.hardware.device import Device, Link

_MAX_TOML_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Cluster:
    """Devices in a fixed order, and directed links; a pair without a link cannot exchange tensors.

    Raises:
        ClusterError: If there is no device, a name repeats, or a link names an unknown device.
    """

    devices: tuple[Device, ...]
    links: tuple[Link, ...] = ()
    name: str = ""

    def __post_init__(self) -> None:
        if not self.devices:
            raise ClusterError("a cluster needs at least one device")
        names = self.names
        if len(set(names)) != len(names):
            raise ClusterError(f"a device name appears twice: {', '.join(names)}")
        pairs = [(link.source, link.target) for link in self.links]
        for pair in pairs:
            for end in pair:
                if end not in names:
                    raise ClusterError(
                        f"link {pair[0]} -> {pair[1]}: unknown device {end!r}; "
                        f"devices are {', '.join(names)}"
                    )
        if len(set(pairs)) != len(pairs):
            raise ClusterError("a link is given twice for one ordered pair of devices")

    @property
    def names(self) -> tuple[str, ...]:
        """Device names in order."""
        return tuple(device.name for device in self.devices)

    @property
    def labels(self) -> tuple[str, ...]:
        """Device names as people see them, in order; virtual ones say so."""
        return tuple(device.label for device in self.devices)

    def index(self, name: str) -> int:
        """Number of a device by name, in any case.

        Raises:
            ClusterError: If there is no such device; names the devices and a near match.
        """
        upper = [n.upper() for n in self.names]
        if name.upper() in upper:
            return upper.index(name.upper())
        near = difflib.get_close_matches(name.upper(), upper, n=1)
        hint = f"; did you mean {self.names[upper.index(near[0])]}?" if near else ""
        raise ClusterError(f"unknown device {name!r}; devices are {', '.join(self.names)}{hint}")

    def link(self, source: int, target: int) -> Link | None:
        """The link between two device numbers, or None."""
        pair = (self.names[source], self.names[target])
        return next((k for k in self.links if (k.source, k.target) == pair), None)


def _values(cls: type, table: Any, where: str) -> dict[str, Any]:
    """Check a TOML table against a dataclass: known keys, right types, nothing required missing."""
    if not isinstance(table, dict):
        raise ClusterError(f"{where}: expected a table, got {type(table).__name__}")
    known = {f.name: f for f in fields(cls)}
    out: dict[str, Any] = {}
    for key, value in table.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; keys are {', '.join(known)}"
            raise ClusterError(f"{where}: unknown key {key!r}{hint}")
        kind = str(known[key].type)
        if key == "properties":
            if not isinstance(value, dict):
                raise ClusterError(f"{where}: properties must be a table")
            out[key] = tuple(sorted((str(k), str(v)) for k, v in value.items()))
        elif key == "type_efficiency":
            if not isinstance(value, dict) or not all(
                isinstance(v, int | float) and not isinstance(v, bool) for v in value.values()
            ):
                raise ClusterError(f"{where}: type_efficiency must be a table of numbers by type")
            out[key] = tuple(sorted((str(k), float(v)) for k, v in value.items()))
        elif kind == "float":
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ClusterError(f"{where}: {key} must be a number, got {value!r}")
            out[key] = float(value)
        elif kind == "int":
            if isinstance(value, bool) or not isinstance(value, int):
                raise ClusterError(f"{where}: {key} must be a whole number, got {value!r}")
            out[key] = value
        elif kind == "bool":
            if not isinstance(value, bool):
                raise ClusterError(f"{where}: {key} must be true or false, got {value!r}")
            out[key] = value
        elif not isinstance(value, str):
            raise ClusterError(f"{where}: {key} must be text, got {value!r}")
        else:
            out[key] = value
    missing = [
        f.name
        for f in fields(cls)
        if f.default is MISSING and f.default_factory is MISSING and f.name not in out
    ]
    if missing:
        raise ClusterError(f"{where}: missing {', '.join(missing)}")
    return out


def cluster_from_toml(text: str, origin: str = "cluster") -> Cluster:
    """Read ``[[device]]`` and ``[[link]]`` tables; a link with ``both = true`` goes both ways.

    Raises:
        ClusterError: With the place and what is allowed there.
    """
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ClusterError(f"{origin}: not valid TOML: {error}") from error
    unknown = set(document) - {"name", "device", "link"}
    if unknown:
        raise ClusterError(
            f"{origin}: unknown key {sorted(unknown)[0]!r}; keys are name, device, link"
        )
    for key in ("device", "link"):
        if not isinstance(document.get(key, []), list):
            raise ClusterError(f"{origin}: write [[{key}]], with two brackets")
    devices = [
        Device(**_values(Device, table, f"{origin}: device {i + 1}"))
        for i, table in enumerate(document.get("device", []))
    ]
    links: list[Link] = []
    for i, table in enumerate(document.get("link", [])):
        where = f"{origin}: link {i + 1}"
        if not isinstance(table, dict):
            raise ClusterError(f"{where}: expected a table")
        both = table.pop("both", False)
        if not isinstance(both, bool):
            raise ClusterError(f"{where}: both must be true or false, got {both!r}")
        values = _values(Link, table, where)
        links.append(Link(**values))
        if both:
            values["source"], values["target"] = values["target"], values["source"]
            links.append(Link(**values))
    return Cluster(tuple(devices), tuple(links), str(document.get("name", origin)))


def load_cluster(path: str | Path) -> Cluster:
    """Read a cluster from a TOML file.

    Raises:
        ClusterError: If the file cannot be read, is over 1 MiB, or is not a valid cluster.
    """
    path = Path(path)
    try:
        if path.stat().st_size > _MAX_TOML_BYTES:
            raise ClusterError(f"{path}: over 1 MiB; this is not a cluster description")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise ClusterError(f"{path}: cannot be read: {error}") from error
    return cluster_from_toml(text, str(path))


def _quote(text: str) -> str:
    escaped = "".join(
        f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) == 127 else {'"': '\\"', "\\": "\\\\"}.get(c, c)
        for c in text
    )
    return f'"{escaped}"'


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return "inf" if math.isinf(value) else repr(value)
    if isinstance(value, tuple):
        return "{ " + ", ".join(f"{_quote(k)} = {_toml_value(v)}" for k, v in value) + " }"
    return str(value) if isinstance(value, int) else _quote(value)


def cluster_to_toml(cluster: Cluster) -> str:
    """Write a cluster as TOML that ``cluster_from_toml`` reads back equal."""
    lines = [f"name = {_quote(cluster.name)}"]
    for heading, items in (("device", cluster.devices), ("link", cluster.links)):
        for item in items:
            lines.append(f"\n[[{heading}]]")
            lines += [f"{f.name} = {_toml_value(getattr(item, f.name))}" for f in fields(item)]
    return "\n".join(lines) + "\n"
