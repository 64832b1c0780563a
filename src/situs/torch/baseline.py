"""What accelerate itself would do: ``infer_auto_device_map``, as an assignment of our blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from situs.errors import MissingExtraError
from situs.importers.torch.blocks import Blocks
from situs.torch.memory import DISK

if TYPE_CHECKING:
    import torch


def accelerate_map(
    model: torch.nn.Module, limits: Mapping[str, int], no_split: Sequence[str]
) -> dict[str, str]:
    """Accelerate's own map under ``limits`` (B per device); it sends to ``disk`` what is left."""
    infer_auto_device_map = _accelerate().infer_auto_device_map
    # Accelerate knows accelerators by number, and changes the dictionary.
    number = {d: int(d.rpartition(":")[2]) if ":" in d else d for d in limits if d != DISK}
    name = {key: device for device, key in number.items()}
    memory = {number[device]: limits[device] for device in number}
    found = infer_auto_device_map(model, max_memory=memory, no_split_module_classes=list(no_split))
    return {path: name.get(device, str(device)) for path, device in found.items()}


def devices_of(blocks: Blocks, mapped: Mapping[str, str]) -> list[str] | None:
    """The device of every block, by its longest prefix in the map; None if blocks are split."""
    devices = []
    for path in blocks.graph.op_names:
        inside = [key for key in mapped if key.startswith(f"{path}.")]
        device = device_at(path, mapped)
        if device is None or inside:
            return None
        devices.append(device)
    return devices


def device_at(path: str, mapped: Mapping[str, str]) -> str | None:
    """The device of a module or tensor, by its longest prefix in the map."""
    parts = path.split(".")
    prefixes = (".".join(parts[:n]) for n in range(len(parts), -1, -1))
    return next((mapped[prefix] for prefix in prefixes if prefix in mapped), None)


def cleaned(mapped: dict[str, str]) -> dict[str, str]:
    """The same map with one entry per module whose parts are all on one device."""
    clean: dict[str, str] = _accelerate().utils.modeling.clean_device_map(dict(mapped))
    return clean


def _accelerate() -> Any:
    try:
        import accelerate
    except ImportError:
        raise MissingExtraError("accelerate", "torch") from None
    return accelerate
