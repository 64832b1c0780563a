"""Small transformers models, one of each kind that the benchmark has in full size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers as tf


def save_configuration(folder: Path, **more: Any) -> None:
    """A small Llama's ``config.json``, as a user would have it beside the weights."""
    tf.LlamaConfig(
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=4,
        num_attention_heads=4,
        vocab_size=200,
        architectures=["LlamaForCausalLM"],
        **more,
    ).save_pretrained(folder)


KINDS: dict[str, tuple[Any, Any]] = {
    "llama": (
        tf.LlamaForCausalLM,
        tf.LlamaConfig(
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=4,
            num_attention_heads=4,
            num_key_value_heads=2,
            vocab_size=200,
        ),
    ),
    "mixtral": (
        tf.MixtralForCausalLM,
        tf.MixtralConfig(
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=4,
            num_attention_heads=4,
            num_key_value_heads=2,
            vocab_size=200,
        ),
    ),
    "gpt2": (
        tf.GPT2LMHeadModel,
        tf.GPT2Config(
            n_embd=64, n_layer=4, n_head=4, vocab_size=200, bos_token_id=1, eos_token_id=2
        ),
    ),
    "bert": (
        tf.BertForMaskedLM,
        tf.BertConfig(
            hidden_size=64,
            num_hidden_layers=4,
            num_attention_heads=4,
            intermediate_size=128,
            vocab_size=200,
        ),
    ),
    "t5": (
        tf.T5ForConditionalGeneration,
        tf.T5Config(
            d_model=64,
            d_kv=16,
            d_ff=128,
            num_layers=3,
            num_heads=4,
            vocab_size=200,
            tie_word_embeddings=True,
        ),
    ),
    "vit": (
        tf.ViTForImageClassification,
        tf.ViTConfig(
            hidden_size=64, num_hidden_layers=4, num_attention_heads=4, intermediate_size=128
        ),
    ),
    "whisper": (
        tf.WhisperForConditionalGeneration,
        tf.WhisperConfig(
            d_model=64,
            encoder_layers=2,
            decoder_layers=2,
            encoder_attention_heads=4,
            decoder_attention_heads=4,
            encoder_ffn_dim=128,
            decoder_ffn_dim=128,
            vocab_size=200,
            max_source_positions=50,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            decoder_start_token_id=1,
        ),
    ),
}


def build(kind: str, device: str = "meta") -> torch.nn.Module:
    """The model of a kind; on ``cpu`` with seeded random weights."""
    cls, config = KINDS[kind]
    torch.manual_seed(0)
    with torch.device(device):
        model: torch.nn.Module = cls(config)
    # Grouped matrix products of experts are in bfloat16 only.
    return model.eval().to(torch.bfloat16 if kind == "mixtral" else torch.float32)


def weight_bytes(model: torch.nn.Module) -> int:
    """Bytes of all distinct weights and buffers."""
    tensors = {id(t): t for t in [*model.parameters(), *model.buffers()]}
    return sum(t.numel() * t.element_size() for t in tensors.values())
