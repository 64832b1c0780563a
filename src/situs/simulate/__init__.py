"""Latency, memory, bounds and timelines of placements, without running them."""

from situs.simulate.evaluate import evaluate
from situs.simulate.memory import memory_shortfall, peak_memory
from situs.simulate.mincut import minimum_cut
from situs.simulate.objective import SimulatedObjective

__all__ = ["SimulatedObjective", "evaluate", "memory_shortfall", "minimum_cut", "peak_memory"]
