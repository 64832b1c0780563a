"""What a measurement depends on beside the model: machine, versions, load."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version


def environment() -> dict[str, str]:
    """Machine, processor, cores, system and package versions, as texts."""
    texts = {
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0),
        "system": platform.platform(),
        "python": sys.version.split()[0],
        "load": " ".join(f"{x:.2f}" for x in os.getloadavg()),
    }
    for package in ("situs", "openvino", "numpy"):
        try:
            texts[package] = version(package)
        except PackageNotFoundError:
            texts[package] = "not installed"
    return texts


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()
