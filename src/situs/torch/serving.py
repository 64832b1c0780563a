"""A device map as arguments of llama.cpp or of vLLM, where those can say exactly the same."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from situs.errors import PlacementError
from situs.torch.baseline import device_at
from situs.torch.memory import CPU, DISK, OFFLOAD

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Decoder:
    """Where the parts of a decoder model are.

    Attributes:
        embedding: Device of the token embedding.
        layers: Device of each layer, in order.
        head: Device of the last norm and the output matrix.
        tied: Whether the embedding and the output matrix are one tensor.
    """

    embedding: str
    layers: tuple[str, ...]
    head: str
    tied: bool


def decoder(model: torch.nn.Module, mapped: Mapping[str, str]) -> Decoder:
    """Read a map of a decoder model.

    Args:
        model: On any device; ``meta`` is enough.
        mapped: Device by module path, as ``device_map`` gives.

    Raises:
        PlacementError: If the model is no plain decoder, or the map splits one of its layers.
    """
    name = type(model).__name__
    head = getattr(model, "get_output_embeddings", lambda: None)()
    if getattr(getattr(model, "config", None), "is_encoder_decoder", False) or head is None:
        raise PlacementError(f"{name}: only decoder models with an output matrix can be exported")
    embedding = model.get_input_embeddings()  # type: ignore[operator]
    kinds = set(getattr(model, "_no_split_modules", None) or ())
    layers = [(p, m) for p, m in model.named_modules() if type(m).__name__ in kinds]
    stems = {path.rpartition(".")[0] for path, _ in layers}
    if len(stems) != 1:
        raise PlacementError(f"{name}: its layers are in {len(stems)} lists, not in one")
    inside = tuple(f"{path}." for path, _ in layers)
    first: str | None = None
    last: str | None = None
    paths: dict[int, set[str]] = {}
    for path, tensor in model.named_parameters(remove_duplicate=False):
        paths.setdefault(id(tensor), set()).add(path)
        if path.startswith(inside):
            continue
        owner = model.get_submodule(path.rpartition(".")[0])
        device = _device(path, mapped)
        if owner is embedding:
            first = device
        elif owner is head or "norm" in path.lower() or path.rpartition(".")[0].endswith("ln_f"):
            if last not in (None, device):
                raise PlacementError(
                    f"the last norm is on {last} and the output matrix on {device}; both tools "
                    "keep them together: map them to one device"
                )
            last = device
        else:
            raise PlacementError(f"{path}: neither tool can say where this weight goes")
    devices = [_whole(path, model, mapped) for path, _ in layers]
    if first is None or last is None:
        raise PlacementError(f"{name}: it has no embedding or no output matrix of its own")
    return Decoder(first, tuple(devices), last, embedding.weight is head.weight)


def llama_cpp_arguments(
    model: torch.nn.Module, mapped: Mapping[str, str], main_device: str | None = None
) -> list[str]:
    """Arguments of ``llama-server`` and ``llama-cli`` that load each weight as the map says.

    ``--n-gpu-layers`` counts layers, the output included, and ``--tensor-split`` deals them out to
    the accelerators in the order of ``--device``: whole numbers whose sum is that count give each
    accelerator its number.
    Layers that are kept on the CPU and run by the main accelerator are ``--override-tensor``
    (``-ot``, ``pattern=buffer``) on top: their cache is then on that accelerator, as in the map.
    The embedding is on the CPU unless it is overridden.

    Args:
        model: The decoder model that was mapped.
        mapped: Its device map, on ``cpu`` and ``cuda:N``.
        main_device: Runs what is on ``cpu``; None = the map's first accelerator.

    Raises:
        PlacementError: If the arguments cannot say the same.

    Source: llama.cpp, tools/cli/README.md and docs/multi-gpu.md (arguments); ``load_tensors`` of
    src/llama-model.cpp (the split rule: layer ``i`` of ``n`` goes to the first accelerator whose
    cumulated share is above ``i / n``; the input stays on the CPU).
    """
    parts = decoder(model, mapped)
    if parts.tied and parts.embedding != parts.head:
        raise PlacementError("llama.cpp copies a tied embedding; its two ends must be together")
    if parts.tied and parts.embedding != CPU:
        raise PlacementError("llama.cpp holds a tied embedding twice: on the CPU and at the output")
    used = [parts.embedding, *parts.layers, parts.head]
    if DISK in used:
        raise PlacementError("llama.cpp cannot keep chosen layers on disk; map without disk")
    if all(device == CPU for device in used):
        return ["--n-gpu-layers", "0"]
    if parts.head == CPU:
        raise PlacementError("llama.cpp puts the output on the last accelerator; it is on the CPU")
    main = main_device or next(d for d in mapped.values() if d not in OFFLOAD)
    # What accelerate keeps on the CPU runs on the main device; so does what is overridden.
    runs = [main if d == CPU else d for d in parts.layers] + [parts.head]
    deal = [(device, len(list(run))) for device, run in itertools.groupby(runs)]
    names = [device for device, _ in deal]
    if len(set(names)) != len(names):
        raise PlacementError(
            f"llama.cpp gives each accelerator consecutive layers; here they go {', '.join(names)}"
        )
    arguments = ["--n-gpu-layers", str(len(runs)), "--split-mode", "layer"]
    arguments += ["--device", ",".join(f"CUDA{_number(name)}" for name in names)]
    arguments += ["--tensor-split", ",".join(str(count) for _, count in deal)]
    kept = [k for k, device in enumerate(parts.layers) if device == CPU]
    overrides = [rf"^blk\.({'|'.join(map(str, kept))})\.=CPU"] if kept else []
    if parts.embedding != CPU:
        overrides.append(rf"^token_embd\.=CUDA{_number(parts.embedding)}")
    return arguments + (["--override-tensor", ",".join(overrides)] if overrides else [])


def vllm_settings(model: torch.nn.Module, mapped: Mapping[str, str]) -> dict[str, str]:
    """Environment and argument of ``vllm serve`` that split the layers as the map does.

    Returns:
        ``CUDA_VISIBLE_DEVICES`` (stages in order), ``VLLM_PP_LAYER_PARTITION`` (layers per stage)
        and ``--pipeline-parallel-size``.

    Raises:
        PlacementError: If vLLM cannot do the same.

    Source: vLLM, vllm/envs.py (``VLLM_PP_LAYER_PARTITION``) and ``get_pp_indices`` of
    vllm/distributed/utils.py: one number of layers per stage; the first stage has the embedding,
    the last one the norm and the output.
    """
    parts = decoder(model, mapped)
    offloaded = [d for d in (parts.embedding, *parts.layers, parts.head) if d in OFFLOAD]
    if offloaded:
        raise PlacementError(f"vLLM's stages are accelerators; the map uses {offloaded[0]}")
    stages = [(device, len(list(run))) for device, run in itertools.groupby(parts.layers)]
    names = [device for device, _ in stages]
    if len(set(names)) != len(names):
        raise PlacementError("vLLM's stages have consecutive layers; a device has several runs")
    if (parts.embedding, parts.head) != (names[0], names[-1]):
        raise PlacementError(
            f"vLLM puts the embedding on the first stage ({names[0]}) and the output on the last "
            f"({names[-1]}); here they are on {parts.embedding} and {parts.head}"
        )
    if parts.tied and len(stages) > 1:
        raise PlacementError("vLLM holds a tied embedding on its first and on its last stage")
    return {
        "CUDA_VISIBLE_DEVICES": ",".join(str(_number(name)) for name in names),
        "VLLM_PP_LAYER_PARTITION": ",".join(str(count) for _, count in stages),
        "--pipeline-parallel-size": str(len(stages)),
    }


def _device(path: str, mapped: Mapping[str, str]) -> str:
    device = device_at(path, mapped)
    if device is None:
        raise PlacementError(f"the device map has no place for {path}; it belongs to another model")
    return device


def _whole(path: str, model: torch.nn.Module, mapped: Mapping[str, str]) -> str:
    inner = [n for n, _ in model.get_submodule(path).named_parameters()]
    devices: Sequence[str] = sorted({_device(f"{path}.{name}", mapped) for name in inner})
    if len(devices) != 1:
        raise PlacementError(f"{path} is split over {', '.join(devices)}; layers must be whole")
    return devices[0]


def _number(device: str) -> int:
    match = re.fullmatch(r"cuda:([0-9]+)", device)
    if match is None:
        raise PlacementError(f"{device}: only cpu and cuda:N have a name in these tools")
    return int(match[1])
