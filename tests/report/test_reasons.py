from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situs.core import Limits, Problem
from situs.report.reasons import alone_moves, cost_weights, reasons, unit_moves
from situs.simulate import evaluate
from situs.testing.problems import chain3, memory_tight, tiny
from situs.testing.strategies import assignments, execution_models, problems

BEST = np.array([0, 1, 0], dtype=np.int32)


def test_chain3_by_hand() -> None:
    # D0 D1 D0 takes 5; moving a: 4 + 1 + transfer 1 + 1 = 7; b: 6; c: 1 + 1 + 1 + 4 = 7.
    problem = chain3()
    found = reasons(problem, BEST)
    assert [r.code for r in found] == ["cheaper"] * 3
    assert [r.device for r in found] == [1, 0, 1]
    assert [r.delta_s for r in found] == pytest.approx([2.0, 1.0, 2.0])
    assert found[1].text(("D0", "D1")) == "cheaper here; moving to D0: +1e+03 ms (predicted)"
    assert cost_weights(problem, BEST) == pytest.approx([1 / 3] * 3)


def test_codes_of_limits() -> None:
    problem = chain3()
    pinned = replace(problem, limits=Limits(pinned=np.array([-1, 1, -1], dtype=np.int32)))
    assert reasons(pinned, BEST)[1].code == "pinned"
    assert np.isinf(reasons(pinned, BEST)[1].delta_s)
    fused = replace(problem, limits=Limits(together=np.array([0, 0, -1], dtype=np.int32)))
    codes = reasons(fused, np.array([0, 0, 0], dtype=np.int32))
    # b and a both cost 4 at most: the later one speaks for the unit.
    assert (codes[0].code, codes[0].other) == ("fused", "b")
    graph = replace(problem.graph, colocation=np.array([0, 0, -1], dtype=np.int32))
    together = reasons(replace(problem, graph=graph), np.array([0, 0, 0], dtype=np.int32))
    assert (together[0].code, together[0].other) == ("co-located", "b")


def test_forced_memory_kept_and_indifferent() -> None:
    only = tiny({"a": [], "b": ["a"]}, {"a": (1, np.inf), "b": (1, 1)}, 0.0)
    found = reasons(only, np.zeros(2, dtype=np.int32))
    assert [r.code for r in found] == ["forced", "indifferent"]
    tight = reasons(memory_tight(), np.array([0, 1], dtype=np.int32))
    assert tight[1].code == "memory"
    kept = reasons(chain3(), np.zeros(3, dtype=np.int32))
    assert (kept[1].code, kept[1].delta_s) == ("kept", -1.0)


def test_one_device_has_nowhere_to_go() -> None:
    problem = tiny({"a": []}, {"a": (1,)})
    assert reasons(problem, np.zeros(1, dtype=np.int32))[0].code == "forced"


@given(problems(model=execution_models(), colocation=True, memory=True), st.data())
@settings(max_examples=50, deadline=None)
def test_moves_are_what_evaluate_says(problem: Problem, data: st.DataObject) -> None:
    assignment = data.draw(assignments(problem))
    base = evaluate(problem, assignment[np.newaxis])[0]
    moves = unit_moves(problem, assignment)
    if not np.isfinite(base):
        assert np.isnan(moves).all()
        return
    for unit in range(problem.num_units):
        for device in range(problem.num_devices):
            moved = np.where(problem.units == unit, device, assignment).astype(np.int32)
            if not problem.unit_allowed[unit, device]:
                assert np.isinf(moves[unit, device])
                continue
            value = evaluate(problem, moved[np.newaxis])[0]
            if np.isinf(value):
                assert np.isinf(moves[unit, device])
            else:
                assert moves[unit, device] == pytest.approx(value - base, abs=1e-6 * (1 + base))
    assert len(reasons(problem, assignment)) == problem.num_ops


def test_an_op_alone_may_leave_its_unit_on_paper() -> None:
    problem = chain3()
    fused = replace(problem, limits=Limits(together=np.array([0, 0, 0], dtype=np.int32)))
    assert alone_moves(fused, np.zeros(3, dtype=np.int32), 1) == pytest.approx([0.0, -1.0])
