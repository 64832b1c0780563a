"""The block graph against figures that are known from the configurations."""

import pytest
import torch

from situs.errors import ModelError, ParameterError
from situs.importers.torch.blocks import Request, module_blocks
from torch_models import KINDS, build, weight_bytes


@pytest.mark.parametrize("kind", KINDS)
def test_every_weight_is_counted_once(kind: str) -> None:
    model = build(kind)
    blocks = module_blocks(model, Request(1, 8, 2))
    assert int(blocks.graph.constant_bytes.sum()) == weight_bytes(model)
    paths = {name for name, _ in model.named_modules()} | {n for n, _ in model.named_parameters()}
    assert set(blocks.graph.op_names) <= paths


def test_llama_by_hand() -> None:
    """Layers of 64 x 64 queries and outputs, 64 x 32 keys and values, three 64 x 128 matrices."""
    blocks = module_blocks(build("llama"), Request(2, 8, 4))
    graph = blocks.graph
    layer = graph.op_index["model.layers.1"]
    weights = 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128
    assert blocks.weight_bytes[layer] == 4 * (weights + 2 * 64)
    # Two sequences of 8 + 4 tokens, keys and values of 2 heads of 16, 4 B each.
    assert blocks.cache_bytes[layer] == 2 * 12 * 2 * 2 * 16 * 4
    # Every weight multiplies every token; scores and mixing: 4 heads, 8 x 8 pairs of 16.
    flop = 2 * 16 * weights + 2 * 2 * (2 * 4 * 8 * 8 * 16)
    assert graph.op_flop[layer] == flop
    head = graph.op_index["lm_head"]
    assert graph.op_flop[head] == 2 * 16 * 64 * 200
    assert blocks.decode[head][:, 0].sum() == 2 * 2 * 64 * 200
    inputs = graph.inputs
    read = inputs[1][inputs[0][layer] : inputs[0][layer + 1]]
    sources = {graph.op_names[graph.tensor_producer[t]]: int(graph.tensor_bytes[t]) for t in read}
    assert sources["model.layers.0"] == 2 * 8 * 64 * 4


def test_tied_weights_share_a_class() -> None:
    graph = module_blocks(build("t5"), Request(1, 8, 2)).graph
    tied = {graph.op_names[i] for i in range(graph.num_ops) if graph.colocation[i] >= 0}
    assert tied == {"shared", "encoder.embed_tokens", "decoder.embed_tokens", "lm_head"}
    assert len({int(c) for c in graph.colocation if c >= 0}) == 1


def test_encoder_is_not_run_again_for_every_token() -> None:
    blocks = module_blocks(build("whisper"), Request(1, 8, 2))
    index = blocks.graph.op_index
    assert len(blocks.prefill[index["model.encoder.layers.0"]]) > 0
    assert len(blocks.decode[index["model.encoder.layers.0"]]) == 0
    assert len(blocks.decode[index["model.decoder.layers.0"]]) > 0


def test_any_module_with_inputs() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    blocks = module_blocks(model, inputs={"input": torch.zeros(3, 4)})
    assert blocks.graph.op_flop.tolist() == [2 * 3 * 4 * 8, 0, 2 * 3 * 8 * 2]
    assert blocks.graph.tensor_bytes.tolist() == [3 * 8 * 4, 3 * 8 * 4]
    assert not blocks.decode
    with pytest.raises(ModelError, match="inputs="):
        module_blocks(model)
    with pytest.raises(ModelError, match="forward pass"):
        module_blocks(model, inputs={"input": torch.zeros(3, 5)})
    with pytest.raises(ParameterError, match="prompt_tokens"):
        Request(prompt_tokens=0)
