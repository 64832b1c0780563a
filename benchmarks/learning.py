"""What learning is worth: learned placers against random and local search, at equal evaluations.

Every placer values the two uniform placements first, then what it likes; best values are read after
500 and 2,000 evaluations. ``lr=0`` is a learner that cannot learn: its own control. All figures are
simulated, on the paper's networks and machine, with two tables of costs (see ``learned.py``).

    python benchmarks/learning.py [--placers hsdag random ...] [--graphs bert-base] [--seeds 5]

Prints medians and quartiles of the best value over the optimum (minimum cut), and the mean value of
the policy's own samples at start and end; writes JSON and two figures per table of costs.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from learned import COSTS, Job, Run, problem_of, run_all, solved
from models import PAPER_MODELS

PLACERS = (
    "hsdag",
    "hsdag{lr=0}",
    "hsdag{variant=paper}",
    "hsdag{variant=paper,lr=0}",
    "random",
    "random{by=interval}",
    "hill-climbing",
    "hill-climbing{by=interval}",
)
BUDGETS = (500, 2000)
# Episodes whose mean is the start and the end of a policy.
_ENDS = 3
# One on each device of the paper's machine.
_UNIFORM = 2


def row(runs: list[Run], best_s: float) -> dict[str, object]:
    """Figures of one placer on one problem over its seeds, as ratios to the optimum."""
    job = runs[0].job
    record: dict[str, object] = {
        "graph": job.graph,
        "costs": job.costs,
        "placer": job.placer,
        "seeds": len(runs),
        "optimum_s": best_s,
        "seconds_per_run": float(np.median([r.elapsed_s for r in runs])),
    }
    for budget in BUDGETS:
        ratios = [r.best_s(budget) / best_s for r in runs]
        record[f"best_{budget}"] = np.quantile(ratios, (0.25, 0.5, 0.75)).tolist()
    start = [float(np.mean(r.mean_s[:_ENDS])) / best_s for r in runs]
    end = [float(np.mean(r.mean_s[-_ENDS:])) / best_s for r in runs]
    record["mean_start"], record["mean_end"] = float(np.median(start)), float(np.median(end))
    record["fall"] = float(np.median([(a - b) / (a - 1) for a, b in zip(start, end, strict=True)]))
    return record


def draw(runs: list[Run], optima: dict[str, float], costs: str, path: Path, mean: bool) -> None:
    """Learning curves: one panel per graph, median and quartiles over seeds."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    graphs = list(optima)
    figure, panels = plt.subplots(1, len(graphs), figsize=(6 * len(graphs), 4.5), squeeze=False)
    for panel, graph in zip(panels[0], graphs, strict=True):
        mine = [r for r in runs if r.job.graph == graph and r.job.costs == costs]
        for number, placer in enumerate(dict.fromkeys(r.job.placer for r in mine)):
            of = [r for r in mine if r.job.placer == placer]
            if mean and not placer.startswith("hsdag"):
                continue
            if mean:
                length = min(len(r.mean_s) for r in of)
                x = of[0].mean_at[:length]
                curves = np.stack([r.mean_s[:length] for r in of]) / optima[graph]
            else:
                length = min(len(r.values_s) for r in of)
                # From where every placer has valued the uniform placements.
                x = np.arange(1, length + 1)[_UNIFORM - 1 :]
                curves = np.stack([np.minimum.accumulate(r.values_s[:length]) for r in of])
                curves = curves[:, _UNIFORM - 1 :] / optima[graph]
            low, middle, high = np.quantile(curves, (0.25, 0.5, 0.75), axis=0)
            style = ":" if "lr=0" in placer else "-"
            panel.plot(x, middle, style, color=f"C{number}", label=placer)
            panel.fill_between(x, low, high, color=f"C{number}", alpha=0.15, linewidth=0)
        panel.set_title(graph)
        panel.set_xlabel("placements valued")
        panel.grid(alpha=0.3)
    what = "mean of the policy's samples" if mean else "best placement so far"
    panels[0][0].set_ylabel(f"{what} / optimum (simulated)")
    panels[0][-1].legend(fontsize=8)
    figure.suptitle(f"{what}, {costs} costs (simulated); median and quartiles over seeds")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--placers", nargs="+", default=list(PLACERS))
    parser.add_argument("--graphs", nargs="+", default=list(PAPER_MODELS))
    parser.add_argument("--costs", nargs="+", default=list(COSTS), choices=COSTS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/learning"))
    options = parser.parse_args()
    jobs = [
        Job(graph, costs, placer, seed, max(BUDGETS))
        for costs in options.costs
        for graph in options.graphs
        for placer in options.placers
        for seed in range(options.seeds)
    ]
    runs = run_all(jobs)
    runs.sort(key=lambda r: jobs.index(r.job))
    records = []
    for costs in options.costs:
        optima = {
            # The minimum cut: nothing is below it.
            graph: solved(problem_of(graph, costs), "mincut")[0]
            for graph in options.graphs
        }
        print(f"\n{costs} costs; best / optimum (simulated): median [quartiles]")
        print(f"{'graph':14}{'placer':34}{'500':>24}{'2000':>24}{'mean start -> end':>20}{'s':>7}")
        for graph in options.graphs:
            for placer in options.placers:
                of = [
                    r
                    for r in runs
                    if (r.job.graph, r.job.costs, r.job.placer) == (graph, costs, placer)
                ]
                record = row(of, optima[graph])
                records.append(record)
                cells = [record[f"best_{budget}"] for budget in BUDGETS]
                texts = [f"{m:.4f} [{a:.4f} {b:.4f}]" for a, m, b in cells]  # type: ignore[attr-defined]
                print(
                    f"{graph:14}{placer:34}{texts[0]:>24}{texts[1]:>24}"
                    f"{record['mean_start']:9.3f} -> {record['mean_end']:.3f}"
                    f"{record['seconds_per_run']:9.1f}"
                )
        for mean in (False, True):
            name = f"-{costs}-{'mean' if mean else 'best'}.png"
            draw(runs, optima, costs, options.output.with_name(options.output.name + name), mean)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    path = options.output.with_suffix(".json")
    path.write_text(json.dumps({"simulated": True, "rows": records}, indent=1) + "\n")
    print(f"\nwritten to {path}")


if __name__ == "__main__":
    main()
