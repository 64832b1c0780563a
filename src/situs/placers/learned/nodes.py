"""The graphs that learners see: units as nodes, or the co-location coarsening of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from situs.core import Problem
from situs.graph.arrays import Bools, Floats, Ints, frozen
from situs.placers.learned import _kernels as kernels


@dataclass(frozen=True, eq=False)
class NodeGraph:
    """Nodes joined by directed edges, and the ops inside each. Axes: ``V`` nodes, ``E`` edges.

    Attributes:
        node: ``int32[N]`` node of each op; nodes are numbered by their first op.
        source: ``int32[E]`` producing node of each edge; edges are distinct and sorted.
        target: ``int32[E]`` consuming node of each edge.
        allowed: ``bool[V, D]`` every op of the node is allowed on the device.
    """

    node: Ints
    source: Ints
    target: Ints
    allowed: Bools

    @property
    def num_nodes(self) -> int:
        """Number of nodes ``V``."""
        return len(self.allowed)

    @property
    def num_devices(self) -> int:
        """Number of devices ``D``."""
        return int(self.allowed.shape[1])

    def devices_of(self, assignment: Ints, fastest: Ints) -> Ints:
        """``int32[V]`` devices from ``int32[N]`` of ops; ``fastest`` where a node bars its own."""
        first = np.unique(self.node, return_index=True)[1]
        devices = assignment[first]
        able = self.allowed[np.arange(self.num_nodes), devices]
        return frozen(np.where(able, devices, fastest), np.int32)


def quotient(label: Ints, source: Ints, target: Ints) -> tuple[Ints, Ints]:
    """Distinct edges between different labels, sorted by (source, target)."""
    if not len(source):
        return source, target
    a, b = label[source].astype(np.int64), label[target].astype(np.int64)
    width = int(label.max()) + 1
    key = np.unique(a[a != b] * width + b[a != b])
    return frozen(key // width, np.int32), frozen(key % width, np.int32)


def node_seconds(problem: Problem, nodes: NodeGraph) -> Floats:
    """``float64[V, D]`` run time of all ops of each node that the device may run, s."""
    seconds = np.zeros((nodes.num_nodes, nodes.num_devices))
    np.add.at(seconds, nodes.node, np.where(problem.allowed, problem.costs.seconds, 0.0))
    return seconds


def fastest_devices(problem: Problem, nodes: NodeGraph) -> Ints:
    """``int32[V]`` the device that runs each node fastest of those that may."""
    seconds = np.where(nodes.allowed, node_seconds(problem, nodes), np.inf)
    return frozen(np.argmin(seconds, axis=1), np.int32)


def units_of(problem: Problem) -> NodeGraph:
    """Every unit (ops that must share a device) as a node: nothing is merged beyond that."""
    source, target = quotient(
        problem.units, problem.graph.edge_producer, problem.graph.consumer_ops
    )
    return NodeGraph(frozen(problem.units, np.int32), source, target, problem.unit_allowed)


def coarsen(problem: Problem) -> NodeGraph:
    """Merge v into its producer u where u is v's only producer and v is u's only consumer.

    Linear in the graph. Units (ops that must share a device) stay whole; ops without a common
    device are not merged. Contracting such an edge cannot close a cycle: a cycle would need a
    second way out of u or a second way into v.

    Source: Duan et al., "A Structure-Aware Framework for Learning Device Placements on
    Computation Graphs", NeurIPS 2024, section 2.2 (co-location coarsening).
    Differs: Constants are inside the ops that read them and are no nodes.
    """
    units = units_of(problem)
    allowed = units.allowed
    label = kernels.colocate(units.num_nodes, units.source, units.target, allowed.copy())
    count = int(label.max()) + 1 if len(label) else 0
    merged = np.ones((count, problem.num_devices), dtype=np.bool_)
    np.logical_and.at(merged, label, allowed)
    source, target = quotient(label, units.source, units.target)
    return NodeGraph(frozen(label[units.node], np.int32), source, target, frozen(merged, np.bool_))
