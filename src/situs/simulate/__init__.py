"""Latency, memory, bounds and timelines of placements, without running them."""

from situs.simulate.bounds import Bound, bound
from situs.simulate.evaluate import evaluate
from situs.simulate.evaluator import Evaluator
from situs.simulate.memory import memory_shortfall, peak_memory
from situs.simulate.mincut import minimum_cut
from situs.simulate.objective import SimulatedObjective
from situs.simulate.timeline import Timeline, timeline
from situs.simulate.trace import trace_events

__all__ = [
    "Bound",
    "Evaluator",
    "SimulatedObjective",
    "Timeline",
    "bound",
    "evaluate",
    "memory_shortfall",
    "minimum_cut",
    "peak_memory",
    "timeline",
    "trace_events",
]
