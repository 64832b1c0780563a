"""``situs doctor``: what is installed, which devices are seen, and what to do about the rest."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from situs import api
from situs.cli.output import Json, out, print_json

_PACKAGES = {
    "openvino": "",
    "numpy": "",
    "numba": "",
    "torch": "learn",
    "tensorboard": "learn",
    "highspy": "solve",
    "ortools": "solve",
    "pymetis": "solve",
    "plotly": "report",
    "fast-sugiyama": "report",
    "onnx": "report",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        what: Its name.
        ok: Whether it is as it should be.
        found: What was found.
        advice: What to do; empty if nothing.
    """

    what: str
    ok: bool
    found: str
    advice: str = ""


def packages() -> list[Finding]:
    """Version of every package that some part of Situs uses."""
    found = []
    for name, extra in _PACKAGES.items():
        try:
            found.append(Finding(name, True, version(name)))
        except PackageNotFoundError:
            advice = f"pip install 'situs[{extra}]'" if extra else "pip install situs"
            found.append(Finding(name, False, "not installed", advice))
    return found


def accelerators(
    kinds: set[str], devices: Path = Path("/dev"), loaders: Path = Path("/etc/OpenCL/vendors")
) -> list[Finding]:
    """Why a GPU or NPU is not seen by OpenVINO on Linux, as far as its files tell.

    Args:
        kinds: Kinds of the devices that OpenVINO lists.
        devices: Folder of the device files.
        loaders: Folder in which OpenCL drivers register.
    """
    found = []
    nodes = sorted((devices / "dri").glob("renderD*"))
    if "gpu" in kinds:
        found.append(Finding("GPU", True, "seen by OpenVINO"))
    elif not nodes:
        advice = "nothing, if there is no GPU; a container needs --device /dev/dri"
        found.append(Finding("GPU", True, f"no render node in {devices / 'dri'}", advice))
    elif not any(os.access(node, os.R_OK | os.W_OK) for node in nodes):
        advice = "add yourself to the group 'render' and log in again"
        found.append(Finding("GPU", False, f"{nodes[0]} may not be opened", advice))
    elif not list(loaders.glob("*.icd")):
        advice = "install the OpenCL driver of the GPU (Debian: intel-opencl-icd)"
        found.append(Finding("GPU", False, "a render node, but no OpenCL driver", advice))
    else:
        advice = "see that the OpenCL driver supports this GPU (clinfo lists what it sees)"
        found.append(Finding("GPU", False, "driver and render node, but not listed", advice))
    accel = sorted((devices / "accel").glob("accel*"))
    if "npu" in kinds:
        found.append(Finding("NPU", True, "seen by OpenVINO"))
    elif accel:
        advice = "install the user-space driver of the NPU (intel-driver-compiler-npu, level-zero)"
        found.append(Finding("NPU", False, f"{accel[0]} is there, but not listed", advice))
    return found


def doctor(json: Json = False) -> None:
    """Check what is installed and which devices are seen, and say what to do about the rest.

    Exit code 0 also when something is missing: not every machine needs everything.

    Example: situs doctor
    """
    cluster = api.devices()
    findings = packages()
    findings += [
        Finding(f"device {device.label}", True, device.full_name) for device in cluster.devices
    ]
    findings += accelerators({device.kind for device in cluster.devices})
    if len(cluster.devices) == 1:
        advice = "try --virtual CPU_B:threads=1, a second copy of the CPU"
        findings.append(Finding("devices", True, "one: there is nothing to split over", advice))
    if json:
        print_json({"findings": [asdict(finding) for finding in findings]})
        return
    table = Table(box=None)
    for heading in ("", "what", "found", "what to do"):
        table.add_column(heading)
    for f in findings:
        mark = "[green]ok[/green]" if f.ok else "[yellow]--[/yellow]"
        table.add_row(mark, escape(f.what), escape(f.found), escape(f.advice))
    out.print(table)
