"""Run a placement as a dataflow of segments: devices overlap within one request."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping, Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from situs.core import Placement
from situs.costs import CostTable, op_traffic_bytes
from situs.errors import CompileError, RunError
from situs.executors.cutting import cut
from situs.executors.executor import Difference, Realised
from situs.executors.openvino_hetero import HeteroExecutor, PlacedModel
from situs.executors.readback import configuration_of, original_ops
from situs.executors.requests import Plan, Request, Work, work
from situs.executors.runtime import core, first_line, tensor_array, with_properties
from situs.executors.segments import (
    SegmentCosts,
    Segments,
    finest_segments,
    merged_segments,
)
from situs.graph import Graph
from situs.hardware import Cluster, Device

if TYPE_CHECKING:
    import openvino as ov

    from situs.importers import Imported

Array = np.ndarray[Any, Any]

# Starting a segment and handing its tensors over, with the reorders of layouts at its border.
_SEGMENT_S = 1.5e-4


class ParallelModel:
    """A compiled placement whose devices overlap; used like ``ov.CompiledModel``."""

    def __init__(self, imported: Imported, plan: Plan, realised: Realised) -> None:
        self._model = imported.model
        self._plan = plan
        self._realised = realised
        self._request: Request | None = None
        for queue in plan.queues.values():
            threading.Thread(target=work, args=(queue,), daemon=True).start()
        self._finalizer = weakref.finalize(self, _stop, tuple(plan.queues.values()))

    @property
    def realised(self) -> Realised:
        """What was compiled, read back from the runtime."""
        return self._realised

    @property
    def inputs(self) -> list[ov.Output]:
        """Inputs of the whole model."""
        return list(self._model.inputs)

    @property
    def outputs_info(self) -> list[ov.Output]:
        """Outputs of the whole model."""
        return list(self._model.outputs)

    def close(self) -> None:
        """End the devices' threads; also done when the model is no longer referenced."""
        self._finalizer()

    def create_infer_request(self) -> Request:
        """A request of its own; any number may be in flight."""
        return Request(self._plan, len(self._model.inputs))

    def __call__(self, inputs: Sequence[Array]) -> list[Array]:
        """Run once on arrays in the order of the inputs; returns copies of the outputs."""
        self.bind(inputs)
        self.run()
        return self.outputs()

    def bind(self, inputs: Sequence[Array]) -> None:
        """Set the input tensors of the next ``run`` calls."""
        import openvino as ov

        try:
            request = self.create_infer_request()
            for i, array in enumerate(inputs):
                request.set_input_tensor(i, ov.Tensor(np.asarray(array, order="C")))
        except RuntimeError as error:
            raise RunError(f"compiled, but the request failed: {first_line(error)}") from error
        self._request = request

    def run(self) -> None:
        """Run one request on the bound inputs."""
        if self._request is None:
            raise RunError("no inputs are bound; call bind first")
        self._request.infer()

    def outputs(self) -> list[Array]:
        """Copies of the outputs of the last request."""
        if self._request is None:
            raise RunError("nothing has run yet")
        count = len(self._model.outputs)
        return [tensor_array(self._request.get_output_tensor(i)) for i in range(count)]


def _stop(queues: Sequence[Work]) -> None:
    for queue in queues:
        queue.put(None)


class ParallelExecutor:
    """Compiles each segment on its device and runs the segments as a dataflow graph.

    Args:
        cluster: The devices.
        costs: Costs per op and device, by which segments are merged; None = estimated from FLOP
            and bytes.
    """

    name: ClassVar[str] = "parallel"

    def __init__(self, cluster: Cluster, costs: CostTable | None = None) -> None:
        self._devices: dict[str, Device] = {device.name: device for device in cluster.devices}
        self._names = cluster.names
        self._costs = costs
        self._alone = HeteroExecutor(cluster)

    def segments(self, graph: Graph, placement: Placement) -> Segments:
        """The segments that a placement is cut into."""
        finest = finest_segments(graph, placement.assignment, graph.units)
        return merged_segments(graph, finest, self._segment_costs(graph, placement))

    def _segment_costs(self, graph: Graph, placement: Placement) -> SegmentCosts:
        if self._costs is None:
            # 10 GFLOP/s and 10 GB/s: only the proportions between ops matter here.
            return SegmentCosts((graph.op_flop + op_traffic_bytes(graph)) / 1e10, _SEGMENT_S)
        number = [self._names.index(name) for name in placement.devices]
        column = np.array(number, dtype=np.int32)[placement.assignment]
        seconds = self._costs.seconds[np.arange(graph.num_ops), column]
        start_s = float(self._costs.boundary_s.max(initial=0.0))
        return SegmentCosts(np.where(np.isfinite(seconds), seconds, 0.0), max(start_s, _SEGMENT_S))

    def _unpinned(self, placement: Placement) -> dict[str, Device]:
        """The placement's devices; several CPU devices do not pin their threads, unless told to.

        Pinned, they would all end up on the same cores and never overlap. (HETERO keeps its
        default: unpinned, its sub-models use more threads than they are given.)
        """
        devices = {name: self._devices[name] for name in placement.used}
        if sum(device.kind == "cpu" for device in devices.values()) > 1:
            for name, device in devices.items():
                if device.kind == "cpu":
                    devices[name] = with_properties(device, {"ENABLE_CPU_PINNING": "NO"})
        return devices

    def compile(
        self, imported: Imported, placement: Placement, options: Mapping[str, str] | None = None
    ) -> ParallelModel | PlacedModel:
        """Compile as placed; a uniform placement is the plain device."""
        if placement.uniform_device is not None:
            return self._alone.compile(imported, placement, options)
        placement.require(imported.graph)
        placement.require_devices(self._devices)
        segments = self.segments(imported.graph, placement)
        devices = self._unpinned(placement)
        if segments.count == 0:
            # Inputs that are outputs: nothing to run, so nothing to split.
            whole = np.full(imported.graph.num_ops, placement.assignment[0], dtype=np.int32)
            alone = Placement(placement.graph, placement.devices, whole)
            return self._alone.compile(imported, alone, options)
        pieces = cut(imported, segments)
        compiled = []
        for k, piece in enumerate(pieces.pieces):
            device = devices[placement.devices[int(segments.device[k])]]
            try:
                config = {**dict(device.properties), **dict(options or {})}
                compiled.append(core().compile_model(piece.model, device.name, config))
            except RuntimeError as error:
                raise CompileError(
                    f"{device.name} refused to compile sub-graph {k}: {first_line(error)}"
                ) from error
        after: list[list[int]] = [[] for _ in range(segments.count)]
        for t, before in enumerate(segments.predecessors):
            for s in sorted(before):
                after[s].append(t)
        used = np.unique(segments.device).tolist()
        plan = Plan(
            pieces,
            segments,
            compiled,
            tuple(map(tuple, after)),
            tuple(k for k, before in enumerate(segments.predecessors) if not before),
            tuple(any(o.get_partial_shape().is_dynamic for o in c.outputs) for c in compiled),
            {d: SimpleQueue() for d in used},
            {d: threading.Lock() for d in used},
            placement.devices,
        )
        return ParallelModel(imported, plan, _realised(imported.graph, placement, plan))

    def realise(
        self, imported: Imported, placement: Placement, inputs: Sequence[Array]
    ) -> Realised:
        """Read back op by op: every segment is compiled on one device, so compiling tells."""
        return self.compile(imported, placement).realised


def _realised(graph: Graph, placement: Placement, plan: Plan) -> Realised:
    device = np.full(graph.num_ops, -1, dtype=np.int32)
    differences = []
    configuration: dict[str, str] = {}
    for k, compiled in enumerate(plan.compiled):
        number = int(plan.segments.device[k])
        name = placement.devices[number]
        properties = dict(configuration_of(compiled, name))
        executed = properties.get(f"{name}.EXECUTION_DEVICES", name)
        if name not in {e.partition("(")[0] for e in executed.split(",")}:
            differences.append(
                Difference(f"(sub-graph {k})", name, executed, "the runtime chose another device")
            )
        for key, value in properties.items():
            configuration.setdefault(key, value)
        for ops in original_ops(compiled, graph).values():
            device[[op for op in ops if plan.segments.of_op[op] == k]] = number
    subgraph = np.where(device >= 0, plan.segments.of_op, -1)
    return Realised(
        device,
        subgraph.astype(np.int32),
        plan.segments.count,
        tuple(differences),
        tuple(sorted(configuration.items())),
        (f"{plan.segments.count} sub-graphs run as a dataflow graph",),
    )
