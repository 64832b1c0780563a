"""Pins: which ops a person wants on which device, from a small TOML file."""

from __future__ import annotations

import difflib
import fnmatch
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from situs.errors import ProblemError
from situs.graph import Graph
from situs.graph.arrays import Bools, Ints, frozen
from situs.hardware import Cluster

_MAX_BYTES = 1 << 20
KINDS = ("name", "glob", "regex", "type", "range")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: the ops that ``kind`` and ``pattern`` select go to ``device``.

    Attributes:
        kind: ``name`` (exact), ``glob``, ``regex`` (anywhere in the name), ``type`` (op type), or
            ``range`` (``first..last`` by name, in topological order, ends included).
        pattern: What to match.
        device: Device name, in any case.
    """

    kind: str
    pattern: str
    device: str

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ProblemError(f"pin rule: {self.kind!r} is not one of {', '.join(KINDS)}")

    def __str__(self) -> str:
        return f"{self.kind} = {self.pattern!r} -> {self.device}"

    def matches(self, graph: Graph) -> Bools:
        """``bool[N]`` ops that the rule selects.

        Raises:
            ProblemError: If it selects nothing (with near names), or the pattern is malformed.
        """
        if self.kind == "range":
            mask = self._range(graph)
        else:
            texts = graph.op_types if self.kind == "type" else graph.op_names
            test = self._test()
            mask = np.array([test(text) for text in texts], dtype=np.bool_)
        if not mask.any():
            known = sorted(set(graph.op_types)) if self.kind == "type" else graph.op_names
            raise ProblemError(f"pin rule {self} matches no op{_near(self.pattern, known)}")
        return frozen(mask, np.bool_)

    def _test(self) -> Callable[[str], bool]:
        if self.kind == "glob":
            return lambda text: fnmatch.fnmatchcase(text, self.pattern)
        if self.kind == "regex":
            try:
                found = re.compile(self.pattern)
            except re.error as error:
                raise ProblemError(f"pin rule {self}: not a regular expression: {error}") from error
            return lambda text: found.search(text) is not None
        return lambda text: text == self.pattern

    def _range(self, graph: Graph) -> Bools:
        first, dots, last = self.pattern.partition("..")
        if not dots:
            raise ProblemError(f"pin rule {self}: write a range as first..last")
        ends = []
        for name in (first.strip(), last.strip()):
            if name not in graph.op_index:
                hint = _near(name, graph.op_names)
                raise ProblemError(f"pin rule {self}: no op is named {name!r}{hint}")
            ends.append(graph.op_index[name])
        order = np.arange(graph.num_ops)
        inside: Bools = (order >= ends[0]) & (order <= ends[1])
        return inside


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules in order, and the device of every op that none selects (empty = left to the placer)."""

    rules: tuple[Rule, ...] = ()
    default: str = ""

    def pinned(self, graph: Graph, cluster: Cluster) -> Ints:
        """``int32[N]`` device of each op, -1 = free, as in ``Limits.pinned``.

        Raises:
            ProblemError: If a rule selects nothing, or two rules want one op on two devices.
            ClusterError: For an unknown device.
        """
        owner: list[Rule | None] = [None] * graph.num_ops
        pinned = np.full(graph.num_ops, -1, dtype=np.int32)
        for rule in self.rules:
            device = cluster.index(rule.device)
            for op in np.flatnonzero(rule.matches(graph)).tolist():
                before = owner[op]
                if before is not None and pinned[op] != device:
                    raise ProblemError(
                        f"pin rules {before} and {rule} both select {graph.op_names[op]!r}; "
                        "narrow one of them"
                    )
                owner[op], pinned[op] = rule, device
        if self.default:
            pinned[pinned < 0] = cluster.index(self.default)
        return frozen(pinned, np.int32)


def read_rules(path: str | Path) -> Rules:
    """Read ``default = "CPU"`` and ``[[pin]]`` tables with one of the kinds and a ``device``.

    Raises:
        ProblemError: If the file cannot be read or has an unknown or missing key.
    """
    path = Path(path)
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ProblemError(f"{path}: a pins file must be at most {_MAX_BYTES} B")
        data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ProblemError(f"{path}: not a readable TOML file: {error}") from error
    unknown = sorted(data.keys() - {"default", "pin"})
    default, pins = data.get("default", ""), data.get("pin", [])
    if unknown or not isinstance(default, str) or not isinstance(pins, list):
        raise ProblemError(
            f"{path}: expected default = 'DEVICE' and [[pin]] tables"
            + (f"; unknown key {unknown[0]!r}" if unknown else "")
        )
    return Rules(tuple(_rule(pin, f"{path}: pin {k + 1}") for k, pin in enumerate(pins)), default)


def _rule(pin: Any, where: str) -> Rule:
    texts = isinstance(pin, dict) and all(isinstance(v, str) for v in pin.values())
    kinds = [key for key in pin if key != "device"] if texts else []
    if not texts or len(kinds) != 1 or "device" not in pin or kinds[0] not in KINDS:
        raise ProblemError(f"{where}: give a device and exactly one of {', '.join(KINDS)}, as text")
    return Rule(kinds[0], pin[kinds[0]], pin["device"])


def _near(text: str, known: tuple[str, ...] | list[str]) -> str:
    """``; near names: ...`` or nothing."""
    lower = {name.lower(): name for name in known}
    plain = text.strip("*^$.?").lower()
    near = difflib.get_close_matches(plain, lower, n=3, cutoff=0.5)
    near += [k for k in lower if plain and plain in k and k not in near][: 3 - len(near)]
    return f"; near names: {', '.join(lower[k] for k in near)}" if near else ""
