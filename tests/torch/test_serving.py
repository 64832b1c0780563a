"""Arguments of other tools say what the map says, by those tools' own rules."""

from bisect import bisect_right
from itertools import accumulate

import pytest
import torch
import transformers as tf

from situs.errors import PlacementError
from situs.torch import llama_cpp_arguments, vllm_settings
from torch_models import build


def llama(layers: int = 8, tied: bool = False) -> torch.nn.Module:
    config = tf.LlamaConfig(
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=layers,
        num_attention_heads=2,
        vocab_size=40,
        tie_word_embeddings=tied,
    )
    with torch.device("meta"):
        return tf.LlamaForCausalLM(config)


def mapped(layers: list[str], embedding: str = "cpu", head: str = "cuda:0") -> dict[str, str]:
    ends = {"model.embed_tokens": embedding, "model.norm": head, "lm_head": head}
    return (
        {f"model.layers.{k}": d for k, d in enumerate(layers)}
        | ends
        | {"model.rotary_emb": embedding}
    )


def placed_by_llama_cpp(arguments: list[str], layers: int) -> list[str]:
    """Its rule: the first layers on the CPU, the rest and the output by cumulated shares."""
    given = dict(zip(arguments[::2], arguments[1::2], strict=True))
    count = int(given["--n-gpu-layers"])
    if not count:
        return ["cpu"] * (layers + 1)
    shares = [float(x) for x in given["--tensor-split"].split(",")]
    ends = [share / sum(shares) for share in accumulate(shares)]
    start = layers + 1 - count
    names = [name.replace("CUDA", "cuda:") for name in given["--device"].split(",")]
    return [
        "cpu" if k < start else names[bisect_right(ends, (k - start) / count)]
        for k in range(layers + 1)
    ]


@pytest.mark.parametrize("counts", [(3, 5), (5, 3), (1, 6, 1), (2, 2, 4), (8,), (7, 1)])
def test_llama_cpp_deals_layers_out_as_mapped(counts: tuple[int, ...]) -> None:
    devices = [f"cuda:{g}" for g, n in enumerate(counts) for _ in range(n)]
    arguments = llama_cpp_arguments(llama(), mapped(devices, head=devices[-1]))
    assert placed_by_llama_cpp(arguments, 8) == [*devices, devices[-1]]
    assert "--override-tensor" not in arguments


def test_llama_cpp_takes_accelerators_in_the_maps_order() -> None:
    devices = ["cuda:2"] * 3 + ["cuda:0"] * 5
    arguments = llama_cpp_arguments(llama(), mapped(devices, head="cuda:0"))
    assert placed_by_llama_cpp(arguments, 8) == [*devices, "cuda:0"]


def test_llama_cpp_overrides_what_is_offloaded() -> None:
    devices = ["cuda:0"] * 5 + ["cpu"] * 3
    arguments = llama_cpp_arguments(llama(), mapped(devices, embedding="cuda:0"))
    assert arguments[-1] == r"^blk\.(5|6|7)\.=CPU,^token_embd\.=CUDA0"
    assert placed_by_llama_cpp(arguments, 8) == ["cuda:0"] * 9
    everything = dict.fromkeys(["model", "lm_head"], "cpu")
    assert llama_cpp_arguments(llama(), everything) == ["--n-gpu-layers", "0"]


def test_vllm_stages() -> None:
    devices = ["cuda:1"] * 3 + ["cuda:0"] * 5
    assert vllm_settings(llama(), mapped(devices, "cuda:1", "cuda:0")) == {
        "CUDA_VISIBLE_DEVICES": "1,0",
        "VLLM_PP_LAYER_PARTITION": "3,5",
        "--pipeline-parallel-size": "2",
    }


@pytest.mark.parametrize(
    ("tied", "layers", "embedding", "head", "llama_cpp", "vllm"),
    [
        (False, ["cuda:0", "cuda:1"] * 4, "cuda:0", "cuda:1", "consecutive layers", "several runs"),
        (False, ["cuda:0"] * 8, "cuda:0", "cpu", "output on the last", "uses cpu"),
        (False, ["cuda:0"] * 7 + ["disk"], "cuda:0", "cuda:0", "disk", "uses disk"),
        (False, ["cuda:0"] * 4 + ["cuda:1"] * 4, "cuda:1", "cuda:1", "", "embedding on the first"),
        (True, ["cuda:0"] * 4 + ["cuda:1"] * 4, "cuda:0", "cuda:0", "twice", "output on the last"),
    ],
)
def test_refusals(
    tied: bool, layers: list[str], embedding: str, head: str, llama_cpp: str, vllm: str
) -> None:
    model, one = llama(tied=tied), mapped(layers, embedding, head)
    if llama_cpp:
        with pytest.raises(PlacementError, match=llama_cpp):
            llama_cpp_arguments(model, one)
    with pytest.raises(PlacementError, match=vllm):
        vllm_settings(model, one)


def test_models_that_are_no_plain_decoders() -> None:
    for kind, reason in (("t5", "only decoder"), ("vit", "only decoder"), ("gpt2", "wpe")):
        with pytest.raises(PlacementError, match=reason):
            vllm_settings(build(kind), {"": "cuda:0"})
    with pytest.raises(PlacementError, match="another model"):
        llama_cpp_arguments(llama(), {"transformer": "cuda:0"})
    halves = mapped(["cuda:0"] * 8) | {"model.layers.3.mlp": "cuda:1"}
    with pytest.raises(PlacementError, match="layers must be whole"):
        llama_cpp_arguments(llama(), halves)
