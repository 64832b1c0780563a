"""Segments: against every split of one order, and the contract of placers."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situs.core import Never, Pipeline, Problem, Sequential
from situs.placers import Placer, get_placer
from situs.simulate import SimulatedObjective, evaluate
from situs.testing.placer_suite import PlacerSuite
from situs.testing.problems import tiny


class TestSegments(PlacerSuite):
    def placer(self) -> Placer:
        return get_placer("segments")


def solve(problem: Problem) -> float:
    return get_placer("segments")(
        problem, SimulatedObjective(problem), Never(), np.random.default_rng(0)
    ).seconds


@given(data=st.data(), model=st.sampled_from([Sequential(), Pipeline()]))
@settings(max_examples=60, deadline=None)
def test_equals_every_split_of_a_chain(data: st.DataObject, model: Sequential | Pipeline) -> None:
    names = "abcdef"[: data.draw(st.integers(2, 6))]
    weight = st.integers(1, 9)
    times = {n: tuple(data.draw(weight) for _ in range(3)) for n in names}
    held = {n: 10 * data.draw(weight) for n in names}
    memory = tuple(data.draw(st.integers(40, 250)) for _ in range(3))
    edges: dict[str, list[str]] = {n: [names[i - 1]] if i else [] for i, n in enumerate(names)}
    problem = tiny(edges, times, 0.5, constants=held, memory_bytes=memory, model=model)
    splits = [
        a
        for choice in itertools.product(range(3), repeat=len(names))
        if len([d for d, _ in itertools.groupby(choice)]) == len(set(choice))
        for a in [np.array(choice, dtype=np.int32)]
    ]
    best = evaluate(problem, np.stack(splits)).min()
    # Tensors take memory, too, which the segments do not count; they never break a limit.
    found = solve(problem)
    assert found >= best * (1 - 1e-9)
    roomy = tiny(edges, times, 0.5, constants=held, model=model)
    assert solve(roomy) == pytest.approx(evaluate(roomy, np.stack(splits)).min(), rel=1e-9)
