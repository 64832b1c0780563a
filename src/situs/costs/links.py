"""Link matrices of a cluster, in the cost table's form."""

from __future__ import annotations

import numpy as np

from situs.graph.arrays import Floats
from situs.hardware import Cluster


def link_matrices(cluster: Cluster) -> tuple[Floats, Floats]:
    """``(latency_s[D, D], s_per_byte[D, D])`` of a cluster; a missing link has infinite latency."""
    d = len(cluster.devices)
    latency = np.full((d, d), np.inf)
    per_byte = np.zeros((d, d))
    np.fill_diagonal(latency, 0.0)
    for link in cluster.links:
        a, b = cluster.index(link.source), cluster.index(link.target)
        latency[a, b] = link.latency_s
        per_byte[a, b] = 1.0 / link.bytes_per_s
    return latency, per_byte
