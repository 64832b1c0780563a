"""Op-level placement of an exported model on a described machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from situs import api
from situs.core import (
    AnyOf,
    ExecutionModel,
    Limits,
    MaxSeconds,
    Pipeline,
    Placement,
    Problem,
    Result,
    Sequential,
    Stop,
    violation,
)
from situs.core.placement_file import PlacementFile
from situs.core.problem_record import problem_to_record
from situs.costs import roofline
from situs.errors import ParameterError
from situs.hardware import Cluster
from situs.importers.torch.ops import TorchImported
from situs.simulate import bound, evaluate
from situs.torch.machine import described
from situs.torch.memory import DISK

PLACERS = ("greedy", "mincut", "local-search", "segments", "milp")


@dataclass(frozen=True, eq=False)
class OpPlacement:
    """The best placement found, by modelled costs; all its figures are simulated.

    Attributes:
        problem: Graph, machine, costs and memory.
        placement: The best, or None if none fits.
        seconds: Its latency, or time per request in a pipeline, s.
        bound_s: No placement takes less, s.
        placer: Who found it.
        results: What each placer returned.
    """

    problem: Problem
    placement: Placement | None
    seconds: float
    bound_s: float
    placer: str
    results: tuple[Result, ...]

    def file(self) -> PlacementFile:
        """As a placement file, for ``situs run`` and the exports.

        Raises:
            ParameterError: If nothing fits.
        """
        if self.placement is None:
            raise ParameterError("no placement keeps the memory limits; give more memory")
        record = {
            "executor": "torch",
            "simulated": True,
            "placer": self.placer,
            "predicted_s": self.seconds,
            "bound_s": self.bound_s,
            "problem": problem_to_record(self.problem),
        }
        return PlacementFile(self.placement, self.problem.cluster.devices, record)


def place_ops(
    imported: TorchImported,
    limits: dict[str, int],
    objective: str = "latency",
    machine: Cluster | str = "4xa100",
    placers: Sequence[str] = PLACERS,
    seed: int = 0,
    stop: Stop | None = None,
    seconds: float = 20.0,
) -> OpPlacement:
    """Place an exported model op by op within memory limits.

    Args:
        imported: What ``import_module`` or ``import_exported`` returned.
        limits: Bytes per device of PyTorch.
        objective: ``latency`` (ops one after another) or ``throughput`` (a pipeline).
        machine: Hardware figures that times are modelled with: a cluster, or a catalogue name.
        placers: Names of placers; those that do not support the problem are passed over.
        seed: Seed of the placers.
        stop: Asked between steps.
        seconds: Time for each placer, s.

    Raises:
        ParameterError: For an objective, device or placer that cannot be used.
    """
    models: dict[str, ExecutionModel] = {"latency": Sequential(), "throughput": Pipeline()}
    if objective not in models:
        raise ParameterError(f"op by op, objective must be latency or throughput, not {objective}")
    if DISK in limits:
        raise ParameterError("ops run on devices; disk holds only whole modules: leave it out")
    cluster = described(limits, machine)
    problem = Problem(
        imported.graph,
        cluster,
        roofline(imported.graph, cluster),
        models[objective],
        Limits(memory_bytes=np.array([limits[name] for name in cluster.names], dtype=np.float64)),
    )
    results: list[Result] = []
    for placer in placers:
        limit = MaxSeconds(seconds)
        asked = AnyOf((stop, limit)) if stop is not None else limit
        results += api.find_candidates(problem, [placer], seed, asked, "torch")[0]
    found = [r.placement for r in results if r.placement is not None]
    found += [Placement(imported.graph.fingerprint, cluster.names, a) for _, a in problem.uniform()]
    values = evaluate(problem, np.stack([p.assignment for p in found]))
    best = int(np.argmin(values))
    low_s = max([bound(problem).seconds, *(r.bound_s for r in results)])
    if not np.isfinite(values[best]):
        return OpPlacement(problem, None, np.inf, low_s, "", tuple(results))
    assert violation(problem, found[best].assignment) is None
    names = [r.placer for r in results if r.placement is found[best]]
    return OpPlacement(
        problem,
        found[best],
        float(values[best]),
        min(low_s, float(values[best])),
        names[0].partition("{")[0] if names else "one device",
        tuple(results),
    )
