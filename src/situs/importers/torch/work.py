"""Floating-point operations of one node of an exported graph."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.utils._pytree import tree_map
from torch.utils.flop_counter import FlopCounterMode

from situs.importers.flop import OpShapes, op_flop
from situs.importers.torch.exporting import extent, shape_of, tensors

_MOVES = (
    "_to_copy to clone contiguous copy cat concat stack view reshape flatten permute transpose "
    "embedding index index_select index_put gather scatter select_scatter slice_scatter "
    "arange full full_like zeros zeros_like ones ones_like empty empty_like new_ones new_zeros "
    "new_empty new_full scalar_tensor pad constant_pad_nd roll repeat repeat_interleave tril triu "
    "flip getitem dropout split chunk unbind getattr size"
)
NAMES: dict[str, str] = {
    **dict.fromkeys(_MOVES.split(), "Reshape"),
    **dict.fromkeys(("softmax", "_softmax", "_safe_softmax"), "Softmax"),
    **dict.fromkeys(("log_softmax", "_log_softmax"), "LogSoftmax"),
    **dict.fromkeys(("layer_norm", "native_layer_norm", "layernorm"), "MVN"),
    **dict.fromkeys(("rms_norm", "_fused_rms_norm", "rmsnorm"), "RMS"),
    **dict.fromkeys(("group_norm", "native_group_norm"), "GroupNormalization"),
    **dict.fromkeys(
        ("_native_batch_norm_legit_no_training", "batch_norm", "native_batch_norm"),
        "BatchNormInference",
    ),
    **dict.fromkeys(("mean", "sum", "amax", "amin", "cumsum", "any", "all", "max"), "ReduceSum"),
    **dict.fromkeys(("sqrt", "rsqrt"), "Sqrt"),
    **dict.fromkeys(("exp", "exp2", "expm1"), "Exp"),
    **dict.fromkeys(("log", "log1p", "log2"), "Log"),
    **{name: name.capitalize() for name in ("sin", "cos", "tan", "erf", "tanh", "sigmoid")},
    **{name: name.capitalize() for name in ("elu", "gelu", "mish", "relu")},
    "silu": "Swish",
    "div": "Divide",
    "pow": "Power",
    "where": "Select",
    "clamp": "Clamp",
    "hardtanh": "Clamp",
    "relu6": "Clamp",
    "hardswish": "HSwish",
    "hardsigmoid": "HSigmoid",
    "softplus": "SoftPlus",
    "topk": "TopK",
    "scaled_dot_product_attention": "ScaledDotProductAttention",
}
"""Ops of PyTorch by the name under which ``importers.flop`` counts them."""


def bytes_of(tensor: torch.Tensor) -> int:
    """Bytes of a tensor's elements, B."""
    return math.prod(shape_of(tensor)) * int(tensor.element_size())


def node_flop(node: torch.fx.Node) -> float:
    """FLOP of one run of a node: PyTorch's own count, else an estimate from its shapes.

    PyTorch counts matrix products, convolutions and attention (``torch.utils.flop_counter``);
    a multiply-add is two. What it leaves at 0 is estimated as in ``importers.flop``: one per
    element for a function that is not listed, none for what only moves data.
    """
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        return max((_inside(part) for part in _bodies(node)), default=0.0)
    if op_type(node) == "_grouped_mm":
        # Rows go to experts: each row meets one of the matrices, not all of them.
        rows, matrices = (shape_of(source.meta["val"]) for source in node.all_input_nodes[:2])
        return 2.0 * math.prod(rows) * matrices[-1]
    values = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
    # On meta, whatever it was exported on: attention has kernels on the CPU that are not counted.
    args, kwargs = tree_map(_on_meta, values)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        node.target(*args, **kwargs)  # type: ignore[operator]
    return float(counter.get_total_flops()) or estimate(node)


def _on_meta(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return torch.empty(shape_of(leaf), dtype=leaf.dtype, device="meta")
    if isinstance(leaf, torch.SymInt):
        return extent(leaf)
    return torch.device("meta") if isinstance(leaf, torch.device) else leaf


def estimate(node: torch.fx.Node) -> float:
    """The estimate alone, for what PyTorch does not count."""
    read = [shape_of(t) for source in node.all_input_nodes for t in tensors(source.meta["val"])]
    made = [shape_of(t) for t in tensors(node.meta["val"])]
    name = op_type(node)
    return op_flop(OpShapes(NAMES.get(name.lower(), name), read, made))


def op_type(node: torch.fx.Node) -> str:
    """The op's name without overload: ``linear``, ``add``, or the class of a module."""
    if node.op == "call_module":
        module = node.graph.owning_module
        assert module is not None
        return type(module.get_submodule(str(node.target))).__name__
    if isinstance(node.target, str):
        return node.target
    if isinstance(node.target, torch._ops.OpOverload):
        return str(node.target._overloadpacket.__name__)
    return str(getattr(node.target, "__name__", node.target))


def _bodies(node: torch.fx.Node) -> list[torch.fx.GraphModule]:
    module = node.graph.owning_module
    parts = [
        getattr(module, str(source.target))
        for source in node.all_input_nodes
        if source.op == "get_attr"
    ]
    return [part for part in parts if isinstance(part, torch.fx.GraphModule)]


def _inside(module: torch.fx.GraphModule) -> float:
    return sum(node_flop(node) for node in module.graph.nodes if node.op == "call_function")
