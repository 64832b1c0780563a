"""How long an episode of HSDAG takes: forward, parse and sample; ask, value, tell (simulated).

    python benchmarks/episode.py [--rounds 30]

One core. The released code needs 77 to 144 ms for a forward pass at 400 to 800 nodes, and 1.7 to
3.6 s for an episode of 20 steps (the project's notes on the paper).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from learned import problem_of
from models import PAPER_MODELS
from scale import transformer
from situs.core import Problem
from situs.placers.learned.hsdag import HSDAG
from situs.placers.learned.policy import Architecture, Policy
from situs.simulate import evaluate

SAMPLES = 20
# About 800 nodes are left of these after co-location.
_WIDE_OPS = 835


def median_ms(work: Callable[[], object], rounds: int) -> float:
    """Median over rounds, after one that is not counted, ms."""
    work()
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return float(np.median(times)) * 1e3


def forward(problem: Problem, rounds: int) -> tuple[int, float]:
    """Nodes, and ms of one forward pass, parsing and 20 samples."""
    architecture = Architecture(("degree", "shape"), 128, 2, 1, False, 0.2)
    policy = Policy.create(problem, architecture, 1e-3, 0)

    def once() -> object:
        with torch.no_grad():
            decision = policy.decide(policy.start(), policy.generator)
            return policy.draw(decision.log_probs, SAMPLES)

    return policy.nodes.num_nodes, median_ms(once, rounds)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    print(f"{'graph':16}{'nodes':>7}{'forward, ms':>13}{'default, ms':>13}{'paper, ms':>12}")
    for name in PAPER_MODELS:
        problem = problem_of(name, "calibrated")
        nodes, forward_ms = forward(problem, options.rounds)
        episodes = {}
        for variant in ("default", "paper"):
            learner = HSDAG(variant=variant).learner(problem, 0)  # type: ignore[arg-type]

            def episode(learner=learner, problem=problem) -> None:  # type: ignore[no-untyped-def]
                learner.tell(evaluate(problem, learner.ask(SAMPLES)))

            episodes[variant] = median_ms(episode, options.rounds)
        rows.append({"graph": name, "nodes": nodes, "forward_ms": forward_ms} | episodes)
        print(
            f"{name:16}{nodes:7}{forward_ms:13.2f}{episodes['default']:13.1f}"
            f"{episodes['paper']:12.1f}"
        )
    wide = transformer(_WIDE_OPS, 2, 0)
    nodes, forward_ms = forward(wide, options.rounds)
    rows.append({"graph": wide.graph.name, "nodes": nodes, "forward_ms": forward_ms})
    print(f"{wide.graph.name:16}{nodes:7}{forward_ms:13.2f}")
    Path("benchmarks/results/episode.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
