"""Forward arguments of ``transformers`` models, as empty tensors of the right shapes."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

import torch

from situs.errors import ModelError

if TYPE_CHECKING:
    from situs.importers.torch.blocks import Request


def prefill_inputs(
    model: torch.nn.Module, request: Request, device: torch.device, cache: bool = True
) -> dict[str, Any]:
    """Arguments that read a whole prompt, by the model's ``main_input_name``.

    ``cache``: a model that generates fills its key-value cache for the tokens to come.

    Raises:
        ModelError: If the model does not say what it reads, or reads something unknown.
    """
    config: Any = getattr(model, "config", None)
    kind = getattr(model, "main_input_name", None)
    batch, tokens = request.batch, request.prompt_tokens
    ids = torch.zeros(batch, tokens, dtype=torch.long, device=device)
    dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32)
    given: dict[str, Any]
    if config is None or kind is None:
        raise ModelError(
            f"{type(model).__name__} is not a transformers model; give its forward arguments "
            "with inputs="
        )
    if kind == "input_ids":
        given = {"input_ids": ids}
    elif kind == "pixel_values":
        sides = config.image_size
        height, width = (sides, sides) if isinstance(sides, int) else sides
        shape = (batch, config.num_channels, height, width)
        given = {kind: torch.zeros(shape, device=device, dtype=dtype)}
    elif kind == "input_features" and hasattr(config, "max_source_positions"):
        # Whisper's encoder halves the frames once, and takes exactly its longest input.
        shape3 = (batch, config.num_mel_bins, 2 * config.max_source_positions)
        given = {kind: torch.zeros(shape3, device=device, dtype=dtype)}
    else:
        raise ModelError(
            f"{type(model).__name__} reads {kind!r}, whose shape is not known; give its forward "
            "arguments with inputs="
        )
    if getattr(config, "is_encoder_decoder", False):
        given["decoder_input_ids"] = ids
    if model.can_generate():  # type: ignore[operator]
        given["use_cache"] = cache
    return given


def decode_inputs(
    model: torch.nn.Module, request: Request, filled: Any, device: torch.device
) -> dict[str, Any]:
    """Arguments that read one more token, after ``filled``, the output of a pass with a cache."""
    token = torch.zeros(request.batch, 1, dtype=torch.long, device=device)
    # The argument was renamed in transformers 5.
    cache = "cache" if "cache" in signature(model.forward).parameters else "past_key_values"
    given: dict[str, Any] = {cache: filled.past_key_values, "use_cache": True}
    if getattr(model.config, "is_encoder_decoder", False):
        # transformers takes the encoder's output as a tuple, too.
        given["encoder_outputs"] = (filled.encoder_last_hidden_state,)
        given["decoder_input_ids"] = token
    else:
        given["input_ids"] = token
    return given
