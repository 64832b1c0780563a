"""An exported model as a graph of ops."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from situs.errors import ModelError
from situs.graph import Graph
from situs.graph.build import OpSpec, build_graph
from situs.importers.torch.exporting import (
    Program,
    export_module,
    load_exported,
    shape_of,
    storage_key,
    tensors,
)
from situs.importers.torch.work import bytes_of, estimate, node_flop, op_type

DTYPES = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.bool: "boolean",
}
"""Graph's names of element types; others keep PyTorch's."""


@dataclass(frozen=True, eq=False)
class TorchImported:
    """A graph and the exported program that it describes.

    Attributes:
        graph: An op for every input, every node that computes, and every tensor returned, named
            ``module.path/node``. Views are part of the ops that read them, as are values that
            depend on no input; ``size`` and other numbers cost nothing.
        model: The program.
        op_of: Op by node name, for nodes that are ops.
        output_ops: Op of each output of the program; -1 where it is a plain value.
        path: The file that it came from, or None.
    """

    graph: Graph
    model: Program
    op_of: Mapping[str, int]
    output_ops: tuple[int, ...]
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class _Data:
    """Output ``port`` of op ``op``."""

    op: int
    port: int


@dataclass(frozen=True, slots=True)
class _Held:
    """A weight, buffer, or value that no input changes."""

    key: Any
    size_bytes: int


def import_module(
    model: torch.nn.Module, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
) -> TorchImported:
    """Export a model and describe it op by op; on ``meta`` no weight is needed.

    Args:
        model: A model, on any device.
        args: Example of its positional arguments; their shapes are those of the graph.
        kwargs: Example of its keyword arguments.

    Raises:
        ModelError: If neither ``torch.export`` nor ``torch.fx`` can take it.
    """
    return describe(export_module(model, args, kwargs), type(model).__name__)


def import_exported(path: str | Path) -> TorchImported:
    """Read a ``.pt2`` file and describe it op by op; load only files that you trust.

    Raises:
        ModelError: If it cannot be read, or holds what inference does not need.
    """
    try:
        return describe(load_exported(path), Path(path).stem, Path(path))
    except ModelError as error:
        text = str(error)
        raise ModelError(text if text.startswith(str(path)) else f"{path}: {text}") from error


def describe(program: Program, name: str, path: Path | None = None) -> TorchImported:
    """The graph of a program."""
    reading = _Reading(program)
    for node in program.module.graph.nodes:
        reading.take(node)
    outputs = tuple(reading.returned(k, value) for k, value in enumerate(program.outputs))
    reading.tie()
    graph = build_graph(name, reading.specs, reading.sizes)
    index = graph.op_index
    final = [index[spec.name] for spec in reading.specs]
    return TorchImported(
        graph,
        program,
        {node: final[op] for node, op in reading.op_of.items()},
        tuple(final[op] if op >= 0 else -1 for op in outputs),
        path,
    )


@dataclass
class _Reading:
    """Takes nodes in order; ``refs`` tells for each what its tensors come from."""

    program: Program
    specs: list[OpSpec] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    op_of: dict[str, int] = field(default_factory=dict)
    refs: dict[torch.fx.Node, Any] = field(default_factory=dict)
    fixed: set[torch.fx.Node] = field(default_factory=set)
    constant: dict[Any, int] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def take(self, node: torch.fx.Node) -> None:
        """Add a node to the graph."""
        if node.op == "output":
            return
        if node.name in self.program.held:
            tensor = self.program.held[node.name]
            held = _Held(storage_key(tensor), tensor.untyped_storage().nbytes())
            self.refs[node] = held
            if node.name not in self.program.state:
                self.fixed.add(node)
        elif node.op == "placeholder":
            value = node.meta.get("val")
            if isinstance(value, torch.Tensor):
                self.refs[node] = self._op(node, node.name, "input", is_input=True)
            else:
                self.refs[node] = None
        elif node.op == "get_attr":
            self.refs[node] = None  # A branch or body of a higher-order op: part of it.
        elif self._picks(node):
            self.refs[node] = self.refs[node.args[0]][node.args[1]]  # type: ignore[index]
            if node.args[0] in self.fixed:
                self.fixed.add(node)
        else:
            self._call(node)

    def returned(self, number: int, value: Any) -> int:
        """Add an op for an output; -1 for a plain value."""
        if not isinstance(value, torch.fx.Node) or not tree_leaves(self.refs[value]):
            return -1
        spec = OpSpec(self._name(f"output_{number}"), "output", is_output=True)
        self.specs.append(spec)
        self._read(spec, [value])
        return len(self.specs) - 1

    def tie(self) -> None:
        """Put ops that must share a device into one class.

        Those are the readers of a weight that has several names, and the readers of a buffer that
        is written with the op that makes its new value.
        """
        readers: dict[int, set[int]] = {}
        for op, spec in enumerate(self.specs):
            for k in spec.constants:
                readers.setdefault(k, set()).add(op)
        groups = [
            readers.get(k, set())
            for key, k in self.constant.items()
            if len(self.program.names.get(key, ())) > 1
        ]
        by_name = {node.name: node for node in self.refs}
        for name, new in self.program.state.items():
            held = self.refs[by_name[name]]
            if isinstance(held, _Held) and isinstance(new, torch.fx.Node):
                made = {leaf.op for leaf in self._leaves(new) if isinstance(leaf, _Data)}
                groups.append(made | readers.get(self.constant.get(held.key, -1), set()))
        for label, group in enumerate(_joined(groups)):
            for op in group:
                self.specs[op].colocation = label

    def _call(self, node: torch.fx.Node) -> None:
        value = node.meta["val"]
        made = tensors(value)
        if not made:
            self.refs[node] = None
            if all(source in self.fixed for source in node.all_input_nodes):
                self.fixed.add(node)
            return
        still = self._stays(node)
        if still:
            self.fixed.add(node)
        if self.is_view(node, made):
            (base,) = {id(leaf): leaf for leaf in self._leaves(node.all_input_nodes[0])}.values()
            self.refs[node] = tree_map(lambda _: base, value)
        elif still:
            size = sum(map(bytes_of, made))
            self.refs[node] = tree_map(lambda _: _Held(node.name, size), value)
        else:
            counted = self.program.flop
            flop = counted[node.name] or estimate(node) if counted else node_flop(node)
            self.refs[node] = self._op(node, _path(node), op_type(node), flop)

    def _stays(self, node: torch.fx.Node) -> bool:
        """Whether a node's value is part of the model: no input changes it.

        What is computed from weights is not: a weight is kept as it is stored, not unpacked.
        """
        if self.program.how != "torch.export" or not isinstance(node.target, torch._ops.OpOverload):
            return False
        seeded = torch.Tag.nondeterministic_seeded in node.target.tags
        if seeded or not all(source in self.fixed for source in node.all_input_nodes):
            return False
        read = [leaf for source in node.all_input_nodes for leaf in self._leaves(source)]
        stored = any(leaf.key in self.program.names for leaf in read)
        return not stored or self.is_view(node, [])

    def is_view(self, node: torch.fx.Node, made: Sequence[torch.Tensor]) -> bool:
        """Whether a node only looks at its first input's memory in another way."""
        if isinstance(node.target, torch._ops.OpOverload):
            schema = node.target._schema
            if schema.is_mutable or not node.all_input_nodes:
                return False
            # _unsafe_view is one, whose schema does not say so.
            aliases = any(r.alias_info is not None for r in schema.returns)
            return aliases or op_type(node) == "_unsafe_view"
        if self.program.how == "torch.export" or not node.all_input_nodes:
            return False
        first = node.all_input_nodes[0].meta["val"]
        return isinstance(first, torch.Tensor) and all(
            storage_key(t) == storage_key(first) for t in made
        )

    def _picks(self, node: torch.fx.Node) -> bool:
        """Whether a node takes one of several results, rather than elements of a tensor."""
        source = node.args[0] if node.target is operator.getitem else None
        return isinstance(source, torch.fx.Node) and isinstance(
            self.refs[source], tuple | list | dict
        )

    def _leaves(self, node: torch.fx.Node) -> list[Any]:
        return [leaf for leaf in tree_leaves(self.refs[node]) if leaf is not None]

    def _op(
        self,
        node: torch.fx.Node,
        name: str,
        kind: str,
        flop: float = 0.0,
        is_input: bool = False,
    ) -> Any:
        spec = OpSpec(self._name(name), kind, flop=flop, is_input=is_input)
        number = len(self.specs)
        self.specs.append(spec)
        self.op_of[node.name] = number
        self._read(spec, node.all_input_nodes)
        if node.op == "call_module":
            assert node.graph.owning_module is not None
            module = node.graph.owning_module.get_submodule(str(node.target))
            for tensor in [*module.parameters(), *module.buffers()]:
                held = _Held(storage_key(tensor), tensor.untyped_storage().nbytes())
                self._hold(spec, held)

        def output(leaf: Any) -> _Data | None:
            if not isinstance(leaf, torch.Tensor):
                return None
            spec.output_shapes.append(shape_of(leaf))
            dtype = str(leaf.dtype).removeprefix("torch.")
            spec.output_dtypes.append(DTYPES.get(leaf.dtype, dtype))
            spec.output_bytes.append(bytes_of(leaf))
            return _Data(number, len(spec.output_bytes) - 1)

        return tree_map(output, node.meta["val"])

    def _read(self, spec: OpSpec, sources: Sequence[torch.fx.Node]) -> None:
        for source in sources:
            for leaf in self._leaves(source):
                if isinstance(leaf, _Data):
                    spec.sources.append((leaf.op, leaf.port))
                else:
                    self._hold(spec, leaf)

    def _hold(self, spec: OpSpec, held: _Held) -> None:
        k = self.constant.setdefault(held.key, len(self.sizes))
        if k == len(self.sizes):
            self.sizes.append(held.size_bytes)
        if k not in spec.constants:
            spec.constants.append(k)

    def _name(self, wanted: str) -> str:
        while wanted in self.names:
            wanted += "_"
        self.names.add(wanted)
        return wanted


def _path(node: torch.fx.Node) -> str:
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    where = str(stack[-1][0]).partition("@")[0] if stack else ""
    return f"{where}/{node.name}" if where else node.name


def _joined(groups: Sequence[set[int]]) -> list[set[int]]:
    """Groups with a common member made one; those of one member left out."""
    joined: list[set[int]] = []
    for group in groups:
        apart = []
        for other in joined:
            if other & group:
                group = group | other
            else:
                apart.append(other)
        joined = [*apart, group]
    return [group for group in joined if len(group) > 1]
