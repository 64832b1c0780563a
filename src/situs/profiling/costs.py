"""From profiles and measured links to a cost table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from situs.costs import MEASURED, CostTable
from situs.errors import ProblemError
from situs.graph import Graph
from situs.graph.arrays import Floats, Ints, frozen
from situs.profiling.links import LinkCosts
from situs.profiling.profile import Profile


def cost_table(graph: Graph, profiles: Sequence[Profile], links: LinkCosts) -> CostTable:
    """Assemble measured costs.

    An op that was not timed on a device is estimated by its median time on the devices that did
    time it, and the notes say so. An op that a device does not support costs ``inf`` there.

    Raises:
        ProblemError: If no device could run the model as a whole.
    """
    seconds: Floats = np.stack([p.seconds for p in profiles], axis=1)
    timed = [p.status.found for p in profiles]
    if not any(timed):
        reasons = "; ".join(f"{p.device}: {p.detail}" for p in profiles)
        raise ProblemError(
            f"no device could run the model alone, so nothing is measured: {reasons}"
        )
    typical = np.median(seconds[:, timed], axis=1)
    for d, profile in enumerate(profiles):
        if not timed[d]:
            seconds[:, d] = typical
        seconds[np.logical_not(profile.supported), d] = np.inf
    notes = [("method", "PERF_COUNT scaled to the measured latency")]
    for profile in profiles:
        notes += list(profile.configuration)
        if profile.status.found:
            notes.append((f"{profile.device}.latency_s", f"{profile.latency_s:.9g}"))
            notes.append((f"{profile.device}.coverage", f"{profile.coverage:.3f}"))
        else:
            notes.append((f"{profile.device}.estimated_because", profile.detail))
    return CostTable(
        seconds=seconds,
        transfer_size=graph.tensor_bytes.astype(np.float64),
        link_latency_s=links.latency_s,
        link_s_per_byte=links.s_per_byte,
        boundary_s=links.boundary_s,
        source=MEASURED,
        notes=tuple(notes),
    )


def fused_classes(graph: Graph, profiles: Sequence[Profile]) -> Ints | None:
    """``int32[N]`` classes of ops that some device fuses into one, for ``Limits.together``.

    A cut inside such a class would break the fusion, at a cost that no per-op time shows. None if
    nothing is fused.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = graph.num_ops
    works = np.flatnonzero(~(graph.is_input | graph.is_output))
    rows, columns, width = [], [], n
    for profile in profiles:
        ops = works[profile.fused[works] >= 0]
        rows.append(ops)
        columns.append(width + profile.fused[ops])
        width += int(profile.fused.max(initial=-1)) + 1
    row, column = np.concatenate(rows), np.concatenate(columns)
    joined = coo_array((np.ones(len(row)), (row, column)), shape=(width, width))
    _, labels = connected_components(joined, directed=False)
    _, inverse, sizes = np.unique(labels[:n], return_inverse=True, return_counts=True)
    classes = np.where(sizes[inverse] > 1, inverse, -1)
    return frozen(classes, np.int32) if (classes >= 0).any() else None
