"""Hypothesis strategies for graphs, clusters, cost tables and problems: the one file of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from situs.core import Dataflow, ExecutionModel, Limits, Pipeline, Problem, Sequential
from situs.costs import MODELLED, CostTable
from situs.graph import Graph, OpSpec, build_graph
from situs.hardware import Cluster, Device, Link

_TYPES = ("Convolution", "MatMul", "Add", "Relu", "Concat")


@st.composite
def graphs(draw: st.DrawFn, min_ops: int = 1, max_ops: int = 8, colocation: bool = False) -> Graph:
    """Random connected-or-not DAGs with multi-output ops, shared tensors and shared constants."""
    n = draw(st.integers(min_ops, max_ops))
    constants = draw(st.lists(st.integers(0, 1000), max_size=4))
    ops: list[OpSpec] = []
    for i in range(n):
        ports = draw(st.integers(1, 2))
        sizes = draw(st.lists(st.integers(0, 1000), min_size=ports, max_size=ports))
        available = [(j, p) for j in range(i) for p in range(len(ops[j].output_bytes))]
        sources = (
            draw(st.lists(st.sampled_from(available), max_size=3, unique=True)) if available else []
        )
        ops.append(
            OpSpec(
                name=f"op{i}",
                type=draw(st.sampled_from(_TYPES)),
                sources=sources,
                output_shapes=[(size,) for size in sizes],
                output_dtypes=["u8"] * ports,
                output_bytes=sizes,
                constants=draw(
                    st.lists(st.integers(0, len(constants) - 1), max_size=2, unique=True)
                )
                if constants
                else [],
                flop=float(draw(st.integers(0, 1000))),
                colocation=draw(st.sampled_from([-1, -1, -1, 0, 1])) if colocation else -1,
                is_input=not sources,
            )
        )
    return build_graph("random", ops, constants)


def clusters(devices: int, streams: Sequence[int] | None = None) -> Cluster:
    """A fully linked cluster of ``devices`` plain devices named ``D0``, ``D1``, ..."""
    names = [f"D{i}" for i in range(devices)]
    return Cluster(
        tuple(
            Device(name, streams=k) for name, k in zip(names, streams or [1] * devices, strict=True)
        ),
        tuple(Link(a, b) for a in names for b in names if a != b),
        "random",
    )


def _times(count: int) -> st.SearchStrategy[list[float]]:
    # Multiples of 1/8 add without rounding, so that sums in another order compare exactly.
    return st.lists(st.integers(0, 80).map(lambda k: k / 8), min_size=count, max_size=count)


@st.composite
def cost_tables(draw: st.DrawFn, graph: Graph, devices: int, unsupported: bool = True) -> CostTable:
    """Random costs; with ``unsupported``, a few pairs (op, device > 0) are impossible."""
    n, t = graph.num_ops, graph.num_tensors
    seconds = np.array(draw(_times(n * devices))).reshape(n, devices)
    if unsupported and devices > 1:
        for _ in range(draw(st.integers(0, 2))):
            seconds[draw(st.integers(0, n - 1)), draw(st.integers(1, devices - 1))] = np.inf
    latency = np.array(draw(_times(devices * devices))).reshape(devices, devices) / 8
    per_byte = np.array(draw(_times(devices * devices))).reshape(devices, devices) / 8
    np.fill_diagonal(latency, 0)
    np.fill_diagonal(per_byte, 0)
    return CostTable(
        seconds=seconds,
        transfer_size=np.array(draw(_times(t))),
        link_latency_s=latency,
        link_s_per_byte=per_byte,
        boundary_s=np.array(draw(_times(devices))) / 8,
        source=MODELLED,
    )


def execution_models() -> st.SearchStrategy[ExecutionModel]:
    """Every execution model with every value of its options."""
    return st.one_of(
        st.just(Sequential()),
        st.builds(
            Dataflow,
            st.sampled_from(["priority", "fifo"]),
            st.sampled_from(["shared", "unlimited"]),
            st.sampled_from(["tensor", "edge"]),
        ),
        st.builds(Pipeline, st.sampled_from(["link", "staged"]), st.booleans()),
    )


@st.composite
def problems(
    draw: st.DrawFn,
    min_ops: int = 1,
    max_ops: int = 8,
    devices: st.SearchStrategy[int] | int = 2,
    model: st.SearchStrategy[ExecutionModel] | ExecutionModel = Sequential(),
    colocation: bool = False,
    unsupported: bool = True,
    streams: bool = False,
    memory: bool = False,
) -> Problem:
    """Random small problems; with ``streams`` and ``memory``, devices differ in these too."""
    graph = draw(graphs(min_ops, max_ops, colocation))
    d = devices if isinstance(devices, int) else draw(devices)
    costs = draw(cost_tables(graph, d, unsupported))
    chosen = draw(model) if isinstance(model, st.SearchStrategy) else model
    parallel = draw(st.lists(st.integers(1, 3), min_size=d, max_size=d)) if streams else None
    bytes_or_none = st.one_of(st.just(np.inf), st.integers(0, 6000).map(float))
    sizes = draw(st.lists(bytes_or_none, min_size=d, max_size=d)) if memory else [np.inf] * d
    return Problem(graph, clusters(d, parallel), costs, chosen, Limits(np.array(sizes)))


@st.composite
def assignments(draw: st.DrawFn, problem: Problem) -> np.ndarray:
    """A random assignment ``int32[N]`` that respects allowed devices and co-location."""
    unit_device = np.array(
        [
            draw(st.sampled_from([int(d) for d in np.flatnonzero(allowed)]))
            for allowed in problem.unit_allowed
        ],
        dtype=np.int32,
    )
    return unit_device[problem.units]


def random_rows(problem: Problem, seed: int, count: int) -> np.ndarray:
    """``count`` random assignments ``int32[count, N]``; the last one may break hard rules."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, problem.num_devices, (count, problem.num_ops)).astype(np.int32)
    for row in rows[:-1]:
        for u, allowed in enumerate(problem.unit_allowed):
            row[problem.units == u] = rng.choice(np.flatnonzero(allowed))
    return rows
