"""Five tiny problems, solved by hand, used everywhere; devices ``D0`` and ``D1``.

Unless said otherwise a transfer costs 1 s whatever it carries, and a tensor has 1 B.

- ``chain3``: a -> b -> c; seconds on (D0, D1): a (1, 4), b (4, 1), c (1, 4).
  Sequential: D0 alone 6, D1 alone 9, best 5 = D0 D1 D0 (1 + 1 + 1 + 2 transfers).
- ``diamond4``: a -> (b, c) -> d; every op 2 s on both devices.
  Sequential best 8 (uniform). Dataflow best 7: a and b on one device, c and d on the other; c runs
  from 3 to 5, b is there at 5, d ends at 7. With 0.25 s transfers 2 + 0.25 + 2 + 2 = 6.25.
- ``fork_join``: a -> (b1, b2) -> c with b's of 4 s, a and c of 1 s, transfers 0.5 s.
  Dataflow: uniform 10; best a and b1 on one device, b2 and c on the other: 1 + 0.5 + 4 + 1 = 6.5
  (c on a's device: 7, as b2 must come back).
- ``two_islands``: two unconnected ops of 3 s. Dataflow best 3, sequential best 6, pipeline best 3.
- ``memory_tight``: a -> b, 1 s each on D0, 2 s each on D1, each with 60 B of constants; D0 holds
  100 B. Sequential best within memory: 1 + 1 + 2 = 4 (split) = 4 (both on D1); D0 alone (2) is
  out of memory.
"""

from __future__ import annotations

import numpy as np

from situs.core import Dataflow, ExecutionModel, Limits, Problem, Sequential
from situs.costs import MODELLED, CostTable, link_matrices
from situs.graph import OpSpec, build_graph
from situs.hardware import Cluster, Device, Link


def tiny(
    ops: dict[str, list[str]],
    seconds: dict[str, tuple[float, ...]],
    transfer_s: float = 1.0,
    constants: dict[str, int] | None = None,
    memory_bytes: tuple[float, ...] | None = None,
    model: ExecutionModel = Sequential(),
) -> Problem:
    """A problem from names: ``ops`` maps each op to the ops that it reads, in any order."""
    names = list(ops)
    sizes = [(constants or {}).get(name, 0) for name in names]
    specs = [
        OpSpec(
            name=name,
            type="Op",
            sources=[(names.index(s), 0) for s in sources],
            output_shapes=[(1,)],
            output_dtypes=["u8"],
            output_bytes=[1],
            constants=[i] if sizes[i] else [],
            is_input=not sources,
            is_output=not any(name in other for other in ops.values()),
        )
        for i, (name, sources) in enumerate(ops.items())
    ]
    graph = build_graph("tiny", specs, sizes)
    count = len(next(iter(seconds.values())))
    devices = [f"D{i}" for i in range(count)]
    cluster = Cluster(
        tuple(Device(name) for name in devices),
        tuple(Link(a, b, latency_s=transfer_s) for a in devices for b in devices if a != b),
        "tiny",
    )
    latency, per_byte = link_matrices(cluster)
    costs = CostTable(
        seconds=np.array([seconds[name] for name in graph.op_names]),
        transfer_size=np.ones(graph.num_tensors),
        link_latency_s=latency,
        link_s_per_byte=per_byte,
        boundary_s=np.zeros(count),
        source=MODELLED,
    )
    limits = Limits(memory_bytes=None if memory_bytes is None else np.array(memory_bytes))
    return Problem(graph, cluster, costs, model, limits)


def chain3(model: ExecutionModel = Sequential()) -> Problem:
    """Three ops in a row; sequential optimum 5."""
    return tiny(
        {"a": [], "b": ["a"], "c": ["b"]},
        {"a": (1, 4), "b": (4, 1), "c": (1, 4)},
        model=model,
    )


def diamond4(model: ExecutionModel = Dataflow(), transfer_s: float = 1.0) -> Problem:
    """A diamond of equal ops; dataflow optimum 7, or 6.25 with 0.25 s transfers."""
    return tiny(
        {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]},
        dict.fromkeys("abcd", (2.0, 2.0)),
        transfer_s,
        model=model,
    )


def fork_join(model: ExecutionModel = Dataflow()) -> Problem:
    """Two long branches; dataflow optimum 6.5, uniform 10."""
    return tiny(
        {"a": [], "b1": ["a"], "b2": ["a"], "c": ["b1", "b2"]},
        {"a": (1, 1), "b1": (4, 4), "b2": (4, 4), "c": (1, 1)},
        0.5,
        model=model,
    )


def two_islands(model: ExecutionModel = Dataflow()) -> Problem:
    """Two unconnected ops; dataflow and pipeline optimum 3, sequential 6."""
    return tiny({"a": [], "b": []}, {"a": (3, 3), "b": (3, 3)}, model=model)


def memory_tight(model: ExecutionModel = Sequential()) -> Problem:
    """The fast device is too small for both ops; sequential optimum 4."""
    return tiny(
        {"a": [], "b": ["a"]},
        {"a": (1, 2), "b": (1, 2)},
        constants={"a": 60, "b": 60},
        memory_bytes=(100, 1000),
        model=model,
    )
