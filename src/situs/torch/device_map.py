"""Optimal device maps for accelerate and transformers, with what they are worth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from situs.core import violation
from situs.errors import ParameterError, Status
from situs.graph.arrays import Ints
from situs.hardware import Cluster
from situs.importers.torch.blocks import Blocks, Request, module_blocks, no_split_classes
from situs.torch.baseline import accelerate_map, cleaned, devices_of
from situs.torch.machine import machines
from situs.torch.memory import CPU, parse_memory
from situs.torch.problem import GOALS, Case, Counting, Goal
from situs.torch.solving import solve, value_of

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Prediction:
    """What one map is worth under the model (simulated).

    Attributes:
        device_map: Device by module path.
        main_device: Runs the modules on ``cpu`` and ``disk`` where those are copied; else None.
        used_bytes: Weights and (counting ``run``) key-value cache and activations, by device.
        latency_s: One request alone, s.
        bottleneck_s: Time per request of the busiest device or link with many requests, s.
        fullest: Largest share of a device's limit that is used, 0 to 1.
    """

    device_map: dict[str, str]
    main_device: str | None
    used_bytes: dict[str, int]
    latency_s: float
    bottleneck_s: float
    fullest: float

    def value(self, goal: Goal) -> float:
        """The goal's figure: smaller is better."""
        return {
            "latency": self.latency_s,
            "throughput": self.bottleneck_s,
            "fit": self.fullest,
        }[goal]


@dataclass(frozen=True, slots=True)
class DeviceMap:
    """The outcome of ``device_map``.

    Attributes:
        status: ``OPTIMAL`` (proven), ``STOPPED`` (see ``gap``) or ``INFEASIBLE``.
        best: Our map, or None if none fits.
        accelerate: Accelerate's map under the same model, or None where it breaks a limit, needs a
            disk that was not offered, or splits a block.
        accelerate_detail: Why there is no prediction for it, or empty.
        objective: What was minimised.
        bound: Proven lower bound on the objective over all maps.
        short_bytes: Where none fits: the least memory that is missing in all, proven, B.
        detail: How it was found, or why none fits.
        limits: Bytes per device that were given.
    """

    status: Status
    best: Prediction | None
    accelerate: Prediction | None
    accelerate_detail: str
    objective: Goal
    bound: float
    short_bytes: int
    detail: str
    limits: dict[str, int]

    @property
    def device_map(self) -> dict[str, str]:
        """The map, for ``accelerate.dispatch_model`` and ``from_pretrained(device_map=...)``.

        Raises:
            ParameterError: If nothing fits; the message says how many bytes are missing.
        """
        if self.best is None:
            raise ParameterError(f"no device map fits: {self.detail}")
        return self.best.device_map

    @property
    def gap(self) -> float:
        """How far from optimal the map could be at most, as a share of its value."""
        if self.best is None:
            return math.inf
        value = self.best.value(self.objective)
        return max(0.0, (value - self.bound) / value) if value > 0 else 0.0


def device_map(
    model: torch.nn.Module,
    max_memory: Mapping[int | str, int | str],
    objective: Goal = "latency",
    request: Request | None = None,
    machine: Cluster | str = "4xa100",
    counting: Counting = "run",
    no_split: Sequence[str] | None = None,
    inputs: Mapping[str, Any] | None = None,
    seconds: float = 4.0,
) -> DeviceMap:
    """Place a model's modules on devices within their memory.

    Args:
        model: On any device; ``meta`` is enough.
        max_memory: Size per device: ``{"cuda:0": "20GiB", "cpu": "60GiB", "disk": "1TB"}``. Nothing
            goes to a device that is not named.
        objective: ``latency`` of one request, ``throughput`` of many in a pipeline, or ``fit``:
            the fullest device as empty as can be.
        request: Batch, prompt and new tokens.
        machine: Hardware figures that times are modelled with: a cluster, or a catalogue name.
        counting: What must fit: ``run`` (weights, key-value cache at the longest context, the
            largest block's activations) or ``weights`` (as accelerate counts).
        no_split: Classes of modules to keep whole; None = the model's own.
        inputs: Forward arguments, for models that are not of transformers.
        seconds: Time for the solvers' proofs, s.

    Returns:
        Both maps with their figures, all simulated, and a bound.

    Raises:
        ParameterError: For a size, device or objective that cannot be used.
        ModelError: If the forward pass fails.
        MissingExtraError: If accelerate is not installed.
    """
    limits = _checked(max_memory, objective, counting)
    blocks = module_blocks(model, request, no_split, inputs)
    names = no_split_classes(model) if no_split is None else no_split
    rival = accelerate_map(model, limits, names)
    return map_blocks(blocks, limits, objective, machine, counting, rival, seconds)


def _checked(
    max_memory: Mapping[int | str, int | str], objective: str, counting: str
) -> dict[str, int]:
    if objective not in GOALS:
        raise ParameterError(f"objective must be one of {', '.join(GOALS)}; got {objective!r}")
    if counting not in ("run", "weights"):
        raise ParameterError(f"counting must be run or weights; got {counting!r}")
    limits = parse_memory(max_memory)
    virtual = next((name for name in limits if name.startswith(f"{CPU}:")), None)
    if virtual is not None:
        raise ParameterError(f"max_memory: accelerate knows one cpu, not {virtual}; write cpu")
    return limits


def map_blocks(
    blocks: Blocks,
    limits: dict[str, int],
    objective: Goal = "latency",
    machine: Cluster | str = "4xa100",
    counting: Counting = "run",
    rival: Mapping[str, str] | None = None,
    seconds: float = 4.0,
) -> DeviceMap:
    """As ``device_map``, for a model that is traced already; ``rival`` is accelerate's map."""
    cases = [Case(blocks, one, counting) for one in machines(limits, machine)]
    rivals, why = _rivals(cases, rival)
    best: tuple[float, Case, Ints] | None = None
    low, short = math.inf, math.inf
    for one in cases:
        started = [a for owner, a in rivals if owner is one]
        answer = solve(one, objective, started, seconds / len(cases))
        low, short = min(low, answer.bound), min(short, answer.short_bytes)
        if answer.assignment is not None and (best is None or answer.value < best[0]):
            best = answer.value, one, answer.assignment
    theirs = min(
        (_predict(owner, a, dict(rival or {})) for owner, a in rivals),
        key=lambda p: p.value(objective),
        default=None,
    )
    if best is None:
        proven = math.ceil(short) if 0 < short < math.inf else 0
        reason = (
            f"the limits are short of at least {proven} B in all, counting {counting} (proven)"
            if proven
            else "no map that keeps the limits was found, and none was ruled out; give more seconds"
        )
        return DeviceMap(
            Status.INFEASIBLE, None, theirs, why, objective, math.inf, proven, reason, limits
        )
    value, one, assignment = best
    names = one.machine.cluster.names
    mapped = {path: names[d] for path, d in zip(blocks.graph.op_names, assignment, strict=True)}
    low = min(low, value)
    return DeviceMap(
        Status.OPTIMAL if value - low <= 1e-6 * value else Status.STOPPED,
        _predict(one, assignment, cleaned(mapped)),
        theirs,
        why,
        objective,
        low,
        0,
        f"{one.machine.cluster.name}, counting {counting}",
        limits,
    )


def _rivals(
    cases: Sequence[Case], rival: Mapping[str, str] | None
) -> tuple[list[tuple[Case, Ints]], str]:
    """Accelerate's map in each case where it fits, or why there is none."""
    if rival is None:
        return [], "not asked for"
    devices = devices_of(cases[0].blocks, rival)
    if devices is None:
        return [], "it splits a block"
    fitting: list[tuple[Case, Ints]] = []
    why = f"it needs {', '.join(sorted({*devices}))}"
    for one in cases:
        names = one.machine.cluster.names
        if not set(devices) <= set(names):
            continue
        assignment = np.array([names.index(device) for device in devices], dtype=np.int32)
        over = one.used_bytes(assignment) - one.limits
        if (over > 0).any():
            d = int(np.argmax(over))
            why = f"it takes {over[d]:.0f} B more than {names[d]} has"
        elif (reason := violation(one.problem("latency"), assignment)) is not None:
            why = reason
        else:
            fitting.append((one, assignment))
    return fitting, "" if fitting else why


def _predict(one: Case, assignment: Ints, mapped: dict[str, str]) -> Prediction:
    used, names = one.used_bytes(assignment), one.machine.cluster.names
    offloads = any(names[d] in one.machine.streamed for d in np.unique(assignment))
    return Prediction(
        mapped,
        one.machine.main if offloads else None,
        {name: round(u) for name, u in zip(names, used, strict=True) if u > 0},
        value_of(one, "latency", assignment),
        value_of(one, "throughput", assignment),
        value_of(one, "fit", assignment),
    )
