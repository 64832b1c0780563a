"""Values of a few maps, without compiled kernels: a first map should not wait for a compiler."""

from __future__ import annotations

import numpy as np

from situs.core import Evaluation, Pipeline, Problem, violation
from situs.graph.arrays import Ints


class PlainObjective:
    """As ``SimulatedObjective`` for problems of blocks: constants are all that memory holds.

    Such a problem has hundreds of ops and is valued a few times, which takes a millisecond each;
    compiling the simulator takes tens of seconds on a machine where it never ran.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def evaluate(self, assignments: Ints) -> Evaluation:
        """Value ``int32[B, N]`` assignments; ``inf`` where a limit is broken."""
        values = [block_seconds(self._problem, row) for row in np.atleast_2d(assignments)]
        return Evaluation.of(np.array(values))


def block_seconds(problem: Problem, assignment: Ints) -> float:
    """What ``situs.simulate.evaluate`` gives, ``sequential`` or ``pipeline`` by links, s."""
    if violation(problem, assignment) is not None:
        return float("inf")
    held = problem.graph.constants_read(assignment, problem.num_devices)
    if (held > problem.memory_bytes).any():
        return float("inf")
    costs, devices = problem.costs, problem.num_devices
    seconds = costs.seconds[np.arange(problem.num_ops), assignment]
    tensors, target = problem.graph.cut(assignment)
    source = assignment[problem.graph.tensor_producer[tensors]]
    size = costs.transfer_size[tensors]
    moved = costs.link_latency_s[source, target] + size * costs.link_s_per_byte[source, target]
    if not isinstance(problem.model, Pipeline):
        return float(seconds.sum() + moved.sum() + costs.boundary_s[target].sum())
    device = np.bincount(assignment, seconds, devices)
    device += np.bincount(target, costs.boundary_s[target], devices)
    link = np.bincount(source * devices + target, moved, devices * devices)
    streams = np.array([one.streams for one in problem.cluster.devices])
    return float(max((device / streams).max(), link.max(initial=0.0)))
