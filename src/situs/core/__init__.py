"""Problems, placements, objectives, stopping rules, results and the clock."""

from situs.core.clock import Clock, FakeClock, RealClock
from situs.core.model import Dataflow, ExecutionModel, Offload, Pipeline, Sequential
from situs.core.objective import Evaluation, Objective
from situs.core.placement import Placement, count_subgraphs, place, violation
from situs.core.problem import Limits, Problem
from situs.core.result import Incumbent, Measurement, Result
from situs.core.stop import (
    AnyOf,
    Flag,
    GapClosed,
    MaxEvaluations,
    MaxSeconds,
    Never,
    Progress,
    Stop,
    Watched,
    seconds_left,
)

__all__ = [
    "AnyOf",
    "Clock",
    "Dataflow",
    "Evaluation",
    "ExecutionModel",
    "FakeClock",
    "Flag",
    "GapClosed",
    "Incumbent",
    "Limits",
    "MaxEvaluations",
    "MaxSeconds",
    "Measurement",
    "Never",
    "Objective",
    "Offload",
    "Pipeline",
    "Placement",
    "Problem",
    "Progress",
    "RealClock",
    "Result",
    "Sequential",
    "Stop",
    "Watched",
    "count_subgraphs",
    "place",
    "seconds_left",
    "violation",
]
