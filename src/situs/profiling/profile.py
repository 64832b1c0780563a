"""Profile a model on one device: seconds per original op."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from situs.core import RealClock
from situs.costs import op_traffic_bytes
from situs.errors import CompileError, RunError, Status
from situs.executors.openvino_hetero import HeteroExecutor
from situs.executors.runtime import core
from situs.graph.arrays import Bools, Floats, Ints, frozen
from situs.hardware import Cluster, Device
from situs.profiling.attribute import attribute, runtime_op_of

if TYPE_CHECKING:
    from situs.core import Placement
    from situs.executors.openvino_hetero import PlacedModel
    from situs.graph import Graph
    from situs.importers import Imported

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Profile:
    """What one device needs for each op.

    Attributes:
        device: Device name.
        status: ``OK``, or why the device cannot run the whole model.
        supported: ``bool[N]`` ops that the device says it can run.
        seconds: ``float64[N]`` run time of each op, s; NaN where not measured.
        latency_s: Median latency of the whole model alone, s; NaN if it did not run.
        fused: ``int32[N]`` runtime op that runs each op; -1 = unknown.
        coverage: Sum of the op times as profiled / latency without profiling.
        detail: Reason of a failure.
        configuration: Effective properties, read back.
    """

    device: str
    status: Status
    supported: Bools
    seconds: Floats
    fused: Ints
    latency_s: float
    coverage: float
    detail: str = ""
    configuration: tuple[tuple[str, str], ...] = ()


def supported_ops(imported: Imported, device: Device) -> Bools:
    """``bool[N]`` ops that ``query_model`` says the device can run."""
    properties = dict(device.properties)
    try:
        known = core().query_model(imported.model, device.name, properties)
    except RuntimeError:
        known = {}
    return frozen([name in known for name in imported.graph.op_names], np.bool_)


def profile(
    imported: Imported,
    device: Device,
    placement: Placement,
    inputs: list[Array],
    runs: int = 15,
    on_run: Callable[[int, int], None] = lambda done, total: None,
) -> Profile:
    """Run the whole model on one device with and without op timing.

    Op times are medians over ``runs`` runs, attributed to original ops (``attribute``), and
    scaled so that their sum is the latency measured without profiling: op timing itself costs
    time, and a prediction of the uniform placement must equal its measurement.

    Args:
        imported: The prepared model.
        device: Where to run it.
        placement: The uniform placement on that device.
        inputs: Input tensors.
        runs: Counted runs of each kind.
        on_run: Called with (runs done, runs in all).
    """
    graph = imported.graph
    supported = supported_ops(imported, device)
    executor = HeteroExecutor(Cluster((device,)))

    def failed(status: Status, error: Exception) -> Profile:
        unknown = frozen(np.full(graph.num_ops, np.nan), np.float64)
        alone = frozen(np.full(graph.num_ops, -1), np.int32)
        return Profile(device.name, status, supported, unknown, alone, np.nan, 0.0, str(error))

    try:
        plain = executor.compile(imported, placement)
        timed = executor.compile(imported, placement, {"PERF_COUNT": "YES"})
        plain.bind(inputs)
        timed.bind(inputs)
        latency_s, raw, fused = _alternate(plain, timed, graph, runs, on_run)
    except CompileError as error:
        return failed(Status.COMPILE_FAILED, error)
    except RunError as error:
        return failed(Status.RUN_FAILED, error)
    total = float(raw.sum())
    if total <= 0:
        # The device reports no op times: share the latency by the work of each op.
        raw = np.maximum(graph.op_flop, op_traffic_bytes(graph))
        raw[graph.is_input | graph.is_output] = 0.0
        coverage, total = 0.0, max(float(raw.sum()), 1e-300)
    else:
        coverage = total / latency_s
    return Profile(
        device.name,
        Status.OK,
        frozen(np.ones(graph.num_ops), np.bool_),
        frozen(raw * (latency_s / total), np.float64),
        fused,
        latency_s,
        coverage,
        configuration=plain.realised.configuration,
    )


def _alternate(
    plain: PlacedModel,
    timed: PlacedModel,
    graph: Graph,
    runs: int,
    on_run: Callable[[int, int], None],
) -> tuple[float, Floats, Ints]:
    clock = RealClock()
    for _ in range(5):
        plain.run()
        timed.run()
    latencies = []
    times: defaultdict[str, list[float]] = defaultdict(list)
    for k in range(runs):
        timed.run()
        for info in timed.profile():
            times[info.node_name].append(info.real_time.total_seconds())
        plain.run()
        begin = clock.now()
        plain.run()
        latencies.append(clock.now() - begin)
        on_run(k + 1, runs)
    medians = {name: float(np.median(values)) for name, values in times.items()}
    op_of, number = runtime_op_of(timed.compiled, graph)
    return float(np.median(latencies)), attribute(graph, op_of, number, medians), op_of
