"""Watch one forward pass: which block each kernel belongs to, its work, and who reads whose data.

Runs on ``meta`` tensors as on real ones: only shapes are looked at.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

# These read only the rows that they are asked for, not the whole of their first argument.
_GATHERS = ("embedding", "index_select", "gather", "index")


@dataclass(slots=True)
class Seen:
    """What a pass showed of one block.

    Attributes:
        first_call: Number of its first call among all blocks' first calls; -1 = never called.
        kernels: (floating-point operations, bytes moved) of each kernel, in order.
        workspace_bytes: Most bytes alive at once in one call, beside weights: inputs, and what the
            call made.
    """

    first_call: int = -1
    kernels: list[tuple[float, float]] = field(default_factory=list)
    workspace_bytes: int = 0


class BlockTrace(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A dispatch mode for one forward pass of ``model``.

    Args:
        modules: Block number of each block that is a module.
        parameters: Block number of each parameter that is a block of its own.
        count: Number of blocks.

    Attributes:
        seen: One ``Seen`` per block.
        moved: ``(producer, consumer) -> {tensor: bytes}`` of data that blocks read of each other.

    Kernels outside all blocks (residual sums, masks) belong to the block whose data they read
    last, which is where they run; those that read no block's data cost nothing.
    """

    def __init__(
        self,
        modules: Mapping[torch.nn.Module, int],
        parameters: Mapping[torch.Tensor, int],
        count: int,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen = [Seen() for _ in range(count)]
        self.moved: dict[tuple[int, int], dict[int, int]] = {}
        self._modules = modules
        self._handles: list[Any] = []
        self._inside: list[tuple[int, int]] = []
        self._origin: weakref.WeakKeyDictionary[torch.UntypedStorage, int] = (
            weakref.WeakKeyDictionary()
        )
        self._number: weakref.WeakKeyDictionary[torch.UntypedStorage, int] = (
            weakref.WeakKeyDictionary()
        )
        self._numbers = 0
        self._calls = 0
        self._live = 0
        self._peak = 0
        for tensor, block in parameters.items():
            self._origin[tensor.untyped_storage()] = block

    def __enter__(self) -> BlockTrace:
        """Start to watch, and hook the blocks."""
        for module, block in self._modules.items():
            before, after = self._hooks(block)
            self._handles.append(module.register_forward_pre_hook(before, with_kwargs=True))
            self._handles.append(module.register_forward_hook(after, with_kwargs=True))
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *details: Any) -> None:
        """Stop, and leave the model as it was."""
        super().__exit__(*details)  # type: ignore[no-untyped-call]
        for handle in self._handles:
            handle.remove()

    def origin(self, tensor: torch.Tensor) -> int:
        """The block that made a tensor, or -1."""
        return self._origin.get(tensor.untyped_storage(), -1)

    def _hooks(self, block: int) -> tuple[Any, Any]:
        def before(module: torch.nn.Module, args: Any, kwargs: Any) -> None:
            self._enter(block)
            self._inside.append((block, self._live))
            self._peak = self._live

        def after(module: torch.nn.Module, args: Any, kwargs: Any, result: Any) -> None:
            _, live = self._inside.pop()
            given = {t.untyped_storage(): t for t in _tensors((args, kwargs))}
            held = sum(t.untyped_storage().nbytes() for t in given.values())
            seen = self.seen[block]
            seen.workspace_bytes = max(seen.workspace_bytes, self._peak - live + held)

        return before, after

    def _enter(self, block: int) -> None:
        if self.seen[block].first_call < 0:
            self.seen[block].first_call = self._calls
            self._calls += 1

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        read = list(_tensors((args, kwargs)))
        made = list(_tensors(result))
        origins = [self.origin(t) for t in read]
        latest = max(
            (o for o in origins if o >= 0),
            key=lambda o: self.seen[o].first_call,
            default=-1,
        )
        block = self._inside[-1][0] if self._inside else latest
        if block < 0:
            return result
        self._enter(block)
        sources = {t.untyped_storage() for t in read}
        for tensor, origin in zip(read, origins, strict=True):
            if origin >= 0 and origin != block:
                number = self._number.get(tensor.untyped_storage(), -1 - origin)
                sizes = self.moved.setdefault((origin, block), {})
                sizes[number] = max(sizes.get(number, 0), _bytes(tensor))
        fresh = [t for t in made if t.untyped_storage() not in sources]
        for tensor in fresh:
            self._keep(tensor, block)
        if fresh or func._schema.is_mutable:
            self.seen[block].kernels.append(_work(func, args, kwargs, result, read, fresh))
        return result

    def _keep(self, tensor: torch.Tensor, block: int) -> None:
        storage = tensor.untyped_storage()
        if storage in self._origin:
            return
        self._origin[storage] = block
        self._number[storage] = self._numbers
        self._numbers += 1
        size = storage.nbytes()
        self._live += size
        self._peak = max(self._peak, self._live)
        weakref.finalize(storage, self._free, size)

    def _free(self, size: int) -> None:
        self._live -= size


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _work(
    func: Any,
    args: Any,
    kwargs: Any,
    result: Any,
    read: list[torch.Tensor],
    fresh: list[torch.Tensor],
) -> tuple[float, float]:
    """Floating-point operations, and bytes read and written, of one kernel."""
    packet = func._overloadpacket
    count = flop_registry.get(packet)
    flop = float(count(*args, **kwargs, out_val=result)) if count is not None else 0.0
    written = sum(map(_bytes, fresh))
    name = packet.__name__
    if name in _GATHERS:
        return flop, 2.0 * written
    taken = sum(map(_bytes, read))
    if name == "_grouped_mm" and len(read) >= 2 and read[1].ndim == 3:
        # Rows of the first matrix go to experts: no more experts are read than there are rows.
        experts, rows = read[1].shape[0], read[0].shape[0]
        taken -= _bytes(read[1]) * (experts - min(experts, rows)) // experts
        flop = 2.0 * read[0].numel() * read[1].shape[2]
    return flop, float(taken + written)
