"""Execution models: what the latency of a placement *means*; kernels simulate it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from situs.errors import ParameterError


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ParameterError(f"{name} must be one of {', '.join(allowed)}; got {value!r}")


@dataclass(frozen=True, slots=True)
class Sequential:
    """Sub-graphs of one request run one after another (OpenVINO's HETERO).

    Latency = sum of op times + for every tensor and every other device that reads it: the
    transfer, and that device's ``boundary_s``. A tensor is paid once per destination device.
    """


@dataclass(frozen=True, slots=True)
class Dataflow:
    """Devices and links overlap; a device runs one op at a time per stream. Latency = makespan.

    Attributes:
        dispatch: ``priority`` (ready op of highest upward rank first) or ``fifo`` (by arrival).
        links: ``shared`` (a directed link carries one transfer at a time) or ``unlimited``.
        charge: ``tensor`` (one transfer per tensor and destination device) or ``edge``.
    """

    dispatch: Literal["priority", "fifo"] = "priority"
    links: Literal["shared", "unlimited"] = "shared"
    charge: Literal["tensor", "edge"] = "tensor"

    def __post_init__(self) -> None:
        _one_of("dispatch", self.dispatch, ("priority", "fifo"))
        _one_of("links", self.links, ("shared", "unlimited"))
        _one_of("charge", self.charge, ("tensor", "edge"))


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Steady state of many requests: seconds per request = load of the busiest device or link.

    Attributes:
        transfers: ``link`` (each directed link is a resource of its own), or ``staged`` (every
            transfer goes through host memory, device 0, and loads the accelerator at each end:
            once per tensor out, once per tensor and destination in; device 0 pays nothing).
        contiguous: Whether the ops of each device must form a convex set.
    """

    transfers: Literal["link", "staged"] = "link"
    contiguous: bool = False

    def __post_init__(self) -> None:
        _one_of("transfers", self.transfers, ("link", "staged"))


ExecutionModel = Sequential | Dataflow | Pipeline
