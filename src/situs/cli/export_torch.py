"""``situs export --to llama.cpp`` and ``--to vllm``: a device map as another tool's arguments."""

from __future__ import annotations

import json as text
import shlex
from pathlib import Path

from situs.cli.output import out, print_json
from situs.cli.place_torch import require_torch
from situs.core.placement_file import check_writable, write_text
from situs.errors import ParameterError, PlacementError

SERVERS = ("llama.cpp", "vllm")
_MAX_BYTES = 1 << 26


def export_map(
    path: Path,
    to: str,
    model: Path | None,
    main_device: str | None,
    output: Path | None,
    json: bool,
) -> None:
    """Print the arguments, and write them where it is asked for."""
    if model is None:
        raise ParameterError(f"--to {to} reads the model's layers: give --model config.json")
    if output is not None:
        check_writable(output)
    mapped = read_map(path)
    require_torch()
    from situs.importers.torch.configurations import load_configuration
    from situs.torch import llama_cpp_arguments, vllm_settings

    loaded = load_configuration(model)
    if to == "llama.cpp":
        words = llama_cpp_arguments(loaded, mapped, main_device)
        environment: dict[str, str] = {}
    else:
        settings = vllm_settings(loaded, mapped)
        environment = {k: v for k, v in settings.items() if not k.startswith("-")}
        words = [w for k, v in settings.items() if k.startswith("-") for w in (k, v)]
    line = " ".join([*(f"{k}={v}" for k, v in environment.items()), shlex.join(words)])
    if output is not None:
        write_text(output, line + "\n")
    if json:
        print_json({"format": to, "environment": environment, "arguments": words})
    else:
        out.print(line, markup=False, soft_wrap=True)


def read_map(path: Path) -> dict[str, str]:
    """Read a device map, as ``situs place --framework torch --output`` writes it.

    Raises:
        PlacementError: If it is not an object of texts.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise PlacementError(f"{path}: over 64 MiB; this is not a device map")
        found = text.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise PlacementError(f"{path}: cannot be read as a device map: {error}") from error
    if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
        raise PlacementError(
            f"{path}: not a device map (module: device); write one with situs place "
            "--framework torch --output"
        )
    return found
