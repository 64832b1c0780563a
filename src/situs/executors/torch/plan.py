"""What a placed program does, step by step: run ops, copy tensors, look at views, let go."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx.node import map_aggregate
from torch.utils._pytree import tree_map

from situs.core import Placement
from situs.errors import CompileError
from situs.executors.torch.devices import moved, real
from situs.importers.torch.exporting import storage_key, tensors
from situs.importers.torch.ops import TorchImported

# Name of a node, and of the device that its value is on; no device for numbers and what is given.
Key = tuple[str, str]
Values = dict[Key, Any]


@dataclass(slots=True)
class Step:
    """``values[key] = make(values)``; afterwards ``drop`` is not needed any more."""

    key: Key
    make: Callable[[Values], Any]
    drop: list[Key] = field(default_factory=list)


@dataclass(slots=True)
class Plan:
    """Steps in the order of the program, and what stays between requests.

    Views are repeated on every device that reads them; a tensor is copied once to a device. What no
    input changes is computed when the plan is made.

    Attributes:
        steps: In order; a value is let go after its last reader.
        held: Weights, buffers and constants on every device that reads them.
        outputs: Key of each output, or its plain value.
        state: New value (key or plain) and the copies that it is written back to.
    """

    imported: TorchImported
    placement: Placement
    steps: list[Step] = field(default_factory=list)
    held: Values = field(default_factory=dict)
    outputs: list[Any] = field(default_factory=list)
    state: list[tuple[Any, list[Key]]] = field(default_factory=list)
    _home: dict[torch.fx.Node, str] = field(default_factory=dict)
    _still: set[torch.fx.Node] = field(default_factory=set)
    _wanted: dict[torch.fx.Node, dict[str, None]] = field(default_factory=dict)
    _reads: list[list[Key]] = field(default_factory=list)
    _moved: dict[Any, torch.Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        nodes = [n for n in self.imported.model.module.graph.nodes if n.op != "output"]
        self._find_homes(nodes)
        self._find_wanted(nodes)
        for node in nodes:
            self._add(node)
        self._let_go()

    def device(self, op: int) -> str:
        """Name of the device of an op."""
        return self.placement.devices[int(self.placement.assignment[op])]

    def _find_homes(self, nodes: list[torch.fx.Node]) -> None:
        """Ops are at home where they are placed; views and numbers with what they are made of."""
        first = self.device(0) if len(self.placement.assignment) else "cpu"
        program = self.imported.model
        for node in nodes:
            op = self.imported.op_of.get(node.name)
            sources = node.all_input_nodes
            homes = [self._home[s] for s in sources if s not in self._still]
            self._home[node] = self.device(op) if op is not None else (homes or [first])[0]
            given = node.op == "placeholder" and node.name not in program.held
            if op is None and not homes and not given and node.name not in program.state:
                self._still.add(node)

    def _find_wanted(self, nodes: list[torch.fx.Node]) -> None:
        """On which devices each value is read, last reader first."""
        program = self.imported.model
        for number, value in enumerate(program.outputs):
            op = self.imported.output_ops[number]
            if isinstance(value, torch.fx.Node):
                device = self.device(op) if op >= 0 else self._home[value]
                self._want(value, device)
                self.outputs.append(self._key(value, device))
            else:
                self.outputs.append(value)
        for value in program.state.values():
            if isinstance(value, torch.fx.Node):
                self._want(value, self._home[value])
        for node in reversed(nodes):
            follows = node.name not in self.imported.op_of and not _is_number(node)
            devices = list(self._wanted.get(node, ())) if follows else [self._home[node]]
            for source in node.all_input_nodes:
                for device in devices:
                    self._want(source, device)

    def _want(self, node: torch.fx.Node, device: str) -> None:
        self._wanted.setdefault(node, {})[device] = None

    def _key(self, node: torch.fx.Node, device: str) -> Key:
        return node.name, "" if _is_number(node) else device

    def _add(self, node: torch.fx.Node) -> None:
        program, home = self.imported.model, self._home[node]
        wanted = list(self._wanted.get(node, ()))
        if node.name in program.held:
            for device in wanted:
                self.held[node.name, device] = self._stored(node, device)
            if node.name in program.state:
                self._write_back(node, [(node.name, device) for device in wanted])
        elif node.op == "placeholder":
            if node.name in program.state:
                self._write_back(node, [(node.name, "")])
            if not _is_number(node):
                given = (node.name, "")
                self._step((node.name, home), lambda v: moved(v[given], "", home), [given])
                self._copies(node, home, wanted)
        elif node.op == "get_attr":
            for device in wanted:
                self.held[node.name, device] = _inner(node, device)
        elif node.name in self.imported.op_of:
            self._run(node, home)
            self._copies(node, home, wanted)
        elif _is_number(node):
            self._run(node, home)
        else:
            for device in wanted:
                self._run(node, device)

    def _write_back(self, node: torch.fx.Node, copies: list[Key]) -> None:
        new = self.imported.model.state[node.name]
        value = self._key(new, self._home[new]) if isinstance(new, torch.fx.Node) else new
        self.state.append((value, copies))

    def _stored(self, node: torch.fx.Node, device: str) -> torch.Tensor:
        """A weight on a device: a tied one once, a buffer that is written to always a copy."""
        tensor = self.imported.model.held[node.name].detach()
        if tensor.is_meta and device != "meta":
            raise CompileError(
                f"{node.name}: the model was exported on meta and holds no weights to run with on "
                f"{device}; place it on meta, or export it with its weights"
            )
        shape = tuple(tensor.shape), tensor.stride(), tensor.storage_offset()
        key = storage_key(tensor), device, *shape
        if key not in self._moved:
            # On the device where it is already, it is not copied: it is only read.
            written = node.name in self.imported.model.state
            there = tensor.device == real(device) and device in ("cpu", "meta", str(tensor.device))
            self._moved[key] = tensor if there and not written else moved(tensor, "", device)
        return self._moved[key]

    def _run(self, node: torch.fx.Node, device: str) -> None:
        key = self._key(node, device)
        function = _function(node, device)
        args = map_aggregate(node.args, lambda a: _there(a, device))
        kwargs = dict(map_aggregate(node.kwargs, lambda a: _there(a, device)))
        if "device" in kwargs:
            kwargs["device"] = real(device)
        sources = {s: self._key(s, device) for s in node.all_input_nodes}

        def make(values: Values) -> Any:
            a, k = torch.fx.node.map_arg((args, kwargs), lambda s: values[sources[s]])
            return function(*a, **k)

        if node in self._still:
            with torch.no_grad():
                self.held[key] = make(self.held)
        else:
            self._step(key, make, list(sources.values()))

    def _copies(self, node: torch.fx.Node, home: str, wanted: list[str]) -> None:
        source = (node.name, home)

        def copy_to(device: str) -> Callable[[Values], Any]:
            return lambda values: tree_map(lambda leaf: moved(leaf, home, device), values[source])

        for device in wanted:
            if device != home:
                self._step((node.name, device), copy_to(device), [source])

    def _step(self, key: Key, make: Callable[[Values], Any], reads: list[Key]) -> None:
        self.steps.append(Step(key, make))
        self._reads.append(reads)

    def _let_go(self) -> None:
        kept = {out for out in self.outputs if isinstance(out, tuple)} | self.held.keys()
        for new, copies in self.state:
            kept |= {*copies, *([new] if isinstance(new, tuple) else [])}
        for step, reads in zip(reversed(self.steps), reversed(self._reads), strict=True):
            for key in (step.key, *reads):
                if key not in kept and key[1]:
                    kept.add(key)
                    step.drop.append(key)


def _is_number(node: torch.fx.Node) -> bool:
    """Whether a node's value has no tensors: it is nowhere in particular."""
    return node.op != "get_attr" and not tensors(node.meta.get("val"))


def _there(argument: Any, device: str) -> Any:
    return real(device) if isinstance(argument, torch.device) else argument


def _function(node: torch.fx.Node, device: str) -> Callable[..., Any]:
    if node.op == "call_method":
        name = str(node.target)
        return lambda first, *args, **kwargs: getattr(first, name)(*args, **kwargs)
    if node.op == "call_module":
        assert node.graph.owning_module is not None
        module = node.graph.owning_module.get_submodule(str(node.target))
        return copy.deepcopy(module).to(real(device))
    assert callable(node.target)
    return node.target


def _inner(node: torch.fx.Node, device: str) -> torch.fx.GraphModule:
    """A branch or body of a higher-order op, as it runs on a device."""
    module = copy.deepcopy(getattr(node.graph.owning_module, str(node.target)))
    for inner in module.graph.nodes:
        inner.args = map_aggregate(inner.args, lambda a: _there(a, device))
        inner.kwargs = map_aggregate(inner.kwargs, lambda a: _there(a, device))
    module.recompile()
    return module.to(real(device))  # type: ignore[no-any-return]
