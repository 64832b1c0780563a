"""Run a placement with OpenVINO's HETERO plugin: sub-graphs of one request one after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from situs.core import Placement
from situs.errors import CompileError, RunError
from situs.executors.executor import Realised
from situs.executors.readback import (
    original_ops,
    realised_exactly,
    realised_hetero,
    realised_plain,
    subgraph_of_ops,
)
from situs.executors.runtime import core, first_line, tensor_array
from situs.hardware import Cluster, Device

if TYPE_CHECKING:
    import openvino as ov

    from situs.importers import Imported


class PlacedModel:
    """A compiled placement; everything that it does not define itself is ``ov.CompiledModel``'s."""

    def __init__(self, compiled: ov.CompiledModel, realised: Realised) -> None:
        self.compiled = compiled
        self._realised = realised
        self._request: ov.InferRequest | None = None

    @property
    def realised(self) -> Realised:
        """What was compiled, read back from the runtime."""
        return self._realised

    def __getattr__(self, name: str) -> Any:
        return getattr(self.compiled, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run once, as ``ov.CompiledModel`` does."""
        return self.compiled(*args, **kwargs)

    def bind(self, inputs: Sequence[np.ndarray[Any, Any]]) -> None:
        """Set the input tensors of the next ``run`` calls."""
        import openvino as ov

        try:
            request = self.compiled.create_infer_request()
            for i, array in enumerate(inputs):
                request.set_input_tensor(i, ov.Tensor(np.asarray(array, order="C")))
        except RuntimeError as error:
            raise RunError(f"compiled, but the request failed: {first_line(error)}") from error
        self._request = request

    def run(self) -> None:
        """Run one request on the bound inputs."""
        if self._request is None:
            raise RunError("no inputs are bound; call bind first")
        try:
            self._request.infer(share_inputs=True, share_outputs=True)
        except RuntimeError as error:
            raise RunError(f"compiled, but inference failed: {first_line(error)}") from error

    def outputs(self) -> list[np.ndarray[Any, Any]]:
        """Copies of the outputs of the last request."""
        if self._request is None:
            raise RunError("nothing has run yet")
        count = len(self.compiled.outputs)
        return [tensor_array(self._request.get_output_tensor(i)) for i in range(count)]

    def profile(self) -> list[Any]:
        """``ov.ProfilingInfo`` of the last request (needs ``PERF_COUNT``)."""
        if self._request is None:
            raise RunError("nothing has run yet")
        return list(self._request.get_profiling_info())


class HeteroExecutor:
    """Compiles placements with ``HETERO``; a uniform one as the plain device, which is faster."""

    name: ClassVar[str] = "hetero"

    def __init__(self, cluster: Cluster) -> None:
        self._devices: dict[str, Device] = {device.name: device for device in cluster.devices}

    def compile(
        self, imported: Imported, placement: Placement, options: Mapping[str, str] | None = None
    ) -> PlacedModel:
        """Compile as placed, and read back what the runtime made of it."""
        placement.require(imported.graph)
        # HETERO itself would try to load a plugin of that name.
        placement.require_devices(self._devices)
        extra = dict(options or {})
        uniform = placement.uniform_device
        try:
            if uniform is not None:
                config = {**dict(self._devices[uniform].properties), **extra}
                compiled = core().compile_model(imported.model, uniform, config)
                note = "one device only: compiled as the plain device, without HETERO"
                return PlacedModel(
                    compiled, realised_plain(compiled, imported.graph, placement, uniform, note)
                )
            return self._hetero(imported, placement, extra)
        except RuntimeError as error:
            where = uniform or "HETERO"
            raise CompileError(f"{where} refused to compile: {first_line(error)}") from error

    def realise(
        self, imported: Imported, placement: Placement, inputs: Sequence[np.ndarray[Any, Any]]
    ) -> Realised:
        """Read back op by op where a placement runs: compiles an instrumented twin and runs it.

        Raises:
            CompileError: If a device refuses.
            RunError: If the twin fails at inference.
        """
        twin = self.compile(imported, placement, {"PERF_COUNT": "YES"})
        if placement.uniform_device is not None:
            return twin.realised
        twin.bind(inputs)
        twin.run()
        graph = imported.graph
        names = [info.node_name for info in twin.profile()]
        subgraph = subgraph_of_ops(names, original_ops(twin.compiled, graph), graph.num_ops)
        executed = [str(name) for name in twin.compiled.get_property("EXECUTION_DEVICES")]
        return realised_exactly(twin.realised, graph, placement, subgraph, executed)

    def _hetero(
        self, imported: Imported, placement: Placement, extra: dict[str, str]
    ) -> PlacedModel:
        used = placement.used
        model = annotated(imported, placement)
        config: dict[str, Any] = {
            **extra,
            "DEVICE_PROPERTIES": {name: dict(self._devices[name].properties) for name in used},
        }
        compiled = core().compile_model(model, f"HETERO:{','.join(used)}", config)
        return PlacedModel(compiled, realised_hetero(compiled, imported.graph, placement))


def annotated(imported: Imported, placement: Placement) -> ov.Model:
    """A clone of the model with an affinity on every node, constants following their readers."""
    model = imported.model.clone()
    index, owner = imported.graph.op_index, imported.constant_owner
    for node in model.get_ordered_ops():
        name = node.get_friendly_name()
        op = index.get(name, owner.get(name, 0))
        node.get_rt_info()["affinity"] = placement.devices[int(placement.assignment[op])]
    return model
