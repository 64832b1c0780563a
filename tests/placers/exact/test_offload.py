"""Calls of accelerators: the optimum by brute force, limits, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placers.brute_force import least
from situs.core import Limits, Never, Offload, Problem, Sequential, violation
from situs.errors import ParameterError
from situs.placers import get_placer
from situs.simulate import SimulatedObjective
from situs.testing.problems import chain3
from situs.testing.strategies import problems


def equal_accelerators(problem: Problem, memory_bytes: float) -> Problem:
    """The offload problem whose accelerators are all like device 1."""
    costs, d = problem.costs, problem.num_devices
    like = np.minimum(np.arange(d), 1)
    links = [
        table[np.ix_(like, like)].copy() for table in (costs.link_latency_s, costs.link_s_per_byte)
    ]
    for table in links:
        table[1:, 1:] = (table[1, 0] + table[0, 1]) * (1 - np.eye(d - 1))
    same = replace(
        costs,
        seconds=costs.seconds[:, like],
        link_latency_s=links[0],
        link_s_per_byte=links[1],
        boundary_s=np.zeros(d),
    )
    memory = np.full(d, memory_bytes)
    memory[0] = np.inf
    return replace(problem, costs=same, model=Offload(1), limits=Limits(memory))


@given(
    problem=problems(max_ops=6, devices=st.integers(2, 3), model=Sequential(), colocation=True),
    memory_bytes=st.sampled_from([np.inf, 1500.0]),
)
@settings(max_examples=150, deadline=None)
def test_bound_and_value_hold_the_optimum(problem: Problem, memory_bytes: float) -> None:
    offload = equal_accelerators(problem, memory_bytes)
    placer = get_placer("offload{max_seconds=5}")
    assert placer.supports(offload) is None
    result = placer(offload, SimulatedObjective(offload), Never(), np.random.default_rng(0))
    best = least(offload)
    assert result.placement is not None
    assert violation(offload, result.placement.assignment) is None
    assert result.bound_s <= best * (1 + 1e-6) + 1e-9
    assert best <= result.seconds * (1 + 1e-9)
    if result.status.value == "optimal":
        assert result.seconds == pytest.approx(best, rel=1e-6, abs=1e-9)


def test_other_problems_are_refused() -> None:
    placer = get_placer("offload")
    assert "offload model" in str(placer.supports(chain3()))


@pytest.mark.parametrize("spec", ["max_seconds=0", "max_ideals=1"])
def test_bad_parameters(spec: str) -> None:
    with pytest.raises(ParameterError, match="must be"):
        get_placer(f"offload{{{spec}}}")
