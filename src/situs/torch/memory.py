"""Memory limits as people write them: ``cuda:0=20GiB``."""

from __future__ import annotations

import re
from collections.abc import Mapping

from situs.errors import ParameterError

CPU, DISK = "cpu", "disk"
OFFLOAD = (CPU, DISK)
_UNITS = {"": 1, "B": 1} | {
    prefix + suffix: base**power
    for base, suffix in ((1000, "B"), (1024, "iB"))
    for power, prefix in enumerate("KMGT", 1)
}
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")


def parse_memory(limits: Mapping[int | str, int | str]) -> dict[str, int]:
    """Bytes by device name, in the order given; ``0`` and ``"0"`` mean ``cuda:0``, as elsewhere.

    Sizes are whole bytes or text with a unit: ``20GiB`` (2^30), ``20GB`` (10^9), ``500MB``.

    Raises:
        ParameterError: If a size cannot be read, a device is given twice, or there is none.
    """
    found: dict[str, int] = {}
    for device, size in limits.items():
        name = str(device).strip()
        name = f"cuda:{name}" if name.isdigit() else name
        if not name:
            raise ParameterError("a memory limit needs a device: write cuda:0=20GiB")
        if name in found:
            raise ParameterError(f"max_memory: device {name} is given twice")
        found[name] = _bytes(name, size)
    if not found:
        raise ParameterError("max_memory: give at least one device, such as cuda:0=20GiB")
    return found


def _bytes(device: str, size: int | str) -> int:
    match = _SIZE.fullmatch(str(size))
    units = {unit.upper(): factor for unit, factor in _UNITS.items()}
    if match is None or match[2].upper() not in units:
        raise ParameterError(
            f"max_memory: {device}={size!r} is not a size; write 20GiB, 500MB or a number of bytes"
        )
    return int(float(match[1]) * units[match[2].upper()])
