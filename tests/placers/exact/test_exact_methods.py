"""MILP and CP-SAT against brute force; their contracts; what auto picks; why infeasible."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placers.brute_force import least
from situs.core import Dataflow, Never, Pipeline, Problem, Sequential
from situs.errors import Status
from situs.placers import Placer, get_placer
from situs.simulate import SimulatedObjective
from situs.testing.placer_suite import PlacerSuite
from situs.testing.problems import chain3, fork_join, memory_tight, tiny
from situs.testing.strategies import problems


def solve(spec: str, problem: Problem):
    return get_placer(spec)(problem, SimulatedObjective(problem), Never(), np.random.default_rng(0))


class TestMILP(PlacerSuite):
    def placer(self) -> Placer:
        return get_placer("milp{max_seconds=5}")


class TestCPSAT(PlacerSuite):
    def placer(self) -> Placer:
        return get_placer("cp-sat{max_seconds=5}")


class TestAuto(PlacerSuite):
    def placer(self) -> Placer:
        return get_placer("auto")


ADDITIVE = problems(
    max_ops=6,
    devices=st.integers(1, 3),
    model=st.sampled_from([Sequential(), Pipeline("link"), Pipeline("staged")]),
    colocation=True,
)


@given(problem=ADDITIVE)
@settings(max_examples=40, deadline=None)
def test_milp_equals_brute_force(problem: Problem) -> None:
    best = least(problem)
    result = solve("milp{max_seconds=20}", problem)
    if np.isinf(best):
        assert result.placement is None
        return
    assert result.seconds == pytest.approx(best, rel=1e-6, abs=1e-9)
    assert result.bound_s <= best * (1 + 1e-6) + 1e-9


@given(problem=ADDITIVE, share=st.floats(0.2, 1.0), pin=st.integers(0, 5), drop=st.integers(0, 5))
@settings(max_examples=30, deadline=None)
def test_milp_bound_holds_with_memory_pins_and_bans(
    problem: Problem, share: float, pin: int, drop: int
) -> None:
    n, d = problem.num_ops, problem.num_devices
    total = float(problem.graph.constant_bytes.sum() + problem.graph.tensor_bytes.sum())
    forbidden = np.zeros((n, d), dtype=np.bool_)
    if d > 1:
        forbidden[drop % n, d - 1] = True
    pinned = np.full(n, -1, dtype=np.int32)
    pinned[pin % n] = 0
    limits = dataclasses.replace(
        problem.limits,
        memory_bytes=np.full(d, total * share + 1),
        forbidden=forbidden,
        pinned=pinned,
    )
    limited = dataclasses.replace(problem, limits=limits)
    best = least(limited)
    result = solve("milp{max_seconds=20}", limited)
    assert result.bound_s <= best * (1 + 1e-6) + 1e-9
    if result.placement is not None:
        assert best <= result.seconds * (1 + 1e-9)
    if result.status is Status.OPTIMAL:
        assert result.seconds == pytest.approx(best, rel=1e-6, abs=1e-9)


@given(problem=problems(max_ops=5, devices=2, model=Dataflow(links="unlimited"), colocation=True))
@settings(max_examples=20, deadline=None)
def test_cpsat_bound_is_below_brute_force_and_value_is_close(problem: Problem) -> None:
    best = least(problem)
    result = solve("cp-sat{max_seconds=10}", problem)
    assert result.bound_s <= best * (1 + 1e-6) + 1e-9
    assert best <= result.seconds * (1 + 1e-9)


def test_known_optima() -> None:
    assert solve("milp", chain3()).seconds == 5.0
    assert solve("milp", memory_tight()).seconds == 4.0
    result = solve("cp-sat", fork_join())
    assert result.seconds == 6.5
    assert result.status is Status.OPTIMAL


@pytest.mark.parametrize(
    ("problem", "picked"),
    [(chain3(), "mincut"), (fork_join(), "cp-sat"), (memory_tight(), "milp")],
)
def test_auto_says_what_and_why(problem: Problem, picked: str) -> None:
    result = solve("auto", problem)
    assert result.detail.startswith(f"picked {picked} (")
    assert result.placer == "auto"


def test_infeasible_says_which_device_and_how_much() -> None:
    problem = tiny(
        {"a": [], "b": ["a"]},
        {"a": (1, 2), "b": (1, 2)},
        constants={"a": 60, "b": 60},
        memory_bytes=(50, 30),
    )
    for spec in ("milp", "search{patience=5}", "auto"):
        result = solve(spec, problem)
        assert result.placement is None
        assert result.status is Status.INFEASIBLE
        assert "short of 40 B" in result.detail
