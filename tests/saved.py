"""Placement files of tiny problems, for the tests that look at one."""

from pathlib import Path

import numpy as np

from situs.core import Dataflow, Problem, place
from situs.core.placement_file import PlacementFile, write_placement
from situs.core.problem_record import problem_to_record
from situs.costs import roofline
from situs.graph import Graph
from situs.hardware import catalogue
from situs.report.saved import Saved
from situs.simulate import evaluate
from situs.testing.problems import chain3

BEST = np.array([0, 1, 0], dtype=np.int32)


def saved_chain(path: Path) -> Path:
    problem = chain3()
    record = {"problem": problem_to_record(problem), "executor": "hetero"}
    file = PlacementFile(place(problem, BEST), problem.cluster.devices, record)
    write_placement(path, file, problem.graph)
    return path


def saved_placement(graph: Graph) -> Saved:
    """A graph spread over two devices of a described machine; the candidates' times are made up."""
    cluster = catalogue("i9-flex170")
    problem = Problem(graph, cluster, roofline(graph, cluster), Dataflow())
    two = np.array([cluster.index("CPU"), cluster.index("GPU.1")], dtype=np.int32)
    assignment = two[problem.units // max(problem.num_units // 6, 1) % 2]
    predicted_s = float(evaluate(problem, assignment[np.newaxis])[0])
    candidates = [
        {
            "name": name,
            "executor": "parallel",
            "status": "ok",
            "detail": "",
            "measured_s": seconds,
            "interval_s": [seconds * 0.97, seconds * 1.02],
            "samples_s": [seconds] * 12,
            "stage": "final",
            "predicted_s": seconds,
            "ratio_to_best_single": [seconds / 0.004, 0.8, 1.2],
            "subgraphs": 3,
            "moved_bytes": 4096,
        }
        for name, seconds in (("CPU alone", 0.009), ("GPU.1 alone", 0.004), ("heft", 0.0035))
    ]
    record = {
        "problem": problem_to_record(problem),
        "verdict": "An example: the candidates' times are not measured.",
        "executor": "parallel",
        "chosen": "heft",
        "best_single": "GPU.1 alone",
        "seed": 0,
        "candidates": candidates,
        "placers": [
            {
                "placer": "heft",
                "parameters": {},
                "status": "ok",
                "predicted_s": predicted_s,
                "bound_s": 0.0,
                "evaluations": 100,
                "elapsed_s": 0.5,
                "trace": [[1, 0.1, 2 * predicted_s], [50, 0.2, predicted_s]],
                "detail": "",
            }
        ],
        "environment": {"python": "3.11"},
    }
    return Saved(PlacementFile(place(problem, assignment), cluster.devices, record), problem)
