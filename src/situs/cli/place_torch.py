"""``situs place --framework torch``: a device map for accelerate and transformers."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.markup import escape
from rich.table import Table

from situs.cli.output import err, interruptible, milliseconds, out, print_json, print_pairs
from situs.core.placement_file import write_placement
from situs.errors import ParameterError, WorkError, require_extra

if TYPE_CHECKING:
    from situs.torch import DeviceMap, Prediction


def place_torch(
    model: str,
    max_memory: Sequence[str],
    objective: str,
    request: tuple[int, int, int],
    machine: str,
    counting: str,
    output: Path | None,
    json: bool,
) -> None:
    """Map a configuration's modules to devices; print, and write the map where it is asked for."""
    limits = split_limits(max_memory)
    require_torch()
    from situs.importers.torch.configurations import load_configuration
    from situs.torch import Request, device_map

    loaded = load_configuration(model)
    with _solver_noise_to_stderr():
        found = device_map(
            loaded,
            limits,
            objective,  # type: ignore[arg-type]  # device_map checks it
            Request(*request),
            machine,
            counting,  # type: ignore[arg-type]
        )
    record = record_of(found) | {"model": model}
    if output is not None and found.best is not None:
        import json as text

        output.write_text(text.dumps(found.device_map, indent=1) + "\n", encoding="utf-8")
        record["file"] = str(output)
    if json:
        print_json(record)
    else:
        show(found)
        if output is not None and found.best is not None:
            out.print(f"written to {escape(str(output))}", soft_wrap=True)
    if found.best is None:
        err.print(f"error: {found.detail}", markup=False, soft_wrap=True)
        raise typer.Exit(1)


def require_torch() -> None:
    """Say what to install where PyTorch or the libraries around it are missing.

    Raises:
        MissingExtraError: If one is.
    """
    require_extra("torch", "torch", "transformers", "accelerate")


def split_limits(texts: Sequence[str]) -> dict[int | str, int | str]:
    """Read ``cuda:0=20GiB,cpu=60GiB``; sizes are checked later.

    Raises:
        ParameterError: If a part is not DEVICE=SIZE, or a device is given twice.
    """
    limits: dict[int | str, int | str] = {}
    for part in (p.strip() for text in texts for p in text.split(",") if p.strip()):
        device, equals, size = part.partition("=")
        if not equals or not device.strip() or not size.strip():
            raise ParameterError(f"--max-memory {part!r}: write DEVICE=SIZE, as in cuda:0=20GiB")
        if device.strip() in limits:
            raise ParameterError(f"--max-memory: device {device.strip()} is given twice")
        limits[device.strip()] = size.strip()
    if not limits:
        raise ParameterError(
            "--framework torch needs --max-memory, as in --max-memory cuda:0=20GiB,cpu=60GiB"
        )
    return limits


def parse_request(text: str) -> tuple[int, int, int]:
    """Read ``BATCH,PROMPT,NEW``.

    Raises:
        ParameterError: If it is not three whole numbers.
    """
    parts = text.split(",")
    if len(parts) != 3 or not all(part.strip().isdigit() for part in parts):
        raise ParameterError(f"--tokens {text!r}: write batch,prompt,new, as in 1,512,128")
    batch, prompt, new = (int(part) for part in parts)
    return batch, prompt, new


@contextmanager
def _solver_noise_to_stderr() -> Iterator[None]:
    """HiGHS writes some remarks to the process's stdout, where ``--json`` wants JSON only."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def place_program(
    model: str,
    max_memory: Sequence[str],
    objective: str,
    machine: str,
    placers: Sequence[str],
    seed: int,
    output: Path,
    json: bool,
) -> None:
    """Place an exported program (``.pt2``) op by op; print, and write the placement file."""
    limits = split_limits(max_memory)
    require_torch()
    from situs.torch import import_exported, parse_memory, place_ops
    from situs.torch.placing import PLACERS

    imported = import_exported(model)
    with interruptible() as flag, _solver_noise_to_stderr():
        found = place_ops(
            imported,
            parse_memory(limits),
            objective,
            machine,
            placers or PLACERS,
            seed,
            flag,
        )
    if found.placement is None:
        raise WorkError(
            f"{model}: no placement within the limits was found; give a device more memory"
        )
    write_placement(output, found.file(), imported.graph)
    record = {
        "model": imported.graph.name,
        "exported_by": imported.model.how,
        "simulated": True,
        "objective": objective,
        "predicted_s": found.seconds,
        "lower_bound_s": found.bound_s,
        "placer": found.placer,
        "ops": found.placement.counts(),
        "file": str(output),
    }
    if json:
        print_json(record)
        return
    ops = ", ".join(f"{name} {count}" for name, count in found.placement.counts().items())
    print_pairs(
        {
            objective: f"{milliseconds(found.seconds)} ms per request (simulated on {machine})",
            "lower bound": f"{milliseconds(found.bound_s)} ms (simulated)",
            "found by": found.placer,
            "ops": ops,
            "written to": str(output),
        }
    )


def record_of(found: DeviceMap) -> dict[str, Any]:
    """The outcome as plain values; times are simulated."""
    return {
        "status": found.status.name.lower(),
        "simulated": True,
        "objective": found.objective,
        "device_map": found.best.device_map if found.best else None,
        "ours": asdict(found.best) if found.best else None,
        "accelerate": asdict(found.accelerate) if found.accelerate else None,
        "accelerate_detail": found.accelerate_detail,
        "bound": found.bound if found.best else None,
        "gap": found.gap if found.best else None,
        "short_bytes": found.short_bytes,
        "limits_bytes": found.limits,
        "detail": found.detail,
    }


def show(found: DeviceMap) -> None:
    """Print both maps' figures, and where our modules go."""
    table = Table(title=f"device maps (simulated; {escape(found.detail)})", box=None)
    for heading in ("map", "latency s", "time per request s", "fullest %", "bytes per device"):
        table.add_column(heading, justify="left" if heading == "map" else "right")
    for name, one in (("situs", found.best), ("accelerate", found.accelerate)):
        if one is not None:
            table.add_row(name, *_figures(one, found.limits))
        elif name == "accelerate":
            table.add_row(name, escape(f"none: {found.accelerate_detail}"))
    out.print(table)
    if found.best is None:
        return
    for device, modules in _grouped(found.best.device_map).items():
        out.print(f"{device}: {modules}", markup=False, soft_wrap=True)
    if found.best.main_device is not None:
        out.print(f"pass main_device={found.best.main_device!r} to dispatch_model", markup=False)
    out.print(
        f"{found.objective}: at most {found.gap * 100:.2f} % from optimal by these costs (proven)"
    )


def _figures(one: Prediction, limits: Mapping[str, int]) -> list[str]:
    held = ", ".join(
        f"{d} {b / 2**30:.2f} of {limits[d] / 2**30:.2f} GiB" for d, b in one.used_bytes.items()
    )
    return [f"{one.latency_s:.4f}", f"{one.bottleneck_s:.4f}", f"{one.fullest * 100:.1f}", held]


def _grouped(mapped: Mapping[str, str]) -> dict[str, str]:
    """Modules per device, runs of numbered ones as ``first .. last``."""
    runs: dict[str, list[list[str]]] = {}
    last = None
    for path, device in mapped.items():
        groups = runs.setdefault(device, [])
        stem = path.rpartition(".")
        if last == device and groups and groups[-1][-1].rpartition(".")[0] == stem[0] != "":
            groups[-1].append(path)
        else:
            groups.append([path])
        last = device
    return {
        device: ", ".join(g[0] if len(g) == 1 else f"{g[0]} .. {g[-1]}" for g in groups)
        for device, groups in runs.items()
    }
