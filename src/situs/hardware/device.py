"""Devices and links: what can run ops, and how tensors get from one to another."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from situs.errors import ClusterError

KINDS = ("cpu", "gpu", "npu", "other")


@dataclass(frozen=True, slots=True)
class Device:
    """Something that runs ops, named as its runtime names it (``CPU``, ``GPU.1``, ``cuda:0``).

    Attributes:
        name: The runtime's own name; unique in a cluster.
        kind: One of ``cpu``, ``gpu``, ``npu``, ``other``.
        full_name: The hardware's name for people.
        memory_bytes: Memory that placements may use, B; infinite if unknown.
        virtual: Whether this is a second copy of a real device, made for testing.
        peak_flop_per_s: Best floating-point rate, FLOP/s; 0 if unknown.
        memory_bytes_per_s: Memory bandwidth, B/s; 0 if unknown.
        efficiency: Share of the peak that real ops reach, 0 < efficiency <= 1.
        type_efficiency: Share of the roofline (peak rate or memory bandwidth, whichever holds an op
            back) that ops of a type reach, 0 < share <= 1, as sorted (op type, share) pairs; type
            ``*`` stands for every type that is not listed. It replaces ``efficiency`` there.
        op_overhead_s: Fixed time to start one op, s.
        boundary_s: Fixed time to start one sub-graph, s.
        streams: Ops that it runs at once.
        uuid: Identity of the hardware where the runtime tells it, else empty.
        precision: Inference precision that the runtime uses on it (``f32``, ...), else empty.
        properties: Runtime properties to compile with, as sorted (key, value) pairs.
        source: Where the figures come from.
    """

    name: str
    kind: str = "cpu"
    full_name: str = ""
    memory_bytes: float = math.inf
    virtual: bool = False
    peak_flop_per_s: float = 0.0
    memory_bytes_per_s: float = 0.0
    efficiency: float = 1.0
    type_efficiency: tuple[tuple[str, float], ...] = ()
    op_overhead_s: float = 0.0
    boundary_s: float = 0.0
    streams: int = 1
    uuid: str = ""
    precision: str = ""
    properties: tuple[tuple[str, str], ...] = ()
    source: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            raise ClusterError("a device needs a name")
        if self.kind not in KINDS:
            raise ClusterError(f"device {self.name}: kind {self.kind!r} is not one of {KINDS}")
        for key in ("peak_flop_per_s", "memory_bytes_per_s", "op_overhead_s", "boundary_s"):
            value = getattr(self, key)
            if not (math.isfinite(value) and value >= 0):
                raise ClusterError(f"device {self.name}: {key} must be finite and >= 0: {value}")
        if not self.memory_bytes >= 0:
            raise ClusterError(f"device {self.name}: memory_bytes must be >= 0")
        if not 0 < self.efficiency <= 1:
            raise ClusterError(f"device {self.name}: efficiency must be in (0, 1]")
        for kind, share in self.type_efficiency:
            if not 0 < share <= 1:
                raise ClusterError(
                    f"device {self.name}: type_efficiency of {kind} must be in (0, 1], got {share}"
                )
        if self.streams < 1:
            raise ClusterError(f"device {self.name}: streams must be >= 1: {self.streams}")

    @property
    def label(self) -> str:
        """The name as people see it: a virtual device always says so."""
        return f"{self.name} (virtual)" if self.virtual else self.name


@dataclass(frozen=True, slots=True)
class Link:
    """A directed path between two devices: ``seconds = latency_s + bytes / bytes_per_s``."""

    source: str
    target: str
    latency_s: float = 0.0
    bytes_per_s: float = math.inf
    origin: str = field(default="", metadata={"doc": "where the figures come from"})

    def __post_init__(self) -> None:
        where = f"link {self.source} -> {self.target}"
        if self.source == self.target:
            raise ClusterError(f"{where}: source and target must differ")
        if not (math.isfinite(self.latency_s) and self.latency_s >= 0):
            raise ClusterError(f"{where}: latency_s must be finite and >= 0: {self.latency_s}")
        if not self.bytes_per_s > 0:
            raise ClusterError(f"{where}: bytes_per_s must be > 0: {self.bytes_per_s}")
