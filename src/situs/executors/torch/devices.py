"""PyTorch's devices of this machine, and how tensors get from one to another."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch

from situs.errors import ClusterError
from situs.hardware import Cluster, Device

_NAME = re.compile(r"(cpu|meta|cuda|xpu|mps)(?::([0-9]+))?")


def torch_cluster(names: Sequence[str] = ()) -> Cluster:
    """PyTorch's devices of this machine.

    ``cpu:1``, ``cpu:2``, ... are virtual: the CPU again, with copies of what is moved there.
    ``meta`` computes shapes only.

    Args:
        names: As PyTorch names them; empty = the CPU and every accelerator.

    Raises:
        ClusterError: If PyTorch does not have one of them here.
    """
    here = _accelerators()
    return Cluster(tuple(_device(name, here) for name in names or ["cpu", *here]), (), "torch")


def real(name: str) -> torch.device:
    """The device that does the work: a virtual CPU is the CPU."""
    return torch.device("cpu" if name.startswith("cpu") else name)


def moved(value: Any, source: str, target: str) -> Any:
    """A tensor of ``source`` on ``target``, always in memory of its own; other values as they are.

    Names are compared, not PyTorch's devices, so that a virtual CPU gets copies too.
    """
    if not isinstance(value, torch.Tensor) or source == target:
        return value
    return value.to(real(target), copy=True)


def _accelerators() -> list[str]:
    found = torch.accelerator.current_accelerator(check_available=True)
    if found is None:
        return []
    return [f"{found.type}:{k}" for k in range(torch.accelerator.device_count())]


def _device(name: str, here: Sequence[str]) -> Device:
    match = _NAME.fullmatch(name)
    known = ", ".join(["cpu", "cpu:1 (virtual)", *here, "meta"])
    if match is None or (match[1] not in ("cpu", "meta") and name not in here):
        raise ClusterError(f"PyTorch has no device {name!r} here; devices are {known}")
    kind = match[1]
    if kind in ("cpu", "meta"):
        virtual = kind == "cpu" and match[2] not in (None, "0")
        return Device(name, "cpu" if kind == "cpu" else "other", f"PyTorch {kind}", virtual=virtual)
    if kind != "cuda":
        return Device(name, "gpu", f"PyTorch {kind}")
    properties = torch.cuda.get_device_properties(name)
    return Device(
        name,
        "gpu",
        properties.name,
        float(properties.total_memory),
        uuid=str(getattr(properties, "uuid", "")),
    )
