"""METIS: balanced parts of the weighted graph that cut few transfers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pymetis

from situs.core import Objective, Problem, RealClock, Result, Stop
from situs.errors import ParameterError
from situs.graph.arrays import Floats, Ints, csr_from_pairs
from situs.placers.heuristic.scheduling import Scheduling
from situs.placers.parameters import parameter_texts

_HEAVIEST = 1_000_000  # METIS adds weights up in 32 bits.


@dataclass(frozen=True, slots=True)
class Metis:
    """Units weighted by mean run time, joined by mean transfer time, in one part per device.

    A part's share of the work is the device's share of the speed. Every imbalance that is tried is
    a candidate; so are the uniform placements.

    Attributes:
        imbalances: How far a part may be over its share, in thousandths, ``+``-separated; >= 1.

    Source: Karypis, Kumar, "A fast and high quality multilevel scheme for partitioning irregular
    graphs", SIAM J. Sci. Comput. 20(1), 1998, as implemented by METIS 5.

    Differs: A unit that its part's device cannot take goes to the device that runs it fastest.
    METIS knows no directions and no memory: what does not fit is refused by the objective.
    """

    name: ClassVar[str] = "metis"
    imbalances: str = "30+200+1000"

    def __post_init__(self) -> None:
        for text in self.imbalances.split("+"):
            if not text.isdigit() or int(text) < 1:
                raise ParameterError(f"metis: imbalances must be whole numbers >= 1, not {text!r}")

    def supports(self, problem: Problem) -> str | None:
        """Any problem."""
        return None

    def __call__(
        self, problem: Problem, objective: Objective, stop: Stop, rng: np.random.Generator
    ) -> Result:
        """Partition once per imbalance; value all and the uniform placements."""
        started_s = RealClock().now()
        costs = Scheduling(problem)
        candidates = []
        if problem.num_devices > 1:
            for k, text in enumerate(self.imbalances.split("+")):
                seed = int(rng.integers(1 << 30)) if k else 0
                candidates.append(partition(costs, int(text), seed))
        return costs.best(objective, candidates, self.name, parameter_texts(self), started_s)


def partition(costs: Scheduling, imbalance: int, seed: int) -> Ints:
    """``int32[N]`` device of each op by one call of METIS."""
    problem = costs.problem
    graph, units, count = problem.graph, problem.units, problem.num_units
    seconds = problem.unit_seconds
    finite = np.isfinite(seconds)
    mean_s = np.where(finite, seconds, 0.0).sum(axis=1) / np.maximum(finite.sum(axis=1), 1)
    u, v = units[graph.edge_producer], units[graph.consumer_ops]
    moved_s = costs.tensor_s[graph.edge_tensor]
    apart = u != v
    low, high = np.minimum(u, v)[apart], np.maximum(u, v)[apart]
    pairs, which = np.unique(low.astype(np.int64) * count + high, return_inverse=True)
    weight = _whole(np.bincount(which, moved_s[apart], len(pairs)).astype(np.float64))
    a, b = np.divmod(pairs, count)
    # The same pair in both directions, rows in order of the first unit.
    offsets, edges = csr_from_pairs(
        np.concatenate([a, b]).astype(np.int32),
        np.tile(np.arange(len(a), dtype=np.int32), 2),
        count,
    )
    here = np.repeat(np.arange(count), np.diff(offsets))
    there = np.where(a[edges] == here, b[edges], a[edges])
    # Time of everything on a device: the least are the fastest and take the most.
    whole_s = np.where(finite, seconds, mean_s[:, None] * problem.num_devices).sum(axis=0)
    speed = 1.0 / np.maximum(whole_s, 1e-300)
    _, part = pymetis.part_graph(
        problem.num_devices,
        pymetis.CSRAdjacency(offsets.tolist(), there.tolist()),
        vweights=_whole(mean_s).tolist(),
        eweights=weight[edges].tolist(),
        tpwgts=(speed / speed.sum()).tolist(),
        options=pymetis.Options(ufactor=imbalance, seed=seed),
    )
    device = np.asarray(part, dtype=np.int32)
    fastest = np.argmin(np.where(problem.unit_allowed, seconds, np.inf), axis=1)
    misplaced = ~problem.unit_allowed[np.arange(count), device]
    device[misplaced] = fastest[misplaced]
    assignment: Ints = device[units]
    return assignment


def _whole(weight: Floats) -> Ints:
    """Weights as integers from 1 to a million, in proportion."""
    scale = _HEAVIEST / max(float(weight.sum()), 1e-300)
    whole: Ints = np.maximum(np.round(weight * scale), 1).astype(np.int32)
    return whole
