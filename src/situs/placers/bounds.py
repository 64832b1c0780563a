"""Quick lower bounds on the value of any placement, per execution model."""

from __future__ import annotations

import numpy as np

from situs.core import Pipeline, Problem, Sequential
from situs.graph.arrays import Floats
from situs.simulate import minimum_cut


def lower_bound(problem: Problem) -> float:
    """A latency that no placement can beat under the problem's execution model, s.

    ``sequential``: the minimum cut on two devices, else every unit on its fastest device.
    ``dataflow``: the longest path of fastest ops, and the load bound. ``pipeline``: load bound.
    """
    model = problem.model
    if isinstance(model, Sequential):
        if problem.num_devices == 2:
            return minimum_cut(problem)[0]
        return float(problem.unit_seconds.min(axis=1).sum())
    if isinstance(model, Pipeline):
        return load_bound(problem)
    return max(path_bound(problem), load_bound(problem))


def path_bound(problem: Problem) -> float:
    """Longest path when every op takes its least time and transfers take none, s."""
    graph = problem.graph
    least: Floats = np.where(
        problem.unit_allowed[problem.units], problem.costs.seconds, np.inf
    ).min(axis=1)
    end = least.copy()
    offsets, tensors = graph.inputs
    producer = graph.tensor_producer
    for i in range(problem.num_ops):
        inputs = tensors[offsets[i] : offsets[i + 1]]
        if len(inputs):
            end[i] += end[producer[inputs]].max()
    return float(end.max(initial=0.0))


def load_bound(problem: Problem) -> float:
    """Least largest load if work could be divided at will and moved for nothing, s.

    Linear-programming duality: for any prices of the devices' time that add to 1, the largest load
    is at least what all units pay at their cheapest device. The prices make the median unit cost
    the same everywhere.
    """
    streams = np.array([device.streams for device in problem.cluster.devices], dtype=np.float64)
    seconds = problem.unit_seconds / streams
    least = seconds.min(axis=1)
    speed = np.ones(problem.num_devices)
    for d in range(problem.num_devices):
        both = np.isfinite(seconds[:, d]) & (seconds[:, d] > 0)
        if both.any():
            speed[d] = float(np.median(least[both] / seconds[both, d]))
    bounds = []
    for weight in (speed, np.ones(problem.num_devices)):
        if weight.sum() > 0:
            price = weight / weight.sum()
            paid = np.where(np.isfinite(seconds), seconds * price, np.inf)
            bounds.append(float(paid.min(axis=1).sum()))
    return max([*bounds, float(least.max(initial=0.0))])
