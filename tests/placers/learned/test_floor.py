"""The floor: random search, hill climbing and the cross-entropy method."""

import numpy as np
import pytest

from placers.learned.networks import layered
from situs.core import Evaluation, MaxEvaluations
from situs.graph.arrays import Ints
from situs.placers import Placer, get_placer
from situs.simulate import SimulatedObjective, evaluate
from situs.testing.placer_suite import PlacerSuite

PROBLEM = layered()
SPECS = (
    "random",
    "random{by=interval}",
    "hill-climbing",
    "hill-climbing{by=interval}",
    "cross-entropy",
)


class TestRandom(PlacerSuite):
    def placer(self) -> Placer:
        return get_placer("random")


class TestRandomIntervals(PlacerSuite):
    def placer(self) -> Placer:
        return get_placer("random{by=interval}")


class TestHillClimbing(PlacerSuite):
    def placer(self) -> Placer:
        return get_placer("hill-climbing")


class TestCrossEntropy(PlacerSuite):
    def placer(self) -> Placer:
        return get_placer("cross-entropy")


class Recording:
    def __init__(self) -> None:
        self.asked: list[Ints] = []
        self.seconds: list[float] = []

    def evaluate(self, assignments: Ints) -> Evaluation:
        seconds = evaluate(PROBLEM, assignments)
        self.asked += list(assignments)
        self.seconds += seconds.tolist()
        return Evaluation.of(seconds)


def run(spec: str, evaluations: int = 600, seed: int = 0) -> Recording:
    recording = Recording()
    get_placer(spec)(PROBLEM, recording, MaxEvaluations(evaluations), np.random.default_rng(seed))
    return recording


def test_random_search_draws_every_device_of_every_unit_alike() -> None:
    asked = np.stack(run("random", 2002).asked[2:])
    share = asked.mean(axis=0)
    assert np.abs(share - 0.5).max() < 6 * 0.5 / np.sqrt(len(asked))


def test_random_intervals_are_few_runs_in_topological_order() -> None:
    asked = np.stack(run("random{by=interval}").asked[2:])
    changes = (np.diff(asked, axis=1) != 0).sum(axis=1)
    assert changes.max() <= 9
    assert len(set(changes.tolist())) > 3


@pytest.mark.parametrize("by", ["op", "interval"])
def test_hill_climbing_moves_from_the_best_it_was_told(by: str) -> None:
    recording = run(f"hill-climbing{{by={by}}}")
    # The better one of the two uniform placements, which are valued first.
    start = int(np.argmin(recording.seconds[:2]))
    current, current_s = recording.asked[start], recording.seconds[start]
    for asked, seconds in zip(recording.asked[2:], recording.seconds[2:], strict=True):
        moved = np.flatnonzero(asked != current)
        if by == "op":
            assert len(moved) == 1
        else:
            assert len(moved) == 0 or len(set(asked[moved].tolist())) == 1
        if seconds <= current_s:
            current, current_s = asked, seconds
    assert current_s < recording.seconds[start]


def test_cross_entropy_moves_to_what_is_good() -> None:
    recording = run("cross-entropy{samples=50,episodes=40}", 2002)
    first, last = recording.seconds[2:52], recording.seconds[-50:]
    assert np.mean(last) < np.min(first)
    assert len({tuple(a) for a in recording.asked[-50:]}) > 1


@pytest.mark.parametrize("spec", SPECS)
def test_continues_where_it_was(spec: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    def result(episodes: int, folder: str):  # type: ignore[no-untyped-def]
        more = f"episodes={episodes},samples=5,checkpoint={tmp_path / folder}"
        name = f"{spec[:-1]},{more}}}" if spec.endswith("}") else f"{spec}{{{more}}}"
        return get_placer(name)(
            PROBLEM, SimulatedObjective(PROBLEM), MaxEvaluations(10**6), np.random.default_rng(3)
        )

    whole = result(9, "whole")
    result(4, "parts")
    parts = result(9, "parts")
    assert parts.placement == whole.placement
    assert [(i.evaluations, i.seconds) for i in parts.trace] == [
        (i.evaluations, i.seconds) for i in whole.trace
    ]
