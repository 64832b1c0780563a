"""Device maps of ten transformers configurations under four memory set-ups, beside accelerate's.

All times are simulated (roofline on a catalogue machine). Two countings of what must fit:
``weights``, as accelerate counts, and ``run``, with key-value cache and activations beside them.
By ``weights``, with each of the three objectives, ours must fit wherever accelerate's does (no
disk, every device within its limit by tensor names); by ``run``, a map that accelerate fills by
weights may be refused, with a proof. For every row: accelerate's
``check_device_map`` on our map, memory sums against the limits, tied weights together, and both
maps' bottleneck (throughput objective) and latency (latency objective) under one model. Prints a
table and writes JSON; ends with 1 if a promise is broken.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
import warnings
from pathlib import Path
from typing import Any

import torch
import transformers as tf
from accelerate.utils.modeling import check_device_map

from situs.importers.torch.blocks import Request, module_blocks, no_split_classes
from situs.profiling.environment import environment
from situs.torch import map_blocks
from situs.torch.baseline import accelerate_map, devices_of

MODELS: dict[str, tuple[Any, Any, torch.dtype]] = {
    "llama-7b": (
        tf.LlamaForCausalLM,
        tf.LlamaConfig(
            hidden_size=4096,
            intermediate_size=11008,
            num_hidden_layers=32,
            num_attention_heads=32,
            vocab_size=32000,
        ),
        torch.bfloat16,
    ),
    "llama-70b": (
        tf.LlamaForCausalLM,
        tf.LlamaConfig(
            hidden_size=8192,
            intermediate_size=28672,
            num_hidden_layers=80,
            num_attention_heads=64,
            num_key_value_heads=8,
            vocab_size=128256,
        ),
        torch.bfloat16,
    ),
    "llama-1b-tied": (
        tf.LlamaForCausalLM,
        tf.LlamaConfig(
            hidden_size=2048,
            intermediate_size=8192,
            num_hidden_layers=16,
            num_attention_heads=32,
            num_key_value_heads=8,
            vocab_size=128256,
            tie_word_embeddings=True,
        ),
        torch.bfloat16,
    ),
    "mixtral-8x7b": (
        tf.MixtralForCausalLM,
        tf.MixtralConfig(
            hidden_size=4096,
            intermediate_size=14336,
            num_hidden_layers=32,
            num_attention_heads=32,
            num_key_value_heads=8,
            num_local_experts=8,
            vocab_size=32000,
        ),
        torch.bfloat16,
    ),
    "gpt2-xl": (
        tf.GPT2LMHeadModel,
        tf.GPT2Config(n_embd=1600, n_layer=48, n_head=25),
        torch.float32,
    ),
    "bert-large": (
        tf.BertForMaskedLM,
        tf.BertConfig(
            hidden_size=1024,
            num_hidden_layers=24,
            num_attention_heads=16,
            intermediate_size=4096,
        ),
        torch.float32,
    ),
    "t5-large-tied": (
        tf.T5ForConditionalGeneration,
        tf.T5Config(
            d_model=1024,
            d_kv=64,
            d_ff=4096,
            num_layers=24,
            num_heads=16,
            tie_word_embeddings=True,
        ),
        torch.float32,
    ),
    "vit-large": (
        tf.ViTForImageClassification,
        tf.ViTConfig(
            hidden_size=1024,
            num_hidden_layers=24,
            num_attention_heads=16,
            intermediate_size=4096,
        ),
        torch.float32,
    ),
    "whisper-large": (
        tf.WhisperForConditionalGeneration,
        tf.WhisperConfig(
            d_model=1280,
            encoder_layers=32,
            decoder_layers=32,
            encoder_attention_heads=20,
            decoder_attention_heads=20,
            encoder_ffn_dim=5120,
            decoder_ffn_dim=5120,
            num_mel_bins=128,
        ),
        torch.float32,
    ),
    "qwen2-14b": (
        tf.Qwen2ForCausalLM,
        tf.Qwen2Config(
            hidden_size=5120,
            intermediate_size=13824,
            num_hidden_layers=48,
            num_attention_heads=40,
            num_key_value_heads=8,
            vocab_size=152064,
        ),
        torch.bfloat16,
    ),
}


def setups(size: int) -> dict[str, dict[str, int]]:
    """Limits as shares of the weights' bytes."""
    return {
        "even": {"cuda:0": size * 7 // 10, "cuda:1": size * 7 // 10},
        "uneven": {"cuda:0": size * 4 // 10, "cuda:1": size * 9 // 10},
        "small GPU+CPU": {"cuda:0": size // 2, "cpu": size * 2},
        "one nearly full": {"cuda:0": size * 6 // 10, "cuda:1": size // 20, "cuda:2": size // 2},
    }


def held(model: torch.nn.Module, mapped: dict[str, str]) -> dict[str, int]:
    """Weight and buffer bytes per device by tensor names, a tied tensor once a device."""
    ids: dict[str, dict[int, int]] = {}
    for name, tensor in [
        *model.named_parameters(remove_duplicate=False),
        *model.named_buffers(remove_duplicate=False),
    ]:
        key = max((k for k in mapped if k in ("", name) or name.startswith(f"{k}.")), key=len)
        ids.setdefault(mapped[key], {})[id(tensor)] = tensor.numel() * tensor.element_size()
    return {device: sum(sizes.values()) for device, sizes in ids.items()}


def fits_by_weights(model: torch.nn.Module, rival: dict[str, str], limits: dict[str, int]) -> bool:
    """Whether accelerate's map is within the limits as accelerate counts."""
    return all(used <= limits.get(d, 0) for d, used in held(model, rival).items())


def promises(
    model: torch.nn.Module,
    blocks: Any,
    found: Any,
    limits: dict[str, int],
    rival_fits: bool,
) -> list[str]:
    """What is broken, by accelerate's check and by counts of our own; ``rival_fits`` as counted."""
    if found.best is None:
        broken = [] if found.short_bytes > 0 else ["no proof"]
        return broken + (["accelerate fits"] if rival_fits or found.accelerate else [])
    broken = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            check_device_map(model, found.device_map)
        except ValueError:
            broken.append("check_device_map")
    if any(used > limits[d] for d, used in held(model, found.device_map).items()):
        broken.append("over a limit")
    names = devices_of(blocks, found.device_map)
    ties: dict[int, set[str]] = {}
    for device, c in zip(names or [], blocks.graph.colocation.tolist(), strict=True):
        if c >= 0:
            ties.setdefault(c, set()).add(device)
    if any(len(devices) > 1 for devices in ties.values()):
        broken.append("tied weights apart")
    theirs = found.accelerate
    limit_s = theirs.bottleneck_s * (1 + 1e-9) if theirs is not None else float("inf")
    if found.objective == "throughput" and found.best.bottleneck_s > limit_s:
        broken.append("bottleneck worse")
    return broken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--machine", default="4xa100")
    parser.add_argument("--seconds", type=float, default=4.0)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    imports: list[dict[str, Any]] = []
    print(
        f"simulated on {options.machine}; prompt 512, 128 new tokens, batch 1; in s, fit: a share"
    )
    print(f"{'model':<15}{'set-up':<17}{'count':<9}{'goal':<11}{'ours':>9}{'accel.':>10}"
          f"{'ratio':>7}{'gap %':>7}{'map s':>7}  remarks")  # fmt: skip
    for name, (cls, config, dtype) in MODELS.items():
        if options.only not in name:
            continue
        begin = time.perf_counter()
        with torch.device("meta"):
            model = cls(config).to(dtype).eval()
        blocks = module_blocks(model, Request())
        took_s = time.perf_counter() - begin
        peak_gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        size = int(blocks.graph.constant_bytes.sum())
        imports.append({"model": name, "import_s": took_s, "peak_gib": peak_gib, "bytes": size})
        print(f"{name}: {size / 1e9:.2f} GB, imported in {took_s:.1f} s, peak {peak_gib:.2f} GiB")
        for setup, limits in setups(size).items():
            rival = accelerate_map(model, limits, no_split_classes(model))
            by_weights = fits_by_weights(model, rival, limits)
            for counting in ("weights", "run"):
                goals = ("throughput", "latency", *(["fit"] if counting == "weights" else []))
                for goal in goals:
                    begin = time.perf_counter()
                    found = map_blocks(
                        blocks, limits, goal, options.machine, counting, rival, options.seconds
                    )
                    map_s = time.perf_counter() - begin
                    ours = found.best.value(goal) if found.best else None
                    theirs = found.accelerate.value(goal) if found.accelerate else None
                    broken = promises(
                        model, blocks, found, limits, by_weights and counting == "weights"
                    )
                    remark = found.accelerate_detail
                    if not found.best:
                        remark = f"cannot fit: {found.short_bytes} B short (proven); {remark}"
                    rows.append(
                        {
                            "model": name,
                            "setup": setup,
                            "limits": limits,
                            "counting": counting,
                            "objective": goal,
                            "status": found.status.name,
                            "ours_s": ours,
                            "accelerate_s": theirs,
                            "gap": found.gap if found.best else None,
                            "short_bytes": found.short_bytes,
                            "used_bytes": found.best.used_bytes if found.best else None,
                            "map_s": map_s,
                            "accelerate_fits_by_weights": by_weights,
                            "accelerate_detail": found.accelerate_detail,
                            "broken": broken,
                        }
                    )
                    ratio = f"{theirs / ours:.2f}" if ours and theirs else "-"
                    gap = f"{found.gap * 100:.2f}" if found.best else "-"
                    print(f"{name:<15}{setup:<17}{counting:<9}{goal:<11}"
                          f"{f'{ours:.4f}' if ours else '-':>9}"
                          f"{f'{theirs:.4f}' if theirs else '-':>10}{ratio:>7}{gap:>7}{map_s:>7.2f}"
                          f"  {remark} {'BROKEN: ' + ', '.join(broken) if broken else ''}",
                          flush=True)  # fmt: skip
    broken_rows = sum(bool(row["broken"]) for row in rows)
    print(f"{len(rows)} rows, {broken_rows} with a broken promise; times are simulated")
    for counting in ("weights", "run"):
        some = [r for r in rows if r["counting"] == counting]
        theirs_fit = [r for r in some if r["accelerate_fits_by_weights"]]
        refused = [r for r in theirs_fit if r["ours_s"] is None]
        print(f"counting {counting}: {len(some)} rows; accelerate fits by weights in "
              f"{len(theirs_fit)}, ours in {len(theirs_fit) - len(refused)} of those; refused "
              f"with a proof: {sum(r['short_bytes'] > 0 for r in refused)} of {len(refused)}; "
              f"ours fits in {sum(r['ours_s'] is not None for r in some)}")  # fmt: skip
    path = Path(__file__).parent / "results" / "device_maps.json"
    body = {
        "machine": options.machine,
        "simulated": True,
        "imports": imports,
        "rows": rows,
        "environment": environment(),
    }
    path.write_text(json.dumps(body, indent=1) + "\n")
    return 1 if broken_rows else 0


if __name__ == "__main__":
    raise SystemExit(main())
