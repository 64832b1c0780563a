"""A model as one FX graph of functional ops: by ``torch.export``, or by ``torch.fx``."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import numpy as np
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils._pytree import TreeSpec, tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from situs.errors import ModelError

# Checks of the machine that the model was exported on: a placement runs it on others.
_ASSERTIONS = ("_assert_tensor_metadata", "_assert_scalar", "_assert_async", "sym_constrain_range")


@dataclass(frozen=True, eq=False)
class Program:
    """A model as an FX graph without in-place ops, and what its placeholders stand for.

    Attributes:
        module: The graph; ``node.meta["val"]`` is an example of each node's value.
        how: ``torch.export`` or ``torch.fx``.
        why: Why ``torch.export`` was not used, or empty.
        held: Parameters, buffers and constants by the name of the node that stands for them.
        names: Every name that the model has for each of ``held``'s storages, by storage.
        inputs: Placeholders of what the caller gives, in order.
        outputs: What the model returns, in order: nodes or plain values.
        state: New value (a node or a plain value) by the placeholder that it is written back to.
        in_spec: Structure of the arguments, ``(args, kwargs)``; None = positional.
        out_spec: Structure of the result; None = that of the graph's output.
        flop: FLOP by node where they were counted in a run (``torch.fx`` only).
    """

    module: torch.fx.GraphModule
    how: str
    why: str
    held: dict[str, torch.Tensor]
    names: dict[int, list[str]]
    inputs: tuple[str, ...]
    outputs: tuple[Any, ...]
    state: dict[str, Any]
    in_spec: TreeSpec | None = None
    out_spec: TreeSpec | None = None
    flop: dict[str, float] = field(default_factory=dict)

    def draw(self, rng: np.random.Generator) -> list[np.ndarray[Any, Any]]:
        """An array per tensor input: normal floats, whole numbers 0 or 1, booleans."""
        nodes = {node.name: node for node in self.module.graph.nodes}
        drawn: list[np.ndarray[Any, Any]] = []
        for value in (nodes[name].meta.get("val") for name in self.inputs):
            if not isinstance(value, torch.Tensor):
                continue
            shape = shape_of(value)
            if value.is_floating_point():
                drawn.append(rng.standard_normal(shape).astype(np.float32))
            else:
                whole = np.bool_ if value.dtype is torch.bool else np.int64
                drawn.append(rng.integers(0, 2, shape).astype(whole))
        return drawn


def storage_key(tensor: torch.Tensor) -> int:
    """Identity of a tensor's storage, on ``meta`` too; tied weights have the same."""
    return int(tensor.untyped_storage()._cdata)


def export_module(
    model: torch.nn.Module, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
) -> Program:
    """Export a model in evaluation mode, by ``torch.export`` or, where that fails, ``torch.fx``.

    Args:
        model: On any device; on ``meta`` nothing is computed.
        args: Example of its positional arguments.
        kwargs: Example of its keyword arguments.

    Raises:
        ModelError: If neither can take it; both reasons are given.
    """
    training = model.training
    model.eval()
    with _quiet():
        try:
            return _export(model, tuple(args), dict(kwargs or {}))
        finally:
            model.train(training)


def _export(model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
    # What a model on meta makes without naming a device must be there too.
    with torch.no_grad(), torch.device(_device(model)):
        try:
            return from_exported(torch.export.export(model, args, kwargs, strict=False))
        # Whatever a model's own code raises under export, torch.fx may still trace it.
        except Exception as error:
            why = first_line(error)
        try:
            return _traced(model, args, kwargs, why)
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(
                f"{type(model).__name__}: torch.export cannot take it ({why}), nor can "
                f"torch.fx ({first_line(error)}); correct the model or its example inputs"
            ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Without PyTorch's remark on its own copying of tree specs, which no user can act on."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*isinstance.treespec, LeafSpec.*", FutureWarning)
        yield


def load_exported(path: str | Path) -> Program:
    """Read a ``.pt2`` file that ``torch.export.save`` wrote.

    PyTorch may unpickle objects in it: load only files that you trust.

    Raises:
        ModelError: If it cannot be read.
    """
    if not Path(path).is_file() or not is_zipfile(path):
        raise ModelError(f"{path}: no file that torch.export.save wrote; export the model again")
    try:
        with _quiet():
            return from_exported(torch.export.load(path))
    except ModelError:
        raise
    # The archive's reader raises whatever its parts raise: all mean that the file is no good.
    except Exception as error:
        raise ModelError(
            f"{path}: PyTorch {torch.__version__} cannot read it: {first_line(error)}; "
            "export the model again with this version"
        ) from error


def from_exported(exported: ExportedProgram) -> Program:
    """Take over an exported program, made functional; the given one is not changed."""
    functional = exported.run_decompositions({})
    signature = functional.graph_signature
    stored = {**functional.state_dict, **functional.constants}
    held: dict[str, torch.Tensor] = {}
    inputs = []
    placeholder: dict[str, str] = {}
    for spec in signature.input_specs:
        name = getattr(spec.arg, "name", "")
        if spec.kind is InputKind.USER_INPUT:
            inputs.append(name)
            placeholder[name] = name
        elif spec.target in stored and isinstance(stored[spec.target], torch.Tensor):
            held[name] = stored[spec.target]
            placeholder[spec.target] = name
        else:
            raise ModelError(f"it reads {spec.target}, a {spec.kind.name.lower()}, not a tensor")
    nodes = {node.name: node for node in functional.graph.nodes}
    outputs: list[Any] = []
    state: dict[str, Any] = {}
    for output in signature.output_specs:
        value = nodes.get(getattr(output.arg, "name", ""), getattr(output.arg, "value", None))
        if output.kind is OutputKind.USER_OUTPUT:
            outputs.append(value)
        elif output.kind in (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION):
            assert output.target is not None
            state[placeholder[output.target]] = value
        else:
            raise ModelError(f"it returns a {output.kind.name.lower()}, which is not for inference")
    _drop_assertions(functional.graph_module)
    names: dict[int, list[str]] = {}
    for name, tensor in stored.items():
        if isinstance(tensor, torch.Tensor):
            names.setdefault(storage_key(tensor), []).append(name)
    call = functional.call_spec
    return Program(
        functional.graph_module,
        "torch.export",
        "",
        held,
        names,
        tuple(inputs),
        tuple(outputs),
        state,
        call.in_spec,
        call.out_spec,
    )


def _drop_assertions(module: torch.fx.GraphModule) -> None:
    for node in reversed(module.graph.nodes):
        packet = getattr(node.target, "_overloadpacket", None)
        if getattr(packet, "__name__", "").startswith(_ASSERTIONS) and not node.users:
            module.graph.erase_node(node)
    module.graph.eliminate_dead_code()
    module.recompile()


class _Recorder(torch.fx.Interpreter):
    """Runs a traced graph once: examples of values, FLOP, and a refusal of in-place ops."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        super().__init__(module)
        self.flop: dict[str, float] = {}

    def run_node(self, n: torch.fx.Node) -> Any:
        before = [(s.name, t, t._version) for s in n.all_input_nodes for t in tensors(self.env[s])]
        with FlopCounterMode(display=False) as counter:
            value = super().run_node(n)
        for name, tensor, version in before:
            if tensor._version != version:
                raise ModelError(
                    f"op {n.name!r} changes {name!r} in place, which torch.fx does not show; "
                    "use the form that returns a new tensor (inplace=False)"
                )
        self.flop[n.name] = float(counter.get_total_flops())
        n.meta["val"] = value
        return value


def _traced(
    model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], why: str
) -> Program:
    from inspect import signature

    given = signature(model.forward).bind(*args, **kwargs)
    module = torch.fx.symbolic_trace(model)
    placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
    missing = [n.target for n in placeholders if n.target not in given.arguments and not n.args]
    if missing:
        raise ModelError(f"{type(model).__name__}: give an example of its argument {missing[0]!r}")
    for node in placeholders:
        if node.target not in given.arguments:
            node.replace_all_uses_with(node.args[0])
            module.graph.erase_node(node)
    module.recompile()
    recorder = _Recorder(module)
    recorder.run(*given.arguments.values())
    held = {
        node.name: node.meta["val"]
        for node in module.graph.nodes
        if node.op == "get_attr" and isinstance(node.meta["val"], torch.Tensor)
    }
    names: dict[int, list[str]] = {}
    for name, tensor in [
        *model.named_parameters(remove_duplicate=False),
        *model.named_buffers(remove_duplicate=False),
    ]:
        names.setdefault(storage_key(tensor), []).append(name)
    (returned,) = (n for n in module.graph.nodes if n.op == "output")
    leaves = tree_leaves(returned.args[0])
    return Program(
        module,
        "torch.fx",
        why,
        held,
        names,
        tuple(n.name for n in module.graph.nodes if n.op == "placeholder"),
        tuple(leaves),
        {},
        flop=recorder.flop,
    )


def extent(size: Any) -> int:
    """A dimension as a number: of an open one, that of the example it was exported with.

    Raises:
        ModelError: If the example is not known.
    """
    if isinstance(size, torch.SymInt):
        hint = size.node.hint
        if hint is None:
            raise ModelError(
                f"dimension {size} is open and depends on the data; export with fixed shapes"
            )
        return int(hint)
    return int(size)


def shape_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """A tensor's shape, open dimensions as in the example."""
    return tuple(extent(size) for size in tensor.shape)


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors in a value of any structure."""
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _device(model: torch.nn.Module) -> torch.device:
    held = next(iter([*model.parameters(), *model.buffers()]), torch.empty(0))
    return held.device


def first_line(error: Exception) -> str:
    """The first line of an error's message that says something, or the error's name."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines or [type(error).__name__])[0][:200]
