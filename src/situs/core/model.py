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
    """Devices and links overlap. Latency = makespan.

    An op is ready when all tensors that it reads are on its device; a ready op starts as soon as
    one of the device's ``streams`` is free. When an op ends, its tensors leave for every other
    device that reads them. A transfer occupies its directed link for ``transfer_s``; the tensor can
    be read ``boundary_s`` of the destination later, which occupies nothing. Everything that ends or
    arrives at one instant is taken into account before anything starts at that instant.

    Attributes:
        dispatch: ``priority`` (ready op of highest upward rank first) or ``fifo`` (by the time it
            became ready); ties by op number.
        links: ``shared`` (a directed link carries one transfer at a time, in the order in which
            they could leave, ties by tensor number, then by reader) or ``unlimited``.
        charge: ``tensor`` (one transfer per tensor and destination device) or ``edge`` (one per
            tensor and reader).
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

    The load of a device is its op times plus its ``boundary_s`` for every tensor that comes in,
    over its ``streams``; that of a directed link is its transfers, one per tensor and destination.

    Attributes:
        transfers: ``link`` (each directed link is a resource of its own), or ``staged`` (every
            transfer goes through host memory, device 0, and loads the accelerator at each end:
            once per tensor out, once per tensor and destination in; device 0 pays nothing).
        contiguous: Whether the ops of each device must form a convex set: no path may leave it and
            come back.
        backward_types: Op types that form the backward part of a training graph; the two parts of
            a device must each be convex.
    """

    transfers: Literal["link", "staged"] = "link"
    contiguous: bool = False
    backward_types: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _one_of("transfers", self.transfers, ("link", "staged"))


@dataclass(frozen=True, slots=True)
class Offload:
    """One request on a host that calls accelerators; latency = when the last op is ready.

    Device 0 is the host: its ops run with unlimited parallelism, each as soon as its inputs are
    ready. Devices ``1 + k * calls`` to ``(k + 1) * calls`` are the calls of accelerator k, in the
    order in which it makes them. A call starts when all its outside inputs are in host memory and
    the call before it has ended; it takes its ``boundary_s``, one transfer from the host per
    outside tensor, the times of its ops, and one transfer to the host per tensor that is read
    outside, nothing overlapped; all its outputs are ready at its end. Calls that wait for each
    other are infeasible, so that every call is a convex set of ops. The memory of an accelerator is
    the sum over its calls.

    Attributes:
        calls: Devices per accelerator.

    Source: Tarnawski et al., "Efficient algorithms for device placement of DNN graph operators",
    NeurIPS 2020, section 4 (latency minimisation).
    """

    calls: int = 1

    def __post_init__(self) -> None:
        if self.calls < 1:
            raise ParameterError(f"calls must be >= 1; got {self.calls}")


ExecutionModel = Sequential | Dataflow | Pipeline | Offload
