"""Graphs: ops, tensors and constants as flat arrays in topological order."""

from situs.graph.build import OpSpec, build_graph, topological_order
from situs.graph.graph import Graph
from situs.graph.serialize import graph_from_json, graph_to_json
from situs.graph.stats import GraphStats, op_depths, stats

__all__ = [
    "Graph",
    "GraphStats",
    "OpSpec",
    "build_graph",
    "graph_from_json",
    "graph_to_json",
    "op_depths",
    "stats",
    "topological_order",
]
