"""Models of ``transformers`` from a local configuration, on ``meta``: no weights are read."""

from __future__ import annotations

from pathlib import Path

import torch

from situs.errors import MissingExtraError, ModelError
from situs.importers.torch.blocks import Request
from situs.importers.torch.inputs import prefill_inputs
from situs.importers.torch.ops import TorchImported, import_module


def load_configuration(path: str | Path) -> torch.nn.Module:
    """The model of a local configuration (a folder or its ``config.json``), on ``meta``.

    Raises:
        ModelError: If there is no usable configuration there.
        MissingExtraError: If transformers is not installed.
    """
    try:
        import transformers
    except ImportError:
        raise MissingExtraError("transformers", "torch") from None
    place = Path(path)
    folder = place.parent if place.name == "config.json" else place
    if not (folder / "config.json").is_file():
        raise ModelError(
            f"{path}: no config.json there; give a transformers model's folder or its config.json"
        )
    try:
        config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
    except (ValueError, OSError, KeyError, TypeError) as error:
        raise ModelError(f"{path}: not a transformers configuration: {error}") from error
    names = config.architectures or []
    cls = getattr(transformers, names[0], None) if names else None
    if cls is None:
        raise ModelError(
            f"{path}: its architectures {names} are not in transformers {transformers.__version__}"
        )
    with torch.device("meta"):
        model: torch.nn.Module = cls(config)
    return (model.to(config.dtype) if config.dtype is not None else model).eval()


def import_configuration(path: str | Path, request: Request | None = None) -> TorchImported:
    """The ops of one pass over a prompt (default: 1 sequence of 512 tokens), without a cache.

    Raises:
        ModelError: If there is no usable configuration there, or its model cannot be exported.
    """
    model = load_configuration(path)
    given = prefill_inputs(model, request or Request(), torch.device("meta"), cache=False)
    return import_module(model, (), given)
