from pathlib import Path

import numpy as np
import pytest

from situs import api
from situs.core import Problem
from situs.errors import ParameterError, Status
from situs.executors.openvino_hetero import HeteroExecutor
from situs.profiling.inputs import random_inputs
from situs.profiling.objective import MeasuredObjective, RecordedObjective
from situs.testing.models import two_towers


@pytest.fixture(scope="module")
def setting():  # type: ignore[no-untyped-def]
    imported = api.load(two_towers())
    cluster = api.devices(["CPU:threads=1"], ["CPU_B:threads=1"])
    problem = api.measure_problem(imported, cluster)
    inputs = random_inputs(imported.model, np.random.default_rng(0))
    return problem, MeasuredObjective(HeteroExecutor(cluster), imported, problem, inputs)


def rows(problem: Problem) -> np.ndarray:
    device = np.zeros(problem.num_units, dtype=np.int32)
    halves = device.copy()
    halves[len(halves) // 2 :] = 1
    return np.stack([device, device + 1, halves])[:, problem.units]


def test_measures_what_runs_and_refuses_what_may_not(setting) -> None:  # type: ignore[no-untyped-def]
    problem, measured = setting
    values = measured.evaluate(rows(problem))
    assert values.statuses == (Status.OK,) * 3
    assert (values.seconds > 0).all()
    limited = MeasuredObjective(
        measured._executor, measured._imported, problem, measured._inputs, stop=lambda: True
    )
    assert limited.evaluate(rows(problem)).statuses == (Status.INTERRUPTED,) * 3


def test_every_placement_is_measured_once_and_kept(setting, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    problem, measured = setting
    path = tmp_path / "kept" / "m.jsonl"
    seen: list[int] = []
    first = RecordedObjective(measured, problem, path, seen.append)
    values = first.evaluate(rows(problem)).seconds
    assert np.array_equal(first.evaluate(rows(problem)).seconds, values)
    assert seen == [1, 2, 3]
    again = RecordedObjective(measured, problem, path, seen.append)
    assert np.array_equal(again.evaluate(rows(problem)).seconds, values)
    assert again.count == 3
    assert seen == [1, 2, 3]


@pytest.mark.parametrize("cut", [1, 10, 40])
def test_a_line_that_a_kill_cut_short_is_measured_again(setting, tmp_path: Path, cut: int) -> None:  # type: ignore[no-untyped-def]
    problem, measured = setting
    path = tmp_path / "m.jsonl"
    values = RecordedObjective(measured, problem, path).evaluate(rows(problem)).seconds
    path.write_bytes(path.read_bytes()[:-cut])
    again = RecordedObjective(measured, problem, path)
    assert again.count == 2
    after = again.evaluate(rows(problem)).seconds
    assert np.array_equal(after[:2], values[:2])
    assert RecordedObjective(measured, problem, path).count == 3


@pytest.mark.parametrize(
    "text",
    [
        "{}\n",
        "no json\n",
        "[1]\n",
        '{"measurements": 1}\n',
        '{"measurements": 1, "of": "other"}\n',
        "\n",
    ],
)
def test_a_foreign_file_is_refused_and_left_alone(setting, tmp_path: Path, text: str) -> None:  # type: ignore[no-untyped-def]
    problem, measured = setting
    path = tmp_path / "m.jsonl"
    path.write_text(text)
    with pytest.raises(ParameterError, match="another folder"):
        RecordedObjective(measured, problem, path)
    assert path.read_text() == text
