"""Quality per second: best value against time of search and of simpler ways, as one figure.

Simulated ``dataflow`` of public problems: a msr-fiddle graph on the CPU and three accelerators, and
a DOPPLER graph on four equal devices. HEFT is one point, continued as a line. Writes JSON and PNG.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from situs.core import MaxSeconds, Problem
from situs.placers import get_placer
from situs.placers.heuristic.moves import Neighbourhood
from situs.placers.heuristic.walk import Walk
from situs.profiling.environment import environment
from situs.simulate import SimulatedObjective, bound, evaluate
from situs.testing.instances import load_instance
from solvers import on_few_devices

Curve = list[tuple[float, float]]
_BATCH, _MOVES = 256, 200


class Best:
    """The best value seen, by the seconds since it was made."""

    def __init__(self) -> None:
        self._begin, self.curve = time.perf_counter(), Curve()

    @property
    def elapsed_s(self) -> float:
        """Seconds since it was made."""
        return time.perf_counter() - self._begin

    def take(self, value_s: float) -> None:
        """Keep a value if it is the least."""
        if not self.curve or value_s < self.curve[-1][1]:
            self.curve.append((self.elapsed_s, value_s))


def placer(problem: Problem, spec: str, budget_s: float) -> Curve:
    """Incumbents of one of our placers."""
    begin = time.perf_counter()
    result = get_placer(spec)(
        problem, SimulatedObjective(problem), MaxSeconds(budget_s), np.random.default_rng(0)
    )
    curve = [(i.elapsed_s, i.seconds) for i in result.trace]
    return [*curve, (time.perf_counter() - begin, result.seconds)]


def random_search(problem: Problem, budget_s: float) -> Curve:
    """The best of placements drawn evenly from the allowed devices."""
    rng, best = np.random.default_rng(0), Best()
    while best.elapsed_s < budget_s:
        keys = rng.random((_BATCH, *problem.unit_allowed.shape))
        devices = np.argmax(np.where(problem.unit_allowed, keys, -1.0), axis=2)
        drawn = devices[:, problem.units].astype(np.int32)
        best.take(float(evaluate(problem, drawn).min()))
    return best.curve


def annealing(problem: Problem, budget_s: float) -> Curve:
    """One walk from the best single device, cooled from 5 % to 0.001 % of its value over time."""
    rng, best = np.random.default_rng(0), Best()
    single = np.stack([assignment for _, assignment in problem.uniform()])
    values = evaluate(problem, single)
    walk = Walk(problem, Neighbourhood(problem), single[np.argmin(values)])
    best.take(walk.best_s)
    while best.elapsed_s < budget_s:
        heat = 0.05 * (2e-4) ** (best.elapsed_s / budget_s)
        walk.follow(walk.propose(_MOVES, heat * values.min(), rng))
        best.take(walk.best_s)
    return best.curve


def draw(panels: list[dict[str, object]], path: Path, budget_s: float) -> None:
    """One panel a problem: value over the bound against time."""
    figure, axes = plt.subplots(1, len(panels), figsize=(6 * len(panels), 4.2), squeeze=False)
    for axis, panel in zip(axes[0], panels, strict=True):
        for name, curve in panel["curves"].items():  # type: ignore[attr-defined]
            times, values = zip(*curve, strict=True)
            axis.step([*times, budget_s], [*values, values[-1]], where="post", label=name)
        axis.axhline(panel["bound"], color="black", linestyle=":", label="proven bound")
        axis.set(xscale="log", xlabel="seconds", ylabel="best value (simulated)")
        axis.set_title(panel["case"])
        axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("shared/placement-benchmarks"))
    parser.add_argument("--budget", type=float, default=20.0, help="seconds for each method")
    options = parser.parse_args()
    fiddle = options.data / "msr-fiddle" / "gnmt_training-layers-throughput.json"
    cases = {
        "gnmt_training-layers, 4 devices": on_few_devices(
            load_instance(fiddle, contiguous=False), 4
        ),
        "4gpu_full_transformer_layer": load_instance(
            options.data / "doppler" / "4gpu_full_transformer_layer_261nodes.json"
        ),
    }
    methods = {
        "search": lambda p, s: placer(p, "search{patience=1000000}", s),
        "HEFT": lambda p, s: placer(p, "heft", s),
        "CP-SAT alone": lambda p, s: placer(p, f"cp-sat{{workers=2,max_seconds={s}}}", s),
        "simulated annealing": annealing,
        "random search": random_search,
    }
    panels: list[dict[str, object]] = []
    for case, problem in cases.items():
        print(f"{case}: bound {bound(problem).seconds:.3f} (simulated)")
        curves = {}
        for name, run in methods.items():
            run(problem, 2.0)  # compiles
            curves[name] = run(problem, options.budget)
            values = "".join(
                f"{min((v for t, v in curves[name] if t <= at), default=float('nan')):>12.3f}"
                for at in (0.1, 1.0, 5.0, options.budget * 2)
            )
            print(f"  {name:<22}{values}", flush=True)
        panels.append({"case": case, "bound": bound(problem).seconds, "curves": curves})
    folder = Path(__file__).parent / "results"
    draw(panels, folder / "quality.png", options.budget)
    body = {"columns_s": "incumbents as [seconds, value]", "panels": panels}
    (folder / "quality.json").write_text(
        json.dumps(body | {"environment": environment()}, indent=1) + "\n"
    )


if __name__ == "__main__":
    main()
