"""``situs devices``: what this machine offers."""

from __future__ import annotations

import math

from rich.table import Table

from situs import api
from situs.cli.output import Json, Virtual, out, print_json
from situs.executors import capabilities


def devices(virtual: Virtual = None, json: Json = False) -> None:
    """List the devices of this machine, with identity, memory and capabilities.

    Example: situs devices --virtual CPU_B:threads=1
    """
    cluster = api.devices((), virtual or [], "native")
    rows = [
        {
            "name": device.name,
            "kind": device.kind,
            "full_name": device.full_name,
            "virtual": device.virtual,
            "memory_bytes": None if math.isinf(device.memory_bytes) else device.memory_bytes,
            "uuid": device.uuid or None,
            "capabilities": capabilities(device.name),
            "properties": dict(device.properties),
        }
        for device in cluster.devices
    ]
    if json:
        print_json({"devices": rows})
        return
    table = Table(box=None)
    for heading in ("device", "kind", "name", "memory", "capabilities"):
        table.add_column(heading)
    for device in cluster.devices:
        memory = device.memory_bytes
        table.add_row(
            device.label,
            device.kind,
            device.full_name,
            "host memory" if math.isinf(memory) else f"{memory / 2**30:.1f} GiB",
            ", ".join(capabilities(device.name)),
        )
    out.print(table)
