"""Placement files of tiny problems, for the tests that look at one."""

from pathlib import Path

import numpy as np

from situs.core import place
from situs.core.placement_file import PlacementFile, write_placement
from situs.core.problem_record import problem_to_record
from situs.testing.problems import chain3

BEST = np.array([0, 1, 0], dtype=np.int32)


def saved_chain(path: Path) -> Path:
    problem = chain3()
    record = {"problem": problem_to_record(problem), "executor": "hetero"}
    file = PlacementFile(place(problem, BEST), problem.cluster.devices, record)
    write_placement(path, file, problem.graph)
    return path
