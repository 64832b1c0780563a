"""Placeto, the RNN policy, DOPPLER and GDP: each learns, continues, and keeps to its terms."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from placers.learned.networks import layered
from situs.core import Dataflow, MaxEvaluations, Never
from situs.errors import ParameterError
from situs.placers import Placer, get_placer
from situs.placers.learned.doppler import Doppler, Dual, DualPolicy, _Schedule
from situs.placers.learned.node_costs import node_costs, topological_rank
from situs.placers.learned.nodes import coarsen
from situs.placers.learned.policy_gradient import Gradient
from situs.simulate import SimulatedObjective, evaluate
from situs.testing.placer_suite import PlacerSuite
from situs.testing.problems import tiny

PROBLEM = layered(6)
NAMES = ("placeto", "rnn", "doppler", "gdp")
# What makes them quick; doppler without imitation knows nothing but what it was told.
QUICK = {
    "placeto": "hidden=16",
    "rnn": "hidden=16,groups=6",
    "doppler": "hidden=16,imitation=0",
    "gdp": "hidden=16",
}
RIVALS = pytest.mark.parametrize("name", NAMES)


class TestPlaceto(PlacerSuite):
    def placer(self) -> Placer:
        return get_placer("placeto{hidden=16,episodes=3}")


class TestRNN(PlacerSuite):
    def placer(self) -> Placer:
        return get_placer("rnn{hidden=16,episodes=3,groups=4}")


class TestDoppler(PlacerSuite):
    def placer(self) -> Placer:
        return get_placer("doppler{hidden=16,episodes=3,imitation=2}")


class TestGDP(PlacerSuite):
    def placer(self) -> Placer:
        return get_placer("gdp{hidden=16,episodes=3}")


def means(spec: str, episodes: int, seed: int) -> list[float]:
    placer = get_placer(spec)
    assert isinstance(placer, Gradient)
    learner = placer.learner(PROBLEM, seed)
    return [learner.tell(evaluate(PROBLEM, learner.ask(20))).mean_s for _ in range(episodes)]


@RIVALS
def test_learns_and_without_a_learning_rate_does_not(name: str) -> None:
    optimum = get_placer("mincut")(
        PROBLEM, SimulatedObjective(PROBLEM), Never(), np.random.default_rng(0)
    ).seconds
    learned = [means(f"{name}{{lr=0.01,{QUICK[name]}}}", 30, seed) for seed in range(2)]
    control = [means(f"{name}{{lr=0,{QUICK[name]}}}", 30, seed) for seed in range(2)]
    end = np.mean([np.mean(run[-5:]) for run in learned])
    flat = np.mean([np.mean(run[-5:]) for run in control])
    assert flat - end >= 0.1 * (flat - optimum)


@RIVALS
def test_continues_bit_for_bit_from_a_checkpoint(name: str, tmp_path: Path) -> None:
    def run(episodes: int, folder: str):  # type: ignore[no-untyped-def]
        spec = f"{name}{{{QUICK[name]},episodes={episodes},checkpoint={tmp_path / folder}}}"
        return get_placer(spec)(
            PROBLEM, SimulatedObjective(PROBLEM), Never(), np.random.default_rng(5)
        )

    whole = run(7, "whole")
    run(3, "parts")
    parts = run(7, "parts")
    assert parts.placement == whole.placement
    assert [(i.evaluations, i.seconds) for i in parts.trace] == [
        (i.evaluations, i.seconds) for i in whole.trace
    ]
    one, other = (tmp_path / f / "episode-7.safetensors" for f in ("whole", "parts"))
    assert one.read_bytes() == other.read_bytes()


@RIVALS
def test_a_failure_is_no_reward(name: str) -> None:
    def after(value: float) -> dict[str, np.ndarray]:
        learner = get_placer(f"{name}{{{QUICK[name]}}}").learner(PROBLEM, 0)  # type: ignore[attr-defined]
        for _ in range(4):
            seconds = evaluate(PROBLEM, learner.ask(20)).copy()
            seconds[::3] = value
            assert learner.tell(seconds).failed == 7
        return learner.arrays()

    failed, infeasible = after(np.nan), after(np.inf)
    for key, value in failed.items():
        if key.startswith("network."):
            assert np.isfinite(value).all()
            assert np.array_equal(infeasible[key], value)


@RIVALS
def test_the_dice_decide_and_nothing_else(name: str) -> None:
    state = torch.random.get_rng_state()
    assert means(f"{name}{{{QUICK[name]}}}", 3, 1) == means(f"{name}{{{QUICK[name]}}}", 3, 1)
    assert means(f"{name}{{{QUICK[name]}}}", 3, 1) != means(f"{name}{{{QUICK[name]}}}", 3, 2)
    assert torch.equal(state, torch.random.get_rng_state())


def test_placeto_changes_one_node_a_step_in_topological_order() -> None:
    nodes = coarsen(PROBLEM)
    rank = topological_rank(nodes)
    # Half of the nodes change in a visit; those that keep their device take no placement.
    spec = f"placeto{{hidden=16,changes={nodes.num_nodes / 2}}}"
    asked = get_placer(spec).learner(PROBLEM, 0).ask(4 * nodes.num_nodes)  # type: ignore[attr-defined]
    first_op = [int(np.flatnonzero(nodes.node == v)[0]) for v in range(nodes.num_nodes)]
    of_nodes = asked[:, first_op]
    steps, visits, last = 0, 1, -1
    for before, after in pairwise(of_nodes):
        changed = np.flatnonzero(after != before)
        if len(changed) == 1 and rank[changed[0]] > last:
            steps, last = steps + 1, rank[changed[0]]
        else:
            # Another visit, from a random placement as no value is known yet.
            visits, last = visits + 1, -1
    assert steps >= 2 * nodes.num_nodes
    assert 2 <= visits <= 12


def test_placeto_visits_again_from_the_best_placement() -> None:
    learner = get_placer("placeto{hidden=16}").learner(PROBLEM, 0)  # type: ignore[attr-defined]
    uniform = np.stack([assignment for _, assignment in PROBLEM.uniform()])
    seconds = evaluate(PROBLEM, uniform)
    learner.begin(uniform, seconds)
    nodes = coarsen(PROBLEM)
    first = learner.ask(1)[0]
    changed = np.unique(nodes.node[first != uniform[np.argmin(seconds)]])
    assert len(changed) == 1


def test_costs_of_nodes_are_those_of_their_ops() -> None:
    nodes = coarsen(PROBLEM)
    costs = node_costs(PROBLEM, nodes)
    assert costs.seconds.sum(axis=0) == pytest.approx(PROBLEM.costs.seconds.sum(axis=0))
    assert (topological_rank(nodes)[nodes.source] < topological_rank(nodes)[nodes.target]).all()
    mean = costs.seconds.mean(axis=1)
    assert (costs.top_s[nodes.target] >= (costs.top_s + mean)[nodes.source] - 1e-12).all()
    assert (
        costs.bottom_s[nodes.source] >= (mean[nodes.source] + costs.bottom_s[nodes.target]) - 1e-12
    ).all()


def test_dopplers_teacher_is_the_critical_path_heuristic() -> None:
    # Two independent chains, two alike devices: the longer chain first, then the other device.
    problem = replace(
        tiny(
            {"a": [], "b": ["a"], "c": []},
            {"a": (2.0, 2.0), "b": (2.0, 2.0), "c": (3.0, 3.0)},
            1.0,
        ),
        model=Dataflow(),
    )
    schedule = _Schedule(problem)
    torch.manual_seed(0)
    dual = Dual(schedule, DualPolicy(schedule.features.shape[1], 8))
    with torch.no_grad():
        shown = dual.teach(3, torch.Generator().manual_seed(0))
    names = problem.graph.op_names
    for row in shown.assignments:
        placed = dict(zip(names, row.tolist(), strict=True))
        assert placed["a"] == placed["b"] != placed["c"]


def test_dopplers_imitation_raises_the_likelihood_of_what_the_teacher_shows() -> None:
    problem = replace(PROBLEM, model=Dataflow())

    def likelihood(imitation: int) -> float:
        learner = Doppler(hidden=16, imitation=imitation).learner(problem, 0)
        sampler = learner._sampler  # type: ignore[attr-defined]
        with torch.no_grad():
            shown = sampler.teach(4, torch.Generator().manual_seed(9))
            return float(sampler.log_probs(shown.choices)[0].mean())

    assert likelihood(40) > likelihood(0) + 0.1


def test_gdp_takes_weights_to_another_graph(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    trained = get_placer("gdp{hidden=16}").trainee(2, 3)  # type: ignore[attr-defined]
    path = tmp_path / "gdp.safetensors"
    save_file(trained.network.state_dict(), path)
    for problem in (PROBLEM, layered(9)):
        learner = get_placer(f"gdp{{hidden=16,weights={path}}}").learner(problem, 0)  # type: ignore[attr-defined]
        for key, value in trained.network.state_dict().items():
            assert np.array_equal(learner.arrays()[f"network.{key}"], value.numpy())
    with pytest.raises(ParameterError, match="not weights of this network"):
        get_placer(f"gdp{{hidden=32,weights={path}}}").learner(PROBLEM, 0)  # type: ignore[attr-defined]
    path.write_bytes(b"no weights")
    with pytest.raises(ParameterError, match="not weights of this network"):
        get_placer(f"gdp{{hidden=16,weights={path}}}").learner(PROBLEM, 0)  # type: ignore[attr-defined]


@RIVALS
def test_limits_are_kept(name: str) -> None:
    result = get_placer(f"{name}{{{QUICK[name]},episodes=3}}")(
        PROBLEM, SimulatedObjective(PROBLEM), MaxEvaluations(30), np.random.default_rng(0)
    )
    assert result.evaluations <= 42
    assert result.placement is not None
