"""The outcome of placing a model: every candidate, what was kept, and why, in one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from situs.core import Placement, Problem, Result
from situs.core.placement_file import PlacementFile
from situs.core.problem_record import problem_to_record
from situs.errors import Status
from situs.profiling.display import candidates_html
from situs.profiling.environment import environment
from situs.profiling.measure import Comparison, compare
from situs.profiling.trial import Trial, best_single, choose


def moved_bytes(problem: Problem, placement: Placement) -> int:
    """Bytes that one request moves: each tensor once per other device that reads it."""
    tensors, _ = problem.graph.cut(placement.assignment)
    return int(problem.graph.tensor_bytes[tensors].sum())


def _finite(seconds: float) -> float | None:
    return seconds if np.isfinite(seconds) else None


@dataclass(frozen=True, eq=False)
class Outcome:
    """What ``situs place`` found.

    Attributes:
        problem: Graph, devices and measured costs.
        results: What each placer returned, in the order run.
        trials: What became of each candidate.
        executor: The engine that was asked for: ``hetero``, ``parallel`` or ``auto``.
        seed: Seed of inputs, orders and placers.
        interrupted: Whether the user stopped it; the best so far is then kept.
        engine_problems: The problem as each other engine sees it, by engine.
    """

    problem: Problem
    results: tuple[Result, ...]
    trials: tuple[Trial, ...]
    executor: str
    seed: int
    interrupted: bool = False
    engine_problems: Mapping[str, Problem] = field(default_factory=dict)

    @property
    def chosen(self) -> Trial | None:
        """The trial that is kept; None if nothing ran."""
        return choose(self.trials)

    @property
    def best_single(self) -> Trial | None:
        """The fastest single device."""
        return best_single(self.trials)

    @property
    def placement(self) -> Placement | None:
        """The placement that is kept."""
        return self.chosen.candidate.placement if self.chosen else None

    @property
    def status(self) -> Status:
        """How it ended."""
        if self.chosen is None:
            return Status.RUN_FAILED
        return Status.INTERRUPTED if self.interrupted else Status.OK

    @property
    def check_proves(self) -> bool:
        """Whether the reference outputs vary with the input, so that the checks mean something."""
        return all(t.check.varies for t in self.trials if t.check is not None)

    def comparison(self, trial: Trial) -> Comparison | None:
        """Paired comparison of a trial with the best single device, at the same stage."""
        single = self.best_single
        if single is None or not trial.ok:
            return None
        if trial.final is not None and single.final is not None:
            return compare(trial.final, single.final)
        return compare(trial.screening, single.screening)

    def label(self, placement: Placement) -> str:
        """Devices of a uniform placement, or the number of ops on each device."""
        labels = {d.name: d.label for d in self.problem.cluster.devices}
        if placement.uniform_device is not None:
            return f"{labels[placement.uniform_device]} alone"
        return ", ".join(f"{labels[name]} {k}" for name, k in placement.counts().items() if k)

    def verdict(self) -> str:
        """One honest sentence."""
        chosen, single = self.chosen, self.best_single
        tail = (
            ""
            if self.check_proves
            else (" The outputs do not vary with the input, so the output check proves nothing.")
        )
        if chosen is None:
            return "No candidate ran; see the reasons in the table."
        ms = (chosen.seconds or 0.0) * 1e3
        where = self.label(chosen.candidate.placement)
        if not all(t.candidate.allowed for t in self.trials):
            c = self.comparison(chosen)
            cost = (
                f"; they cost {(c.ratio - 1) * 100:+.1f} % against {single.candidate.name}"
                if (c is not None and single is not None and not single.candidate.allowed)
                else ""
            )
            return f"With the pins, {where} takes {ms:.3g} ms{cost}.{tail}"
        if single is None:
            return f"No single device ran this model; {where} takes {ms:.3g} ms.{tail}"
        if chosen is not single:
            c = self.comparison(chosen)
            gain = (1 - c.ratio) * 100 if c else 0.0
            more = self._more_cores(chosen, single)
            span = f" ({(1 - c.high) * 100:.1f} to {(1 - c.low) * 100:.1f} %)" if c else ""
            where_alone = self.label(single.candidate.placement)
            return (
                f"Splitting pays: {chosen.candidate.name} ({where}) takes {ms:.3g} ms, "
                f"{gain:.1f} %{span} less than {where_alone}{more}.{tail}"
            )
        splits = [t for t in self.trials if t.ok and t.candidate.placement.uniform_device is None]
        if not splits:
            return f"{where} is kept at {ms:.3g} ms: no split placement ran.{tail}"
        best = min(splits, key=lambda t: (t.final is None, t.seconds or 0.0))
        c = self.comparison(best)
        if c is not None and not c.slower:
            return (
                f"{where} is kept at {ms:.3g} ms: the best split ({best.candidate.name}) is not "
                f"distinguishable from it (ratio {c.ratio:.3f}, {c.low:.3f} to {c.high:.3f}).{tail}"
            )
        slower = f", {(c.ratio - 1) * 100:.1f} % slower" if c else ""
        return (
            f"{where} is kept at {ms:.3g} ms: splitting does not help here "
            f"(best split: {best.candidate.name}{slower}).{tail}"
        )

    @staticmethod
    def _more_cores(split: Trial, single: Trial) -> str:
        """Say so when a split wins with more processor cores than the device it is compared with.

        HETERO's sub-models on the CPU may run with more threads than their properties say.
        """
        used, alone = split.measurement.cores, single.measurement.cores
        if used <= 1.2 * alone:
            return ""
        return f", on {used:.1f} processor cores instead of {alone:.1f}"

    def differences(self) -> tuple[Any, ...]:
        """Where the kept placement was not realised as planned."""
        chosen = self.chosen
        return chosen.realised.differences if chosen and chosen.realised else ()

    def file(self) -> PlacementFile:
        """The placement file of what is kept.

        Raises:
            ValueError: If nothing ran.
        """
        if self.chosen is None:
            raise ValueError("no candidate ran, so there is no placement to save")
        return PlacementFile(
            self.chosen.candidate.placement, self.problem.cluster.devices, self.record()
        )

    @property
    def seen_problem(self) -> Problem:
        """The problem as the engine of the kept placement sees it."""
        engine = self.chosen.candidate.executor if self.chosen else self.executor
        return self.engine_problems.get(engine, self.problem)

    def record(self) -> dict[str, Any]:
        """Everything found, as JSON values."""
        chosen, single = self.chosen, self.best_single
        return {
            "status": self.status.name.lower(),
            "verdict": self.verdict(),
            "executor": chosen.candidate.executor if chosen else self.executor,
            "asked_executor": self.executor,
            "seed": self.seed,
            "chosen": chosen.candidate.name if chosen else None,
            "best_single": single.candidate.name if single else None,
            "candidates": [self.candidate_record(trial) for trial in self.trials],
            "placers": [
                {
                    "placer": r.placer,
                    "parameters": dict(r.parameters),
                    "status": r.status.name.lower(),
                    "predicted_s": _finite(r.seconds),
                    "bound_s": r.bound_s,
                    "evaluations": r.evaluations,
                    "elapsed_s": r.elapsed_s,
                    "trace": [
                        [i.evaluations, round(i.elapsed_s, 6), i.seconds]
                        for i in r.trace
                        if np.isfinite(i.seconds)
                    ],
                    "detail": r.detail,
                }
                for r in self.results
            ],
            "costs": dict(self.problem.costs.notes) | {"source": self.problem.costs.source},
            "problem": problem_to_record(self.seen_problem),
            "environment": environment(),
        }

    def candidate_record(self, trial: Trial) -> dict[str, Any]:
        """One candidate as JSON values."""
        measurement = trial.measurement
        c = self.comparison(trial)
        interval = measurement.interval_s()
        realised = trial.realised
        return {
            "name": trial.candidate.name,
            "executor": trial.candidate.executor,
            "ops": trial.candidate.placement.counts(),
            "allowed": trial.candidate.allowed,
            "status": measurement.status.name.lower(),
            "detail": measurement.detail,
            "predicted_s": _finite(trial.candidate.predicted_s),
            "measured_s": measurement.seconds,
            "interval_s": list(interval) if interval else None,
            "samples_s": measurement.samples_s.tolist(),
            "screening_samples_s": trial.screening.samples_s.tolist(),
            "warmup": measurement.warmup,
            "cores": measurement.cores,
            "stage": "final" if trial.final is not None else "screening",
            "ratio_to_best_single": [c.ratio, c.low, c.high] if c else None,
            "moved_bytes": moved_bytes(self.problem, trial.candidate.placement),
            "subgraphs": realised.subgraphs if realised else None,
            "configuration": dict(realised.configuration) if realised else {},
            "notes": list(realised.notes) if realised else [],
            "differences": [
                {"op": d.op, "planned": d.planned, "realised": d.realised, "cause": d.cause}
                for d in (realised.differences if realised else ())
            ],
            "output_check": {
                "max_abs": trial.check.max_abs,
                "max_rel": trial.check.max_rel,
                "tolerance": trial.check.tolerance,
                "varies_with_input": trial.check.varies,
                "passed": trial.check.passed,
            }
            if trial.check
            else None,
        }

    def _repr_html_(self) -> str:
        rows = [self.candidate_record(trial) for trial in self.trials]
        name = self.chosen.candidate.name if self.chosen else None
        return candidates_html(self.verdict(), rows, name)

    def __str__(self) -> str:
        chosen, single = self.chosen, self.best_single
        lines = [self.verdict(), f"status       {self.status.name.lower()}: {self.status.value}"]
        if chosen is not None and chosen.seconds is not None:
            low, high = chosen.measurement.interval_s() or (0.0, 0.0)
            lines.append(
                f"latency      {chosen.seconds * 1e3:.3f} ms "
                f"(95 % interval {low * 1e3:.3f} to {high * 1e3:.3f}, measured by "
                f"{chosen.candidate.executor})"
            )
        if single is not None and single.seconds is not None:
            lines.append(
                f"best single  {self.label(single.candidate.placement)}, "
                f"{single.seconds * 1e3:.3f} ms"
            )
        if chosen is not None:
            c = self.comparison(chosen)
            placement = chosen.candidate.placement
            if c is not None:
                lines.append(f"ratio        {c.ratio:.3f} ({c.low:.3f} to {c.high:.3f})")
            ops = ", ".join(f"{k} {v}" for k, v in placement.counts().items())
            lines.append(f"ops          {ops}")
            lines.append(f"bytes moved  {moved_bytes(self.problem, placement)}")
            lines.append(f"placer       {chosen.candidate.name}")
        lines.append(f"seed         {self.seed}")
        return "\n".join(lines)
