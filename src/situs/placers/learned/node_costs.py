"""Costs of the coarsened graph: what policies that look at costs are shown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from situs.core import Problem
from situs.graph.arrays import Floats, Ints
from situs.placers.learned.features import ALL, Features, node_features
from situs.placers.learned.nodes import NodeGraph, node_seconds


@dataclass(frozen=True, eq=False)
class NodeCosts:
    """Costs per node and edge. Axes: ``V`` nodes, ``E`` edges, ``D`` devices.

    Attributes:
        seconds: ``float64[V, D]`` run time of all ops of a node, s; 0 where it is not allowed.
        edge_size: ``float64[E]`` amount that an edge moves if it is cut.
        latency_s: ``float64[D, D]`` fixed time of a transfer, s.
        s_per_size: ``float64[D, D]`` time per amount, s.
        scale_s: Sum over nodes of the fastest run time, s: what times are shown relative to; > 0.
        top_s: ``float64[V]`` longest path of mean run times before the node, s.
        bottom_s: ``float64[V]`` longest path from the node to the end, itself included, s.
    """

    seconds: Floats
    edge_size: Floats
    latency_s: Floats
    s_per_size: Floats
    scale_s: float
    top_s: Floats
    bottom_s: Floats


def node_costs(problem: Problem, nodes: NodeGraph) -> NodeCosts:
    """Costs of the nodes of a problem."""
    graph, costs = problem.graph, problem.costs
    seconds = np.where(nodes.allowed, node_seconds(problem, nodes), 0.0)
    tensors, readers = graph.cut(nodes.node)
    producers = nodes.node[graph.tensor_producer[tensors]].astype(np.int64)
    edge = producers * nodes.num_nodes + readers
    of_edge = nodes.source.astype(np.int64) * nodes.num_nodes + nodes.target
    size = np.zeros(len(of_edge))
    np.add.at(size, np.searchsorted(of_edge, edge), costs.transfer_size[tensors])
    finite = np.where(np.isfinite(costs.link_latency_s), costs.link_latency_s, 0.0)
    able = nodes.allowed
    fastest = np.where(able, seconds, np.inf).min(axis=1)
    mean = seconds.sum(axis=1) / able.sum(axis=1)
    top, bottom = np.zeros(nodes.num_nodes), mean.copy()
    ranks = topological_rank(nodes)
    by_source = np.argsort(ranks[nodes.source], kind="stable")
    for e in by_source:
        u, v = nodes.source[e], nodes.target[e]
        top[v] = max(top[v], top[u] + mean[u])
    for e in by_source[::-1]:
        u, v = nodes.source[e], nodes.target[e]
        bottom[u] = max(bottom[u], mean[u] + bottom[v])
    scale_s = max(float(fastest.sum()), 1e-30)
    return NodeCosts(seconds, size, finite, costs.link_s_per_byte, scale_s, top, bottom)


def features_with_paths(problem: Problem, nodes: NodeGraph, costs: NodeCosts) -> Features:
    """``float32[V, F + 2]``: all node features, and the paths to and from a node over the scale."""
    paths = np.stack([costs.top_s, costs.bottom_s], axis=1) / costs.scale_s
    return np.concatenate([node_features(problem, nodes, ALL), paths], axis=1).astype(np.float32)


def topological_rank(nodes: NodeGraph) -> Ints:
    """``int32[V]`` rank of every node in a topological order."""
    waiting = np.bincount(nodes.target, minlength=nodes.num_nodes)
    starts = np.searchsorted(nodes.source, np.arange(nodes.num_nodes + 1))
    ready = np.flatnonzero(waiting == 0).tolist()
    rank = np.zeros(nodes.num_nodes, dtype=np.int32)
    for number, u in enumerate(ready):
        rank[u] = number
        for v in nodes.target[starts[u] : starts[u + 1]]:
            waiting[v] -= 1
            if not waiting[v]:
                ready.append(int(v))
    return rank
