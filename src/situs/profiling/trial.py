"""Trials: candidate placements compiled, checked against one device, and measured together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from situs.core import Measurement, Placement, count_subgraphs
from situs.errors import CompileError, RunError, Status
from situs.executors import Executor, Realised, Runnable
from situs.profiling.check import OutputCheck, compare_outputs, outputs_vary, tolerance_for
from situs.profiling.inputs import random_inputs
from situs.profiling.measure import MeasurePlan, compare, measure_interleaved

if TYPE_CHECKING:
    from situs.importers import Imported

Array = np.ndarray[Any, Any]
OnEvent = Callable[[str, int, int], None]

SCREENING = MeasurePlan(min_rounds=6, max_rounds=12, precision=0.03, budget_s=20.0)
FINAL = MeasurePlan(min_rounds=20, max_rounds=120, precision=0.01, budget_s=20.0)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A placement to try, its proposer, what the costs expect of it, and its engine.

    One that breaks a pin is measured for comparison, but not ``allowed`` to be kept.
    """

    name: str
    placement: Placement
    predicted_s: float
    executor: str = "hetero"
    allowed: bool = True


@dataclass(frozen=True, eq=False)
class Trial:
    """What became of one candidate.

    Attributes:
        candidate: The placement and its proposer.
        screening: First measurement, among all candidates.
        final: Second measurement with fresh samples, among the best few; None for the others.
        check: Outputs against the reference; None for the reference itself.
        realised: What was compiled; None if compiling failed.
    """

    candidate: Candidate
    screening: Measurement
    final: Measurement | None = None
    check: OutputCheck | None = None
    realised: Realised | None = None

    @property
    def measurement(self) -> Measurement:
        """The final measurement where there is one, else the screening."""
        return self.final or self.screening

    @property
    def seconds(self) -> float | None:
        """Median latency, s; None if it failed."""
        return self.measurement.seconds

    @property
    def ok(self) -> bool:
        """Whether it ran, and its outputs were right."""
        return self.measurement.status is Status.OK and (self.check is None or self.check.passed)


def _precisions(realised: Realised) -> list[str]:
    return [
        value for key, value in realised.configuration if key.endswith("INFERENCE_PRECISION_HINT")
    ]


@dataclass(slots=True)
class _Reference:
    """Outputs that are right, and whether they are others for other inputs."""

    first: list[Array]
    varies: bool


def run_trials(
    executors: Mapping[str, Executor],
    imported: Imported,
    candidates: Sequence[Candidate],
    rng: np.random.Generator,
    max_subgraphs: int | None = None,
    finalists: int = 3,
    stop: Callable[[], bool] = lambda: False,
    on_event: OnEvent = lambda stage, done, total: None,
    screening: MeasurePlan = SCREENING,
    final: MeasurePlan = FINAL,
    unplaced: Callable[[list[Array]], list[Array]] | None = None,
) -> list[Trial]:
    """Compile, check and measure candidates; failures of theirs are recorded, never raised.

    All candidates are screened together; the fastest few and the fastest uniform one are then
    measured again with fresh samples, so that the winner's time is not the luck of the draw.

    Args:
        executors: Engines by name, as the candidates name them.
        imported: The model.
        candidates: Placements, uniform ones first (the first that runs is the outputs' reference).
        rng: Draws the inputs and the order of the rounds.
        max_subgraphs: Candidates with more sub-graphs are recorded as infeasible.
        finalists: How many to measure a second time, beside the fastest uniform one.
        stop: Asked between steps; on True, what was measured so far is returned.
        on_event: Called with (stage, done, total).
        screening: How to measure first.
        final: How to measure the finalists.
        unplaced: Runs the model on inputs without any placement: its outputs are the reference.
    """
    inputs = random_inputs(imported.model, rng)
    others = random_inputs(imported.model, rng)
    trials: list[Trial] = []
    runnables: list[Runnable | None] = []
    reference: _Reference | None = None
    if unplaced is not None:
        first = unplaced(inputs)
        reference = _Reference(first, outputs_vary(first, unplaced(others)))
    for k, candidate in enumerate(candidates):
        on_event("compiling and checking", k, len(candidates))
        if stop():
            skipped = Measurement.failed(Status.INTERRUPTED, "interrupted before it was tried")
            trials.append(Trial(candidate, skipped))
            runnables.append(None)
            continue
        trial, runnable = _prepare(
            executors[candidate.executor], imported, candidate, inputs, max_subgraphs
        )
        if runnable is not None:
            if reference is None and candidate.placement.uniform_device is not None:
                reference = _refer(runnable, inputs, others)
            elif reference is not None:
                tolerance = tolerance_for(_precisions(runnable.realised))
                check = compare_outputs(
                    runnable.outputs(), reference.first, tolerance, reference.varies
                )
                trial = replace(trial, check=check)
                if not check.passed:
                    trial = replace(
                        trial, screening=Measurement.failed(Status.MISMATCH, check.detail)
                    )
                    runnable = None
        trials.append(trial)
        runnables.append(runnable)
    _measure(trials, runnables, range(len(trials)), rng, screening, stop, on_event, "screening")
    chosen = _finalists(trials, finalists)
    if len(chosen) > 1 and not stop():
        _measure(trials, runnables, chosen, rng, final, stop, on_event, "measuring finalists")
    return trials


def _prepare(
    executor: Executor,
    imported: Imported,
    candidate: Candidate,
    inputs: list[Array],
    max_subgraphs: int | None,
) -> tuple[Trial, Runnable | None]:
    pending = Measurement.failed(Status.INTERRUPTED, "not measured yet")
    count = count_subgraphs(imported.graph, candidate.placement.assignment)
    if (
        max_subgraphs is not None
        and candidate.placement.uniform_device is None
        and count > max_subgraphs
    ):
        detail = f"{count} sub-graphs; --max-subgraphs allows {max_subgraphs}"
        return Trial(candidate, Measurement.failed(Status.INFEASIBLE, detail)), None
    try:
        runnable = executor.compile(imported, candidate.placement)
    except CompileError as error:
        return Trial(candidate, Measurement.failed(Status.COMPILE_FAILED, str(error))), None
    try:
        runnable.bind(inputs)
        runnable.run()
    except RunError as error:
        failed = Measurement.failed(Status.RUN_FAILED, str(error))
        return Trial(candidate, failed, realised=runnable.realised), None
    return Trial(candidate, pending, realised=runnable.realised), runnable


def _refer(runnable: Runnable, inputs: list[Array], others: list[Array]) -> _Reference:
    first = runnable.outputs()
    runnable.bind(others)
    runnable.run()
    varies = outputs_vary(first, runnable.outputs())
    runnable.bind(inputs)
    runnable.run()
    return _Reference(first, varies)


def _measure(
    trials: list[Trial],
    runnables: Sequence[Runnable | None],
    which: Sequence[int],
    rng: np.random.Generator,
    plan: MeasurePlan,
    stop: Callable[[], bool],
    on_event: OnEvent,
    stage: str,
) -> None:
    able = [(i, r) for i in which if (r := runnables[i]) is not None]
    measurements = measure_interleaved(
        [r for _, r in able],
        rng,
        plan,
        stop=stop,
        on_round=lambda done, total: on_event(stage, done, total),
    )
    for (i, runnable), measurement in zip(able, measurements, strict=True):
        configured = replace(measurement, configuration=runnable.realised.configuration)
        if stage == "screening":
            trials[i] = replace(trials[i], screening=configured)
        elif configured.status is not Status.INTERRUPTED:
            trials[i] = replace(trials[i], final=configured)


def _finalists(trials: Sequence[Trial], count: int) -> list[int]:
    ranked = sorted(
        (i for i, t in enumerate(trials) if t.ok), key=lambda i: (trials[i].seconds or 0.0, i)
    )
    chosen = ranked[:count]
    uniform = [i for i in ranked if trials[i].candidate.placement.uniform_device is not None]
    allowed = [i for i in ranked if trials[i].candidate.allowed]
    for must in (uniform, allowed):
        if must and must[0] not in chosen:
            chosen.append(must[0])
    return chosen


def best_single(trials: Sequence[Trial]) -> Trial | None:
    """The fastest uniform placement that ran, or None."""
    singles = [t for t in trials if t.ok and t.candidate.placement.uniform_device is not None]
    # Only measurements of the same stage are comparable; finalists were measured last.
    finals = [t for t in singles if t.final is not None]
    return min(finals or singles, key=lambda t: t.seconds or 0.0, default=None)


def choose(trials: Sequence[Trial]) -> Trial | None:
    """The trial to keep: the fastest, but a split only where it beats the best single device.

    A split whose paired comparison with the best single device does not exclude equality is not
    kept: the answer is then never slower than one device beyond the interval.
    """
    single = best_single(trials)
    if single is None or not single.candidate.allowed:
        usable = [t for t in trials if t.ok and t.candidate.allowed]
        # Finalists were measured last, and with more samples.
        usable = [t for t in usable if t.final is not None] or usable
        return min(usable, key=lambda t: t.seconds or 0.0, default=None)
    faster = [
        t
        for t in trials
        if t.ok
        and t.candidate.placement.uniform_device is None
        and t.final is not None
        and single.final is not None
        and (c := compare(t.final, single.final)) is not None
        and c.faster
    ]
    return min(faster, key=lambda t: t.seconds or 0.0, default=single)
