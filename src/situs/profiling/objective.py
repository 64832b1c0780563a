"""The real engine as an objective, and a record of everything that it measured."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from situs.core import Clock, Evaluation, Measurement, Problem, RealClock, place, violation
from situs.errors import CompileError, OutputError, ParameterError, RunError, Status
from situs.executors import Executor
from situs.graph.arrays import Ints

if TYPE_CHECKING:
    from situs.importers import Imported

OnMeasured = Callable[[int], None]


class MeasuredObjective:
    """Values placements by compiling and running them.

    Args:
        executor: The engine.
        imported: The model.
        problem: Its limits are kept: a placement that breaks one is infeasible and not compiled.
        inputs: What every run is fed.
        runs: Synchronous runs of one placement (paper: 10).
        counted: The last this many of them count; their median is the value (paper: 5, mean).
        stop: Asked before every placement; from then on all are ``INTERRUPTED``.
    """

    def __init__(
        self,
        executor: Executor,
        imported: Imported,
        problem: Problem,
        inputs: Sequence[np.ndarray[Any, Any]],
        runs: int = 10,
        counted: int = 5,
        stop: Callable[[], bool] = lambda: False,
        clock: Clock | None = None,
    ) -> None:
        if not 1 <= counted <= runs:
            raise ParameterError(f"counted must be in 1 .. runs = {runs}, got {counted}")
        self._executor, self._imported, self._problem = executor, imported, problem
        self._inputs, self._runs, self._counted = inputs, runs, counted
        self._stop, self._clock = stop, clock or RealClock()

    def measure(self, assignment: Ints) -> Measurement:
        """One ``int32[N]`` placement; a failure is a status, never an exception."""
        if self._stop():
            return Measurement.failed(Status.INTERRUPTED, "interrupted before it was measured")
        broken = violation(self._problem, assignment)
        if broken is not None:
            return Measurement.failed(Status.INFEASIBLE, broken)
        try:
            runnable = self._executor.compile(self._imported, place(self._problem, assignment))
        except CompileError as error:
            return Measurement.failed(Status.COMPILE_FAILED, str(error))
        samples: list[float] = []
        try:
            runnable.bind(self._inputs)
            for _ in range(self._runs):
                begin = self._clock.now()
                runnable.run()
                samples.append(self._clock.now() - begin)
        except RunError as error:
            return Measurement.failed(Status.RUN_FAILED, str(error))
        counted = np.array(samples[-self._counted :])
        return Measurement(
            Status.OK,
            counted,
            self._runs - self._counted,
            configuration=runnable.realised.configuration,
        )

    def evaluate(self, assignments: Ints) -> Evaluation:
        """Measure ``int32[B, N]`` placements one after another."""
        return _evaluation([self.measure(row) for row in np.atleast_2d(assignments)])


class RecordedObjective:
    """Measures every placement once, and keeps each measurement on disk as soon as it is there.

    One JSON line per measurement. A placement that is asked for again, in this run or in one that
    continues it after a kill, has the recorded value: nothing is lost or counted twice. A last
    line that a kill cut short is dropped; its placement is measured again.

    Raises:
        ParameterError: If the file is the record of another problem, or no record.
        OutputError: If it cannot be read or written.
    """

    def __init__(
        self,
        measured: MeasuredObjective,
        problem: Problem,
        path: Path,
        on_measured: OnMeasured = lambda count: None,
    ) -> None:
        self._measured, self._path, self._on_measured = measured, path, on_measured
        self._key = f"{problem.graph.fingerprint} {','.join(problem.cluster.names)}"
        self._known: dict[str, Measurement] = {}
        try:
            self._read()
        except OSError as error:
            raise OutputError(f"{path}: cannot keep measurements there ({error})") from error

    @property
    def count(self) -> int:
        """Placements measured so far, by this run and those before."""
        return len(self._known)

    def evaluate(self, assignments: Ints) -> Evaluation:
        """Recorded values, and new measurements of the rest."""
        return _evaluation([self._one(row) for row in np.atleast_2d(assignments)])

    def _one(self, assignment: Ints) -> Measurement:
        code = "".join(np.base_repr(d, 36) if d < 36 else f"({d})" for d in assignment.tolist())
        if code not in self._known:
            measurement = self._measured.measure(assignment)
            if measurement.status is Status.INTERRUPTED:
                return measurement
            self._write(
                {
                    "devices": code,
                    "status": measurement.status.name,
                    "samples_s": measurement.samples_s.tolist(),
                    "warmup": measurement.warmup,
                    "detail": measurement.detail,
                }
            )
            self._known[code] = measurement
            self._on_measured(len(self._known))
        return self._known[code]

    def _write(self, record: dict[str, object]) -> None:
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise OutputError(f"{self._path}: cannot keep measurements there ({error})") from error

    def _read(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if not self._path.exists():
            self._write({"measurements": 1, "of": self._key})
            return
        text = self._path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        try:
            head, *lines = [json.loads(line) for line in whole.splitlines()] or [{}]
            if head.get("measurements") != 1:
                raise ValueError("its first line is not that of a record of measurements")
            for line in lines:
                self._known[line["devices"]] = Measurement(
                    Status[line["status"]],
                    np.array(line["samples_s"], dtype=np.float64),
                    int(line["warmup"]),
                    str(line["detail"]),
                )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ParameterError(
                f"{self._path}: not a record of measurements ({error}); give another folder"
            ) from error
        if head["of"] != self._key:
            raise ParameterError(
                f"{self._path}: measurements of another model or other devices; give another folder"
            )
        if len(whole) < len(text):
            os.truncate(self._path, len(whole))


def _evaluation(measurements: Sequence[Measurement]) -> Evaluation:
    return Evaluation(
        np.array([_seconds(m) for m in measurements]), tuple(m.status for m in measurements)
    )


def _seconds(measurement: Measurement) -> float:
    if measurement.status is Status.INFEASIBLE:
        return np.inf
    return np.nan if measurement.seconds is None else measurement.seconds
