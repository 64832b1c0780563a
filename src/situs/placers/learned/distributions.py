"""Distributions over devices: bars, samples, entropy."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

_BARRED = -1e9


def log_chances(
    scores: Float[Tensor, "... D"], allowed: Bool[Tensor, "... D"]
) -> Float[Tensor, "... D"]:
    """Log-probabilities of what is allowed."""
    return torch.log_softmax(scores.masked_fill(~allowed, _BARRED), dim=-1)


def draw(
    log_probs: Float[Tensor, "G D"], count: int, generator: torch.Generator
) -> Int64[Tensor, "K G"]:
    """``count`` samples of a choice for every row."""
    chances = log_probs.detach().exp()
    drawn = torch.multinomial(chances, count, replacement=True, generator=generator)
    return drawn.T.contiguous()


def draw_one(log_probs: Float[Tensor, "K D"], generator: torch.Generator) -> Int64[Tensor, "K"]:
    """One sample of a choice for every row."""
    return torch.multinomial(log_probs.exp(), 1, generator=generator)[:, 0]


def entropy(log_probs: Float[Tensor, "... D"]) -> Float[Tensor, ""]:
    """Mean entropy of distributions, nat; a barred choice counts nothing."""
    return -(log_probs.exp() * log_probs.clamp(min=-1e4)).sum(dim=-1).mean()
