"""A model as a graph of blocks: the modules that must not be split over devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from situs.errors import ModelError, ParameterError
from situs.graph import Graph
from situs.graph.arrays import Floats, frozen
from situs.graph.build import OpSpec, build_graph
from situs.importers.torch.exporting import first_line
from situs.importers.torch.inputs import decode_inputs, prefill_inputs
from situs.importers.torch.tracing import BlockTrace, Seen


@dataclass(frozen=True, slots=True)
class Request:
    """What one request asks of the model.

    Attributes:
        batch: Sequences (or images) at once; >= 1.
        prompt_tokens: Tokens read at once in the prefill, for models that read tokens; >= 1.
        new_tokens: Tokens generated one by one after it, for models that can; >= 0.
    """

    batch: int = 1
    prompt_tokens: int = 512
    new_tokens: int = 128

    def __post_init__(self) -> None:
        if self.batch < 1 or self.prompt_tokens < 1 or self.new_tokens < 0:
            raise ParameterError(
                "a request needs batch >= 1, prompt_tokens >= 1 and new_tokens >= 0; got "
                f"{self.batch}, {self.prompt_tokens}, {self.new_tokens}"
            )


@dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks of a model, in the order in which they first run.

    Axes: ``N`` blocks, ``T`` tensors.

    Attributes:
        graph: One op per block, named by its module path, typed by its class. Its constants are the
            weights and buffers, each once, with every block that holds it as a reader; blocks with
            a common weight share a co-location class. Tensors are the data of the prefill.
        request: What was traced.
        prefill: Per block, ``float64[kernels, 2]``: floating-point operations, bytes moved.
        decode: The same for one new token at the longest context; empty if none are generated.
        decode_bytes: ``int64[T]`` size of each tensor in one decode step, B.
        cache_bytes: ``float64[N]`` key-value cache of each block at the longest context, B.
        weight_bytes: ``float64[N]`` weights and buffers of each block, B (tied ones at each).
        workspace_bytes: ``float64[N]`` most bytes alive in one call beside weights, B.
    """

    graph: Graph
    request: Request
    prefill: tuple[Floats, ...]
    decode: tuple[Floats, ...]
    decode_bytes: Floats
    cache_bytes: Floats
    weight_bytes: Floats
    workspace_bytes: Floats


def module_blocks(
    model: torch.nn.Module,
    request: Request | None = None,
    no_split: Sequence[str] | None = None,
    inputs: Mapping[str, torch.Tensor] | None = None,
) -> Blocks:
    """Trace a model into blocks; on ``meta`` tensors, so that no weight is needed.

    A block is a module of a class in ``no_split``, a module without children, or a parameter or
    buffer held directly by a module that is split.

    Args:
        model: A model, on any device; only shapes are used, on its parameters' own device.
        request: Sizes of the request that is traced.
        no_split: Classes of modules to keep whole; None = the model's ``_no_split_modules``.
        inputs: Forward arguments, for models that are not of ``transformers``.

    Raises:
        ModelError: If the model has no weights, or its forward pass fails.
    """
    request = request or Request()
    owners = _split(model, no_split_classes(model) if no_split is None else no_split)
    if not owners:
        raise ModelError(f"{type(model).__name__} has no parameters to place")
    paths = list(owners)
    modules = {
        owner: i
        for i, owner in reversed([*enumerate(owners.values())])
        if isinstance(owner, torch.nn.Module)
    }
    tensors = {t: i for i, t in enumerate(owners.values()) if isinstance(t, torch.Tensor)}
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            prefill, decode, cache = _trace(model, request, inputs, modules, tensors, len(paths))
    except (RuntimeError, TypeError, ValueError, KeyError, NotImplementedError) as error:
        raise ModelError(
            f"{type(model).__name__}: the forward pass on {_device(model)} tensors failed: "
            f"{first_line(error)}; give its arguments with inputs="
        ) from error
    finally:
        model.train(training)
    return _assemble(model, request, owners, prefill, decode, cache)


def no_split_classes(model: torch.nn.Module) -> list[str]:
    """Classes that a model says must not be split over devices; sorted."""
    return sorted(getattr(model, "_no_split_modules", None) or ())


def _device(model: torch.nn.Module) -> torch.device:
    return next((p.device for p in model.parameters()), torch.device("meta"))


def _split(
    module: torch.nn.Module, no_split: Sequence[str], prefix: str = ""
) -> dict[str, torch.nn.Module | torch.Tensor]:
    """Blocks by path, depth first in the order of definition."""
    children = list(module.named_children())
    if prefix and (not children or type(module).__name__ in no_split):
        return {prefix: module}
    if not children:
        raise ModelError(
            f"{type(module).__name__} has no sub-modules; there is nothing to place separately"
        )
    lead = f"{prefix}." if prefix else ""
    blocks: dict[str, torch.nn.Module | torch.Tensor] = {
        lead + name: tensor
        for name, tensor in [
            *module.named_parameters(recurse=False),
            *module.named_buffers(recurse=False),
        ]
    }
    for name, child in children:
        blocks |= _split(child, no_split, lead + name)
    return blocks


def _trace(
    model: torch.nn.Module,
    request: Request,
    inputs: Mapping[str, torch.Tensor] | None,
    modules: dict[torch.nn.Module, int],
    tensors: dict[torch.Tensor, int],
    count: int,
) -> tuple[BlockTrace, BlockTrace | None, Floats]:
    """Traces of the prefill and of one decode step, and cache bytes per block."""
    device = _device(model)
    cache_bytes = np.zeros(count)
    given = dict(inputs) if inputs is not None else prefill_inputs(model, request, device)
    with BlockTrace(modules, tensors, count) as prefill:
        model(**given)
    generates = inputs is None and bool(getattr(model, "can_generate", lambda: False)())
    if not generates:
        return prefill, None, cache_bytes
    longest = Request(request.batch, request.prompt_tokens + request.new_tokens, 0)
    with BlockTrace(modules, tensors, count) as filling:
        filled = model(**prefill_inputs(model, longest, device))
        cache = filled.past_key_values
        layers = [
            layer
            for part in (
                getattr(cache, "self_attention_cache", cache),
                getattr(cache, "cross_attention_cache", None),
            )
            for layer in getattr(part, "layers", ())
        ]
        for layer in layers:
            for tensor in (layer.keys, layer.values):
                block = filling.origin(tensor)
                if block >= 0:
                    cache_bytes[block] += tensor.numel() * tensor.element_size()
    if request.new_tokens == 0:
        return prefill, None, cache_bytes
    with BlockTrace(modules, tensors, count) as decode:
        model(**decode_inputs(model, request, filled, device))
    return prefill, decode, cache_bytes


def _assemble(
    model: torch.nn.Module,
    request: Request,
    owners: Mapping[str, torch.nn.Module | torch.Tensor],
    prefill: BlockTrace,
    decode: BlockTrace | None,
    cache_bytes: Floats,
) -> Blocks:
    order = _order(prefill.seen)
    rank = {block: i for i, block in enumerate(order)}
    paths = list(owners)
    sizes, holders = _weights(list(owners.values()))
    tied = _classes(holders, len(paths))
    specs = [
        OpSpec(
            paths[block],
            type(owners[paths[block]]).__name__,
            flop=sum(flop for flop, _ in prefill.seen[block].kernels),
            colocation=tied[block],
        )
        for block in order
    ]
    for constant, blocks in enumerate(holders):
        for block in blocks:
            specs[rank[block]].constants.append(constant)
    decode_sizes = _join(specs, rank, prefill, decode)
    graph = build_graph(type(model).__name__, specs, sizes)
    weight = np.zeros(len(paths))
    for size, blocks in zip(sizes, holders, strict=True):
        weight[blocks] += size
    return Blocks(
        graph,
        request,
        _kernels(prefill, order),
        _kernels(decode, order) if decode is not None else (),
        frozen(decode_sizes, np.float64),
        frozen(cache_bytes[order], np.float64),
        frozen(weight[order], np.float64),
        frozen([prefill.seen[block].workspace_bytes for block in order], np.float64),
    )


def _kernels(trace: BlockTrace, order: Sequence[int]) -> tuple[Floats, ...]:
    return tuple(
        frozen(np.array(trace.seen[block].kernels).reshape(-1, 2), np.float64) for block in order
    )


def _order(seen: Sequence[Seen]) -> list[int]:
    """Blocks by first call; one that is never called stays behind the one defined before it."""
    keys: list[tuple[int, int]] = []
    last = -1
    for block, one in enumerate(seen):
        last = one.first_call if one.first_call >= 0 else last
        keys.append((last, block))
    return [block for _, block in sorted(keys)]


def _weights(owners: Sequence[torch.nn.Module | torch.Tensor]) -> tuple[list[int], list[list[int]]]:
    """Bytes of each distinct weight or buffer, and the blocks that hold it."""
    number: dict[int, int] = {}
    sizes: list[int] = []
    holders: list[list[int]] = []
    for block, owner in enumerate(owners):
        held = (
            [owner]
            if isinstance(owner, torch.Tensor)
            else [
                *(p for _, p in owner.named_parameters(remove_duplicate=False)),
                *(b for _, b in owner.named_buffers(remove_duplicate=False)),
            ]
        )
        for tensor in held:
            k = number.setdefault(id(tensor), len(sizes))
            if k == len(sizes):
                sizes.append(tensor.numel() * tensor.element_size())
                holders.append([])
            if block not in holders[k]:
                holders[k].append(block)
    return sizes, holders


def _classes(holders: Sequence[Sequence[int]], count: int) -> list[int]:
    """Co-location class of each block, -1 = none: blocks joined by weights that they share."""
    parent = list(range(count))

    def root(block: int) -> int:
        while parent[block] != block:
            block = parent[block]
        return block

    for blocks in holders:
        for other in blocks[1:]:
            parent[root(other)] = root(blocks[0])
    members: dict[int, list[int]] = {}
    for block in range(count):
        members.setdefault(root(block), []).append(block)
    tied = [-1] * count
    for label, group in enumerate(g for g in members.values() if len(g) > 1):
        for block in group:
            tied[block] = label
    return tied


def _join(
    specs: list[OpSpec], rank: Mapping[int, int], prefill: BlockTrace, decode: BlockTrace | None
) -> list[float]:
    """Add the tensors between blocks to ``specs``; return their sizes in a decode step.

    Data of one tensor that several blocks read is one output. A block that is called again and
    reads a later block's data would close a cycle: that edge is turned, which costs the same.
    """
    readers: dict[tuple[int, int], set[int]] = {}
    size: dict[tuple[int, int], int] = {}
    again: dict[tuple[int, int], int] = {}
    for trace, sizes in ((prefill, size), (decode, again)):
        if trace is None:
            continue
        for (source, target), tensors in trace.moved.items():
            a, b = sorted((rank[source], rank[target]))
            for number, nbytes in tensors.items():
                if trace is prefill:
                    key = (a, number)
                    readers.setdefault(key, set()).add(b)
                    sizes[key] = max(sizes.get(key, 0), nbytes)
                else:
                    sizes[a, b] = sizes.get((a, b), 0) + nbytes
    decode_sizes: list[tuple[int, float]] = []
    paid: set[tuple[int, int]] = set()
    for key in sorted(readers):
        source, port = key[0], len(specs[key[0]].output_bytes)
        specs[source].output_shapes.append((size[key],))
        specs[source].output_dtypes.append("u8")
        specs[source].output_bytes.append(size[key])
        step = 0.0
        for target in sorted(readers[key]):
            specs[target].sources.append((source, port))
            if (source, target) not in paid:
                step = max(step, float(again.get((source, target), 0)))
                paid.add((source, target))
        decode_sizes.append((source, step))
    return [step for _, step in decode_sizes]
