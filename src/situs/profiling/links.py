"""Measure what crossing from one device to another costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from situs.core import Clock, Placement, RealClock
from situs.errors import WorkError
from situs.executors import Executor
from situs.graph.arrays import Floats
from situs.hardware import Cluster
from situs.profiling.inputs import random_inputs

if TYPE_CHECKING:
    import openvino as ov

_SIDES = (8, 56, 160)
_CHANNELS = 16
_CROSSINGS = 6


@dataclass(frozen=True, eq=False)
class LinkCosts:
    """Measured costs of crossing, in the cost table's form.

    Attributes:
        latency_s: ``float64[D, D]`` fixed cost beyond ``boundary_s``, s; ``inf`` = cannot cross.
        s_per_byte: ``float64[D, D]`` cost per byte, s/B.
        boundary_s: ``float64[D]`` smallest fixed cost of entering each device, s.
        failures: Pairs that cannot cross, with the reason.
    """

    latency_s: Floats
    s_per_byte: Floats
    boundary_s: Floats
    failures: tuple[str, ...] = ()


def _probe(side: int) -> ov.Model:
    """A chain of depthwise convolutions: little work, and the layouts that real layers use."""
    import openvino as ov
    from openvino import opset13 as ops

    x = ops.parameter([1, _CHANNELS, side, side], np.float32, name="x")
    node: ov.Node = x
    for k in range(_CROSSINGS + 1):
        weights = np.full((_CHANNELS, 1, 1, 1, 1), 1.0, dtype=np.float32)
        node = ops.group_convolution(
            node, ops.constant(weights), [1, 1], [0, 0], [0, 0], [1, 1], name=f"conv{k}"
        )
    return ov.Model([ops.result(node)], [x], "link-probe")


def measure_links(
    executor: Executor,
    cluster: Cluster,
    rounds: int = 25,
    clock: Clock | None = None,
    on_pair: Callable[[str, str], None] = lambda source, target: None,
) -> LinkCosts:
    """Time, in one engine, chains that alternate between two devices against the chain on each.

    For every pair, the extra time per crossing is fitted by ``fixed + bytes * s_per_byte`` over
    three tensor sizes (relative least squares, neither below zero). A chain that alternates
    crosses in both directions equally often, so the two directions get one value.
    """
    clock = clock or RealClock()
    d = len(cluster.devices)
    fixed = np.zeros((d, d))
    per_byte = np.zeros((d, d))
    failures = []
    for a, b in combinations(range(d), 2):
        names = cluster.names
        on_pair(names[a], names[b])
        try:
            costs = [_crossing_s(executor, cluster, a, b, side, rounds, clock) for side in _SIDES]
        except WorkError as error:
            failures.append(f"{names[a]} <-> {names[b]}: {error}")
            fixed[a, b] = fixed[b, a] = np.inf
            continue
        sizes = np.array([4.0 * _CHANNELS * side * side for side in _SIDES])
        intercept, slope = _fit(sizes, np.array(costs))
        fixed[a, b] = fixed[b, a] = intercept
        per_byte[a, b] = per_byte[b, a] = slope
    entering = np.where(np.eye(d, dtype=bool), np.inf, fixed).min(axis=0)
    boundary = np.where(np.isfinite(entering), entering, 0.0)
    latency = np.maximum(fixed - boundary[np.newaxis, :], 0.0)
    np.fill_diagonal(latency, 0.0)
    return LinkCosts(latency, per_byte, boundary, tuple(failures))


def _fit(sizes: Floats, costs: Floats) -> tuple[float, float]:
    from scipy.optimize import nnls

    # Relative residuals: the small sizes tell the fixed part, the large ones the slope.
    scale = 1.0 / np.maximum(costs, 1e-6)
    matrix = np.stack([np.ones_like(sizes), sizes / sizes.max()], axis=1)
    solution, _ = nnls(matrix * scale[:, np.newaxis], np.maximum(costs, 0.0) * scale)
    return float(solution[0]), float(solution[1] / sizes.max())


def _crossing_s(
    executor: Executor, cluster: Cluster, a: int, b: int, side: int, rounds: int, clock: Clock
) -> float:
    """Median extra seconds of one crossing between devices ``a`` and ``b``."""
    from situs.importers import load_model

    imported = load_model(_probe(side))
    graph = imported.graph
    rng = np.random.default_rng(0)
    order = np.cumsum(np.char.startswith(np.array(graph.op_names), "conv")) - 1
    alternating = np.where(np.clip(order, 0, None) % 2 == 0, a, b)
    runnables = [
        executor.compile(imported, Placement(graph.fingerprint, cluster.names, assignment))
        for assignment in (
            np.full(graph.num_ops, a),
            np.full(graph.num_ops, b),
            alternating,
        )
    ]
    inputs = random_inputs(imported.model, rng)
    for runnable in runnables:
        runnable.bind(inputs)
    crossings = runnables[2].realised.subgraphs - 1
    samples: list[list[float]] = [[], [], []]
    for _ in range(rounds):
        for k in rng.permutation(3).tolist():
            runnables[k].run()
            begin = clock.now()
            runnables[k].run()
            samples[k].append(clock.now() - begin)
    alone_a, alone_b, both = (np.array(s) for s in samples)
    # The alternating chain runs ceil(half) of its ops on a and the rest on b.
    share_a = (_CROSSINGS // 2 + 1) / (_CROSSINGS + 1)
    extra = both - share_a * alone_a - (1 - share_a) * alone_b
    return float(np.median(extra)) / max(crossings, 1)
