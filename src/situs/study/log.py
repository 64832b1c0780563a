"""What a measured search writes down as it goes, and reads again when it is resumed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from situs.errors import Status
from situs.graph.arrays import Ints


def placement_key(assignment: Ints) -> str:
    """Name of an ``int32[N]`` assignment: equal for equal ones, on every machine."""
    return hashlib.sha256(np.ascontiguousarray(assignment, dtype="<i4").tobytes()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Sample:
    """One counted run of one placement, or its failure.

    Attributes:
        race: Which race of the study, from 0; those of one race are measured together.
        round: Which round of the race, from 0; those of one round are a pair.
        placement: ``placement_key`` of what ran.
        status: ``OK``, or why it failed; a failed placement leaves its race.
        seconds: Seconds of the run; None if it failed.
        detail: Reason of a failure.
        taken_at_s: Wall-clock time it was taken, s since 1970 UTC.
        conditions: Load, frequency, temperature where readable, by name.
    """

    race: int
    round: int
    placement: str
    status: Status
    seconds: float | None
    detail: str = ""
    taken_at_s: float = 0.0
    conditions: Mapping[str, float] = field(default_factory=dict)


class Log(Protocol):
    """Keeps samples in the order taken; (race, round, placement) is there at most once."""

    def samples(self) -> Sequence[Sample]:
        """All of them, oldest first."""
        ...

    def append(self, samples: Sequence[Sample], placements: Mapping[str, Ints]) -> None:
        """Keep all of ``samples`` or, if that fails, none; ``placements`` are new ones by key.

        Raises:
            OutputError: If they cannot be kept; the search must then not go on.
        """
        ...


class MemoryLog:
    """A log that ends with the process."""

    def __init__(self) -> None:
        self._samples: dict[tuple[int, int, str], Sample] = {}
        self.placements: dict[str, Ints] = {}

    def samples(self) -> Sequence[Sample]:
        """All of them, oldest first."""
        return list(self._samples.values())

    def append(self, samples: Sequence[Sample], placements: Mapping[str, Ints]) -> None:
        """Keep ``samples``; one that is there already stays as it is."""
        for sample in samples:
            self._samples.setdefault((sample.race, sample.round, sample.placement), sample)
        self.placements.update(placements)
