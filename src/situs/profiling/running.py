"""Run one saved placement: latency statistics, output check, planned against realised."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from situs.core import Measurement, Placement
from situs.executors import Executor, Realised
from situs.profiling.check import OutputCheck
from situs.profiling.inputs import random_inputs
from situs.profiling.measure import Comparison, MeasurePlan, compare
from situs.profiling.trial import Candidate, run_trials

if TYPE_CHECKING:
    from situs.importers import Imported


@dataclass(frozen=True, eq=False)
class RunReport:
    """What running a placement showed.

    Attributes:
        measurement: All samples.
        check: Outputs against the reference; None where the placement is itself the reference.
        realised: Op by op, read back from an instrumented twin.
        reference: Measurement of the first device alone, interleaved; None where it is the same.
        comparison: Paired with the reference.
    """

    measurement: Measurement
    check: OutputCheck | None
    realised: Realised | None
    reference: Measurement | None
    comparison: Comparison | None


def statistics(measurement: Measurement) -> dict[str, float]:
    """Mean, spread and percentiles of the samples, s."""
    s = measurement.samples_s
    if not len(s):
        return {"n": 0}
    p50, p90, p99 = np.percentile(s, [50, 90, 99])
    return {
        "n": len(s),
        "p50_s": float(p50),
        "p90_s": float(p90),
        "p99_s": float(p99),
        "mean_s": float(s.mean()),
        "min_s": float(s.min()),
        "std_s": float(s.std()),
    }


def run_placement(
    executor: Executor,
    imported: Imported,
    placement: Placement,
    seed: int,
    runs: int,
    stop: Callable[[], bool] = lambda: False,
    on_event: Callable[[str, int, int], None] = lambda stage, done, total: None,
    unplaced: Callable[[Sequence[Any]], list[Any]] | None = None,
) -> RunReport:
    """Measure a placement interleaved with a single device of its own, and check its outputs.

    With ``unplaced``, which runs the model on inputs without any placement, its outputs are the
    reference.

    Raises:
        WorkError: If the placement does not compile or run.
    """
    rng = np.random.default_rng(seed)
    realised = executor.realise(imported, placement, random_inputs(imported.model, rng))
    candidates = [Candidate("placement", placement, np.nan, executor.name)]
    if placement.uniform_device is None:
        first = np.unique(placement.assignment)[0]
        whole = np.full(len(placement.assignment), first, dtype=np.int32)
        reference = Placement(placement.graph, placement.devices, whole)
        candidates.insert(0, Candidate("reference", reference, np.nan, executor.name))
    plan = MeasurePlan(min_rounds=runs, max_rounds=runs, budget_s=float("inf"))
    trials = run_trials(
        {executor.name: executor},
        imported,
        candidates,
        rng,
        None,
        0,
        stop,
        on_event,
        screening=plan,
        unplaced=unplaced,
    )
    trial = trials[-1]
    other = trials[0].measurement if len(trials) > 1 else None
    return RunReport(
        trial.measurement,
        trial.check,
        realised,
        other,
        compare(trial.measurement, other) if other is not None else None,
    )
