"""Run a placed exported model op by op: each op on its device, tensors copied where it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from situs.core import Placement, count_subgraphs
from situs.errors import CompileError, RunError
from situs.executors.executor import Difference, Realised
from situs.executors.torch.devices import real
from situs.executors.torch.plan import Plan, Values
from situs.graph.arrays import frozen
from situs.hardware import Cluster
from situs.importers.torch.exporting import first_line, tensors
from situs.importers.torch.ops import TorchImported

_COARSE = {torch.float16: "f16", torch.bfloat16: "bf16"}


class TorchModel:
    """A placed model; called with its own arguments, it returns what the model returns."""

    def __init__(self, imported: TorchImported, placement: Placement) -> None:
        self._imported = imported
        self._plan = Plan(imported, placement)
        self._given: list[Any] | None = None
        self._results: list[Any] | None = None
        self._waited = [
            real(name) for name in placement.used if not name.startswith(("cpu", "meta"))
        ]
        held = [t for t in imported.model.held.values() if t.is_floating_point()]
        precisions = sorted({_COARSE.get(t.dtype, "f32") for t in held} or {"f32"})
        self._realised = Realised(
            placement.assignment,
            frozen(np.full(imported.graph.num_ops, -1), np.int32),
            count_subgraphs(imported.graph, placement.assignment),
            (),
            tuple(("torch.INFERENCE_PRECISION_HINT", name) for name in precisions),
        )

    @property
    def realised(self) -> Realised:
        """As planned: each op is run by itself. ``TorchExecutor.realise`` looks at its tensors."""
        return self._realised

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run once on the model's own arguments; the result has the model's own structure.

        Raises:
            RunError: If the arguments have another structure than those it was exported with.
        """
        program = self._imported.model
        flat, spec = tree_flatten((args, kwargs))
        if program.in_spec is not None and spec != program.in_spec:
            raise RunError(f"the model was exported for arguments {program.in_spec}, not {spec}")
        self._given = flat
        self.run()
        assert self._results is not None
        if program.out_spec is not None:
            return tree_unflatten(self._results, program.out_spec)
        return self._results[0] if len(self._results) == 1 else tuple(self._results)

    def bind(self, inputs: Sequence[Any]) -> None:
        """Set the tensors of the next ``run`` calls: arrays or tensors, in the order of inputs."""
        self._given = bound(self._imported, inputs)

    def run(self) -> None:
        """Run one request on the bound inputs, and wait for every device."""
        self.look({})

    def look(self, seen: dict[str, torch.device]) -> None:
        """As ``run``; adds to ``seen`` the device that each node's tensors were made on."""
        names = self._imported.model.inputs
        if self._given is None:
            raise RunError("no inputs are bound; call bind first")
        if len(self._given) != len(names):
            raise RunError(f"the model has {len(names)} inputs; {len(self._given)} were given")
        values: Values = dict(self._plan.held)
        values |= {(name, ""): given for name, given in zip(names, self._given, strict=True)}
        where = ("", "")
        try:
            with torch.no_grad():
                for step in self._plan.steps:
                    where = step.key
                    values[where] = made = step.make(values)
                    if where[0] not in seen and (found := tensors(made)):
                        seen[where[0]] = found[0].device
                    for key in step.drop:
                        del values[key]
                self._results = [
                    values[out] if isinstance(out, tuple) else out for out in self._plan.outputs
                ]
                for new, copies in self._plan.state:
                    for where in copies:
                        values[where].copy_(values[new] if isinstance(new, tuple) else new)
            for device in self._waited:
                torch.accelerator.synchronize(device)
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            raise RunError(f"op {where[0]!r} on {where[1]}: {first_line(error)}") from error

    def tensors(self) -> list[torch.Tensor]:
        """The tensors of the last request's result, on their devices."""
        if self._results is None:
            raise RunError("nothing has run yet")
        return [value for value in self._results if isinstance(value, torch.Tensor)]

    def outputs(self) -> list[np.ndarray[Any, Any]]:
        """Copies of the tensors of the last request's result; ``bfloat16`` widened to ``f32``.

        Raises:
            RunError: If nothing has run yet, or an output is on ``meta``, where there is no data.
        """
        return [to_array(tensor) for tensor in self.tensors()]


class TorchExecutor:
    """Places exported models on PyTorch's devices."""

    name: ClassVar[str] = "torch"

    def __init__(self, cluster: Cluster) -> None:
        self._names = cluster.names

    def compile(
        self,
        imported: TorchImported,
        placement: Placement,
        options: Mapping[str, str] | None = None,
    ) -> TorchModel:
        """Put weights where they are read, and plan the steps.

        Args:
            imported: The exported program and its graph.
            placement: Must belong to that graph and to this executor's devices.
            options: None: PyTorch's devices take no properties.

        Raises:
            PlacementError: If it belongs to another graph or names an unknown device.
            CompileError: If the weights do not go there.
        """
        placement.require(imported.graph)
        placement.require_devices(self._names)
        if options:
            raise CompileError(f"PyTorch's devices take no property {next(iter(options))!r}")
        try:
            return TorchModel(imported, placement)
        except RuntimeError as error:  # Out of memory, or no such kernel.
            raise CompileError(first_line(error)) from error

    def realise(
        self, imported: TorchImported, placement: Placement, inputs: Sequence[Any]
    ) -> Realised:
        """Run once and look at which device each op's tensors were made on.

        Raises:
            RunError: If an op fails.
        """
        model = self.compile(imported, placement)
        model.bind(inputs)
        seen: dict[str, torch.device] = {}
        model.look(seen)
        differences = []
        for node, op in imported.op_of.items():
            planned = placement.devices[int(placement.assignment[op])]
            if node in seen and seen[node] != real(planned):
                cause = "its kernel made the tensor elsewhere"
                name = imported.graph.op_names[op]
                differences.append(Difference(name, planned, str(seen[node]), cause))
        return replace(model.realised, differences=tuple(differences))


def unplaced_outputs(imported: TorchImported, inputs: Sequence[Any]) -> list[Any]:
    """Outputs of the program as it was exported, without any placement: arrays, to check against.

    Raises:
        RunError: If it holds no weights (it was exported on ``meta``).
    """
    program = imported.model
    held = [tensor.detach().clone() for tensor in program.held.values()]
    where = held[0].device if held else torch.device("cpu")
    given = dict(zip(program.inputs, bound(imported, inputs), strict=True))
    values = {name: v.to(where) if isinstance(v, torch.Tensor) else v for name, v in given.items()}
    values |= dict(zip(program.held, held, strict=True))
    order = [n.name for n in program.module.graph.nodes if n.op == "placeholder"]
    with torch.no_grad():
        result = torch.fx.Interpreter(program.module).run(*(values[name] for name in order))
    count = len(program.outputs)
    flat = tree_flatten(result)[0]
    return [to_array(t) for t in flat[len(flat) - count :] if isinstance(t, torch.Tensor)]


def bound(imported: TorchImported, inputs: Sequence[Any]) -> list[Any]:
    """All arguments of the program, in order: the given tensors, and its own plain values.

    Raises:
        RunError: If there are more or fewer than it has tensor inputs.
    """
    nodes = {node.name: node for node in imported.model.module.graph.nodes}
    values = [nodes[name].meta.get("val") for name in imported.model.inputs]
    wanted = sum(isinstance(value, torch.Tensor) for value in values)
    if len(inputs) != wanted:
        raise RunError(f"the model has {wanted} inputs; {len(inputs)} were given")
    given = iter(inputs)
    return [
        torch.as_tensor(next(given)).to(v.dtype) if isinstance(v, torch.Tensor) else v
        for v in values
    ]


def to_array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """A copy as an array on the host; ``bfloat16``, which NumPy lacks, as ``float32``.

    Raises:
        RunError: If the tensor is on ``meta``.
    """
    if tensor.is_meta:
        raise RunError("the outputs are on meta, which computes shapes only; ask for tensors()")
    wide = tensor.float() if tensor.dtype is torch.bfloat16 else tensor
    return np.array(wide.detach().cpu().numpy())
