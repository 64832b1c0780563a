from dataclasses import replace
from pathlib import Path

import numpy as np

import situs
from situs.api import measure_problem
from situs.core import Never
from situs.core.placement_file import write_placement
from situs.errors import Status
from situs.executors.openvino_parallel import ParallelModel
from situs.executors.runtime import core
from situs.placers import get_placer
from situs.simulate import SimulatedObjective


def test_the_readme_example(squeezenet: Path, tmp_path: Path) -> None:
    model = situs.load(squeezenet)
    result = situs.place(model, ["CPU"], virtual=["CPU_B:threads=1"], placers=["greedy", "mincut"])
    situs.save(result, tmp_path / "p.json")
    compiled = situs.compile(model, situs.load_placement(tmp_path / "p.json", model))
    image = np.random.default_rng(0).standard_normal((1, 3, 224, 224)).astype(np.float32)
    outputs = compiled([image])
    assert np.isfinite(next(iter(outputs.values()))).all()
    assert result.status is Status.OK
    text = str(result)
    for word in ("status", "latency", "best single", "ops", "bytes moved", "placer", "seed"):
        assert word in text


def test_a_device_that_cannot_run_the_model_does_not_end_the_search(squeezenet: Path) -> None:
    result = situs.place(squeezenet, ["CPU"], virtual=["CPU_C:nonsense=1"], placers=["greedy"])
    assert result.status is Status.OK
    failed = [t for t in result.trials if not t.ok]
    assert any("NONSENSE" in t.measurement.detail for t in failed)
    assert result.placement is not None
    assert result.placement.uniform_device == "CPU"


def test_both_engines_compete_and_the_file_remembers_which_won(
    squeezenet: Path, tmp_path: Path
) -> None:
    model = situs.load(squeezenet)
    result = situs.place(
        model,
        ["CPU:threads=1"],
        virtual=["CPU_B:threads=1"],
        placers=["greedy", "heft"],
        executor="auto",
    )
    engines = {t.candidate.executor for t in result.trials}
    assert engines == {"hetero", "parallel"}
    assert all(t.ok for t in result.trials), [t.measurement.detail for t in result.trials]
    split = next(
        t
        for t in result.trials
        if t.candidate.executor == "parallel" and t.candidate.placement.uniform_device is None
    )
    file = replace(
        result.file(), placement=split.candidate.placement, record={"executor": "parallel"}
    )
    write_placement(tmp_path / "p.json", file, model.graph)
    compiled = situs.compile(model, situs.load_placement(tmp_path / "p.json", model))
    assert isinstance(compiled, ParallelModel)
    image = np.random.default_rng(0).standard_normal((1, 3, 224, 224)).astype(np.float32)
    assert np.isfinite(compiled([image])[0]).all()


def test_openvino_auto_is_what_hetero_does_by_itself(squeezenet: Path) -> None:
    model = situs.load(squeezenet)
    cluster = situs.devices(["CPU"], ["CPU_B:threads=1"])
    problem = measure_problem(model, cluster)
    result = get_placer("openvino-auto")(
        problem, SimulatedObjective(problem), Never(), np.random.default_rng(0)
    )
    assert result.placement is not None
    by_itself = core().query_model(model.model, f"HETERO:{','.join(cluster.names)}")
    for op, name in enumerate(model.graph.op_names):
        assert cluster.names[result.placement.assignment[op]] == by_itself[name]
