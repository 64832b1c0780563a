"""Engines that really run a placed model."""

from situs.executors.executor import Difference, Executor, Realised, Runnable
from situs.executors.runtime import (
    PRECISIONS,
    DeviceSpec,
    capabilities,
    discover,
    first_line,
    parse_device,
)

__all__ = [
    "PRECISIONS",
    "DeviceSpec",
    "Difference",
    "Executor",
    "Realised",
    "Runnable",
    "capabilities",
    "discover",
    "first_line",
    "parse_device",
]
