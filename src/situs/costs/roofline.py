"""Costs of a device that is described but not present: the roofline model."""

from __future__ import annotations

import numpy as np

from situs.costs.links import link_matrices
from situs.costs.table import MODELLED, CostTable
from situs.errors import ClusterError
from situs.graph import Graph
from situs.graph.arrays import Floats
from situs.hardware import Cluster, Device


def op_traffic_bytes(graph: Graph) -> Floats:
    """``float64[N]`` bytes that each op moves: inputs, outputs and constants, each once.

    A ``Gather`` reads what it writes, not its whole table.
    """
    read = np.bincount(
        graph.consumer_ops,
        weights=graph.tensor_bytes[graph.edge_tensor],
        minlength=graph.num_ops,
    )
    written = np.bincount(
        graph.tensor_producer, weights=graph.tensor_bytes, minlength=graph.num_ops
    )
    traffic = read + written + graph.op_constant_bytes
    gathers = np.array([kind == "Gather" for kind in graph.op_types], dtype=np.bool_)
    return np.asarray(np.where(gathers, np.minimum(traffic, 2 * written), traffic), np.float64)


def _share(graph: Graph, device: Device) -> Floats:
    """``float64[N]`` share of the roofline that each op reaches; NaN where the type has none."""
    by_type = dict(device.type_efficiency)
    rest = by_type.get("*", np.nan)
    return np.array([by_type.get(kind, rest) for kind in graph.op_types], dtype=np.float64)


def roofline(graph: Graph, cluster: Cluster) -> CostTable:
    """Model op times as ``overhead + max(flop / (efficiency * peak), traffic / bandwidth)``.

    A type in the device's ``type_efficiency`` takes ``overhead + max(flop / peak, traffic /
    bandwidth) / share``. Inputs and outputs of the model cost nothing. The table's source is
    ``modelled``.

    Raises:
        ClusterError: If a device gives no peak rate or no memory bandwidth.

    Source: Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009.
    """
    traffic = op_traffic_bytes(graph)
    works = ~(graph.is_input | graph.is_output)
    seconds = np.zeros((graph.num_ops, len(cluster.devices)))
    for d, device in enumerate(cluster.devices):
        if device.peak_flop_per_s <= 0 or device.memory_bytes_per_s <= 0:
            raise ClusterError(
                f"device {device.name}: peak_flop_per_s and memory_bytes_per_s are needed to "
                "model costs; give them in the cluster file, or measure with situs place"
            )
        compute = graph.op_flop / device.peak_flop_per_s
        memory = traffic / device.memory_bytes_per_s
        share = _share(graph, device)
        busy = np.where(
            np.isnan(share),
            np.maximum(compute / device.efficiency, memory),
            np.maximum(compute, memory) / share,
        )
        seconds[:, d] = np.where(works, device.op_overhead_s + busy, 0.0)
    latency, per_byte = link_matrices(cluster)
    return CostTable(
        seconds=seconds,
        transfer_size=graph.tensor_bytes.astype(np.float64),
        link_latency_s=latency,
        link_s_per_byte=per_byte,
        boundary_s=np.array([device.boundary_s for device in cluster.devices]),
        source=MODELLED,
        notes=(("model", "roofline"), ("cluster", cluster.name)),
    )
