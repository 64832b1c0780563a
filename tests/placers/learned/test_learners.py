from pathlib import Path

import numpy as np
import pytest

from placers.learned.networks import layered
from situs.core import Evaluation, Flag, MaxEvaluations, Never, Progress, Watched
from situs.errors import InputError, ParameterError
from situs.placers import get_placer
from situs.placers.learned.hsdag import HSDAG
from situs.simulate import SimulatedObjective, evaluate

PROBLEM = layered()
BOTH = pytest.mark.parametrize("variant", ["default", "paper"])


def small(variant: str, **more: object) -> HSDAG:
    return HSDAG(variant=variant, hidden=32, **more)  # type: ignore[arg-type]


def means(placer: HSDAG, episodes: int, seed: int = 0) -> list[float]:
    learner = placer.learner(PROBLEM, seed)
    return [learner.tell(evaluate(PROBLEM, learner.ask(20))).mean_s for _ in range(episodes)]


@BOTH
def test_asks_the_same_until_told(variant: str) -> None:
    learner = small(variant).learner(PROBLEM, 0)
    first = learner.ask(8)
    assert first.shape == (8, PROBLEM.num_ops)
    assert np.array_equal(first, learner.ask(8))
    learner.tell(evaluate(PROBLEM, first))
    assert not np.array_equal(first, learner.ask(8))


@pytest.mark.parametrize(("variant", "share"), [("default", 0.6), ("paper", 0.1)])
def test_learns_and_without_a_learning_rate_does_not(variant: str, share: float) -> None:
    optimum = get_placer("mincut")(
        PROBLEM, SimulatedObjective(PROBLEM), Never(), np.random.default_rng(0)
    ).seconds
    learned = [means(small(variant), 50, seed) for seed in range(2)]
    control = [means(small(variant, lr=0.0), 50, seed) for seed in range(2)]
    start = np.median([run[0] for run in learned])
    end = np.median([np.mean(run[-5:]) for run in learned])
    flat = np.median([np.mean(run[-5:]) for run in control])
    assert start - end >= share * (start - optimum)
    assert flat - end >= share * (start - optimum)


def test_learning_rate_zero_changes_no_parameter() -> None:
    learner = small("default", lr=0.0).learner(PROBLEM, 0)
    before = learner.arrays()
    learner.tell(evaluate(PROBLEM, learner.ask(20)))
    after = learner.arrays()
    assert all(np.array_equal(after[k], v) for k, v in before.items() if k.startswith("network."))


@BOTH
def test_continues_bit_for_bit_from_a_checkpoint(variant: str, tmp_path: Path) -> None:
    objective = SimulatedObjective(PROBLEM)

    def run(episodes: int, folder: str):  # type: ignore[no-untyped-def]
        placer = small(variant, episodes=episodes, checkpoint=str(tmp_path / folder))
        return placer(PROBLEM, objective, Never(), np.random.default_rng(5))

    whole = run(6, "whole")
    run(3, "parts")
    parts = run(6, "parts")
    assert parts.placement == whole.placement
    assert parts.evaluations == whole.evaluations == 6 * 20 + 2
    assert [(i.evaluations, i.seconds) for i in parts.trace] == [
        (i.evaluations, i.seconds) for i in whole.trace
    ]
    one = tmp_path / "whole" / "episode-6.safetensors"
    other = tmp_path / "parts" / "episode-6.safetensors"
    assert one.read_bytes() == other.read_bytes()
    assert not any(p.suffix in (".pt", ".pkl", ".pth") for p in tmp_path.rglob("*"))


def test_checkpoint_of_other_parameters_or_damaged_is_refused(tmp_path: Path) -> None:
    objective = SimulatedObjective(PROBLEM)
    folder = str(tmp_path / "kept")
    go = (PROBLEM, objective, Never(), np.random.default_rng(0))
    small("default", episodes=1, checkpoint=folder)(*go)
    with pytest.raises(ParameterError, match="other parameters"):
        small("paper", episodes=1, checkpoint=folder)(*go)
    with pytest.raises(ParameterError, match="other graph"):
        small("default", episodes=1, checkpoint=folder)(
            layered(3), SimulatedObjective(layered(3)), *go[2:]
        )
    for text in ("", "{", "[]", '{"format": "situs-checkpoint", "version": 1}'):
        (tmp_path / "kept" / "checkpoint.json").write_text(text)
        with pytest.raises(ParameterError, match="not a usable checkpoint"):
            small("default", episodes=1, checkpoint=folder)(*go)
        assert (tmp_path / "kept" / "checkpoint.json").read_text() == text


def test_stops_in_the_middle_of_an_episode_and_keeps_the_best() -> None:
    flag = Flag()

    class Interrupting:
        def __init__(self) -> None:
            self.best = np.inf

        def evaluate(self, assignments: np.ndarray) -> Evaluation:
            seconds = evaluate(PROBLEM, assignments)
            self.best = min(self.best, seconds.min())
            if len(assignments) == 20:
                flag.set()
            return Evaluation.of(seconds)

    objective = Interrupting()
    result = small("default")(PROBLEM, objective, flag, np.random.default_rng(0))
    assert result.seconds == objective.best
    assert result.evaluations == 22
    assert "stopped in episode 1" in result.detail


def test_shows_every_episode() -> None:
    seen: list[Progress] = []
    small("default", episodes=4)(
        PROBLEM,
        SimulatedObjective(PROBLEM),
        Watched(Never(), seen.append),
        np.random.default_rng(0),
    )
    assert {p.figures["episode"] for p in seen if p.figures} == {1, 2, 3, 4}
    last = seen[-1]
    assert {"mean_s", "entropy", "groups", "failed"} <= last.figures.keys()
    assert last.evaluations == 82


def test_ends_early_where_nothing_improves() -> None:
    result = small("default", lr=0.0, guided=0.0, patience=5, episodes=500)(
        PROBLEM, SimulatedObjective(PROBLEM), MaxEvaluations(10**6), np.random.default_rng(0)
    )
    assert "no better placement or mean in 5 episodes" in result.detail
    assert result.evaluations < 20 * 500


@pytest.mark.parametrize(
    "spec",
    [
        "samples=0",
        "dropout=1",
        "gamma=2",
        "lr=-1",
        "clip=0",
        "variant=new",
        "without=x",
        "guided=2",
    ],
)
def test_bad_parameters_are_refused(spec: str) -> None:
    with pytest.raises(InputError):
        get_placer(f"hsdag{{{spec}}}")
