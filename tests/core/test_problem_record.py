import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situs.core import Limits, Problem
from situs.core.problem_record import problem_from_record, problem_to_record
from situs.errors import PlacementError, SitusError
from situs.simulate import evaluate
from situs.testing.problems import chain3
from situs.testing.strategies import assignments, execution_models, problems


@given(
    problems(
        model=execution_models(), colocation=True, streams=True, memory=True, devices=st.just(3)
    ),
    st.data(),
)
@settings(max_examples=60, deadline=None)
def test_a_problem_read_back_means_the_same(problem: Problem, data: st.DataObject) -> None:
    text = json.dumps(problem_to_record(problem), allow_nan=False)
    again = problem_from_record(json.loads(text), problem.graph, problem.cluster.devices)
    assert again.model == problem.model
    assert again.costs.notes == problem.costs.notes
    assert np.array_equal(again.units, problem.units)
    assert np.array_equal(again.allowed, problem.allowed)
    rows = data.draw(assignments(problem))[np.newaxis]
    np.testing.assert_allclose(evaluate(again, rows), evaluate(problem, rows), rtol=1e-5)


def test_limits_are_kept() -> None:
    problem = chain3()
    limits = Limits(
        memory_bytes=np.array([1e9, np.inf]),
        pinned=np.array([-1, 1, -1], dtype=np.int32),
        forbidden=np.array([[False, True], [False, False], [False, False]]),
        max_subgraphs=3,
        together=np.array([-1, 0, 0], dtype=np.int32),
    )
    problem = replace(problem, limits=limits)
    record = json.loads(json.dumps(problem_to_record(problem), allow_nan=False))
    again = problem_from_record(record, problem.graph, problem.cluster.devices).limits
    for name in ("memory_bytes", "pinned", "forbidden", "together"):
        assert np.array_equal(getattr(again, name), getattr(limits, name))
    assert again.max_subgraphs == 3


@pytest.mark.parametrize(
    "change",
    [
        {"seconds": [[1, 2]]},
        {"seconds": "x"},
        {"execution_model": "magic"},
        {"execution_parameters": {"speed": 3}},
        {"streams": [1]},
        {"boundary_s": [1, 2, 3]},
        {"pinned": [9, 9, 9]},
        {"notes": 3},
        None,
    ],
)
def test_damaged_costs_are_one_clear_line(change: dict | None) -> None:
    problem = chain3()
    record = None if change is None else problem_to_record(problem) | change
    with pytest.raises(SitusError) as caught:
        problem_from_record(record, problem.graph, problem.cluster.devices)
    assert "\n" not in str(caught.value)


def test_a_missing_key_is_named() -> None:
    problem = chain3()
    record = problem_to_record(problem)
    del record["boundary_s"]
    with pytest.raises(PlacementError, match="boundary_s"):
        problem_from_record(record, problem.graph, problem.cluster.devices)
