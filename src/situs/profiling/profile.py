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
from situs.executors.readback import info_text, split_names
from situs.executors.runtime import core
from situs.graph.arrays import Bools, Floats, frozen
from situs.hardware import Cluster, Device

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
        coverage: Sum of the op times as profiled / latency without profiling.
        detail: Reason of a failure.
        configuration: Effective properties, read back.
    """

    device: str
    status: Status
    supported: Bools
    seconds: Floats
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

    Op times are medians over ``runs`` runs. The time of a fused runtime op is shared among its
    original ops by FLOP (by bytes where none computes); a reorder or copy that the runtime put in
    goes to the op that reads it. All are then scaled so that their sum is the latency measured
    without profiling: op timing itself costs time, and a prediction of the uniform placement must
    equal its measurement.

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
    unknown = np.full(graph.num_ops, np.nan)
    try:
        plain = executor.compile(imported, placement)
        timed = executor.compile(imported, placement, {"PERF_COUNT": "YES"})
        plain.bind(inputs)
        timed.bind(inputs)
        latency_s, raw = _alternate(plain, timed, graph, runs, on_run)
    except CompileError as error:
        return Profile(
            device.name, Status.COMPILE_FAILED, supported, unknown, np.nan, 0.0, str(error)
        )
    except RunError as error:
        return Profile(device.name, Status.RUN_FAILED, supported, unknown, np.nan, 0.0, str(error))
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
) -> tuple[float, Floats]:
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
    return float(np.median(latencies)), attribute(timed, graph, medians)


def attribute(timed: PlacedModel, graph: Graph, medians: dict[str, float]) -> Floats:
    """``float64[N]`` seconds per original op from seconds per runtime op."""
    seconds = np.zeros(graph.num_ops)
    weights = np.where(graph.op_flop > 0, graph.op_flop, 0.0)
    traffic = op_traffic_bytes(graph)
    nodes = timed.compiled.get_runtime_model().get_ordered_ops()
    owners: dict[str, list[int]] = {}
    for node in nodes:
        names = split_names(info_text(node, "originalLayersNames"), graph.op_index)
        owners[node.get_friendly_name()] = [graph.op_index[name] for name in names]
    # Last first, so that a chain of inserted ops passes its readers' ops on.
    for node in reversed(nodes):
        name = node.get_friendly_name()
        if not owners[name]:
            owners[name] = next(
                (
                    owners[target.get_node().get_friendly_name()]
                    for output in node.outputs()
                    for target in output.get_target_inputs()
                    if owners[target.get_node().get_friendly_name()]
                ),
                [],
            )
        spent = medians.get(name, 0.0)
        ops = owners[name]
        if not ops or spent <= 0:
            continue
        share = weights[ops]
        if share.sum() <= 0:
            share = traffic[ops]
        if share.sum() <= 0:
            share = np.ones(len(ops))
        seconds[ops] += spent * share / share.sum()
    return frozen(seconds, np.float64)
