"""The OpenVINO core of this process, its devices, and virtual copies of the CPU."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from situs.errors import ClusterError
from situs.hardware import Cluster, Device

if TYPE_CHECKING:
    import openvino as ov

_ALIASES = {
    "threads": "INFERENCE_NUM_THREADS",
    "precision": "INFERENCE_PRECISION_HINT",
    "pinning": "ENABLE_CPU_PINNING",
    "streams": "NUM_STREAMS",
}
_NAME = re.compile(r"[A-Z][A-Z0-9_.]*")
PRECISIONS = ("f32", "f16", "bf16", "native")


@cache
def core() -> ov.Core:
    """The one ``ov.Core`` of this process (virtual devices are registered in it)."""
    import openvino as ov

    return ov.Core()


def first_line(error: Exception) -> str:
    """The line of an OpenVINO error that says what is wrong, without the list of source files."""
    lines = [line.strip() for line in str(error).splitlines()]
    telling = [s for s in lines if s and not s.startswith(("Exception from", "Check '"))]
    return (telling or [s for s in lines if s] or [type(error).__name__])[-1]


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """A device that the user asked for: its name and properties, ``NAME:key=value,key=value``."""

    name: str
    properties: tuple[tuple[str, str], ...] = ()
    virtual: bool = False


def parse_device(text: str, virtual: bool = False) -> DeviceSpec:
    """Read ``CPU_B:threads=1``; short keys are threads, precision, pinning, streams.

    Raises:
        ClusterError: If the text is malformed, or a virtual name does not contain ``CPU``.
    """
    name, _, rest = text.strip().partition(":")
    name = name.strip().upper()
    if not _NAME.fullmatch(name):
        raise ClusterError(f"device {text!r}: write NAME or NAME:key=value,key=value")
    if virtual and ("CPU" not in name or name == "CPU"):
        raise ClusterError(
            f"virtual device {name!r}: it is a second copy of the CPU, so its name must contain "
            "CPU and differ from it (CPU_B)"
        )
    properties: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in rest.split(","))):
        key, equals, value = pair.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise ClusterError(f"device {text!r}: {pair!r} is not key=value")
        properties[_ALIASES.get(key.strip().lower(), key.strip().upper())] = value.strip()
    return DeviceSpec(name, tuple(sorted(properties.items())), virtual)


def register_virtual(name: str) -> None:
    """Register a second copy of OpenVINO's CPU plugin as ``name``, once per process.

    Raises:
        ClusterError: If the plugin's library is not where this OpenVINO keeps it.
    """
    import openvino as ov

    if name in core().available_devices:
        return
    library = Path(ov.__file__).parent / "libs" / "libopenvino_intel_cpu_plugin.so"
    if not library.exists():
        raise ClusterError(f"virtual device {name}: no CPU plugin at {library}")
    core().register_plugin(str(library), name)


def _property(name: str, key: str) -> Any:
    try:
        return core().get_property(name, key)
    except RuntimeError:
        return None


def _kind(name: str) -> str:
    for kind in ("cpu", "gpu", "npu"):
        if kind.upper() in name.upper():
            return kind
    return "other"


def discover(
    wanted: Sequence[DeviceSpec] = (), precision: str = "f32", include_all: bool = True
) -> Cluster:
    """Describe OpenVINO's devices as a cluster without links (links are measured).

    Args:
        wanted: Devices to use, in order; virtual ones are registered. Empty = all available.
        precision: Inference precision set on every device that has one; ``native`` = its default.
        include_all: With empty ``wanted``, all devices that OpenVINO lists.

    Raises:
        ClusterError: For a device that OpenVINO does not list, naming those that it does.
    """
    if precision not in PRECISIONS:
        raise ClusterError(f"precision {precision!r} is not one of {', '.join(PRECISIONS)}")
    for spec in wanted:
        if spec.virtual:
            register_virtual(spec.name)
    available = core().available_devices
    specs = list(wanted) or [DeviceSpec(name) for name in available if include_all]
    if not specs:
        raise ClusterError("OpenVINO lists no device; reinstall openvino or its drivers")
    devices = []
    for spec in specs:
        if spec.name not in available:
            raise ClusterError(
                f"unknown device {spec.name!r}; OpenVINO lists {', '.join(available)}"
                + ("" if "CPU" not in spec.name else f"; a second CPU copy: --virtual {spec.name}")
            )
        devices.append(_describe(spec, precision))
    return Cluster(tuple(devices), (), "detected")


def _describe(spec: DeviceSpec, precision: str) -> Device:
    name = spec.name
    memory = _property(name, "GPU_DEVICE_TOTAL_MEM_SIZE") or _property(
        name, "NPU_DEVICE_TOTAL_MEM_SIZE"
    )
    uuid = _property(name, "DEVICE_UUID")
    properties = dict(spec.properties)
    if precision != "native" and "INFERENCE_PRECISION_HINT" in (
        _property(name, "SUPPORTED_PROPERTIES") or {}
    ):
        properties.setdefault("INFERENCE_PRECISION_HINT", precision)
    return Device(
        name=name,
        kind=_kind(name),
        full_name=str(_property(name, "FULL_DEVICE_NAME") or name),
        memory_bytes=float(memory) if memory else math.inf,
        virtual=spec.virtual,
        uuid=str(uuid or ""),
        precision=properties.get("INFERENCE_PRECISION_HINT", "native"),
        properties=tuple(sorted(properties.items())),
        source="detected by OpenVINO",
    )


def capabilities(name: str) -> list[str]:
    """What precisions and features OpenVINO says that a device has."""
    return sorted(str(c) for c in _property(name, "OPTIMIZATION_CAPABILITIES") or [])


_TELLING = (
    "INFERENCE_NUM_THREADS",
    "NUM_STREAMS",
    "INFERENCE_PRECISION_HINT",
    "ENABLE_CPU_PINNING",
    "PERFORMANCE_HINT",
    "EXECUTION_DEVICES",
)


def _text(value: Any) -> str:
    if isinstance(value, list | tuple | set):
        return ",".join(str(v) for v in value)
    # An element type prints as <Type: 'float32'>; its short name is f32.
    return str(value.get_type_name()) if hasattr(value, "get_type_name") else str(value)


def telling_properties(properties: Mapping[str, Any], device: str) -> list[tuple[str, str]]:
    """The properties that decide what a measurement means, as ``(device.KEY, value)`` pairs."""
    return [(f"{device}.{key}", _text(properties[key])) for key in _TELLING if key in properties]


def with_properties(device: Device, extra: Mapping[str, str]) -> Device:
    """The device with more properties to compile with; its own win."""
    return replace(device, properties=tuple(sorted({**extra, **dict(device.properties)}.items())))


def tensor_array(tensor: ov.Tensor) -> np.ndarray[Any, Any]:
    """A copy of a tensor's content; strings as a text array."""
    data = tensor.str_data if tensor.get_element_type().get_type_name() == "string" else tensor.data
    return np.array(data)
