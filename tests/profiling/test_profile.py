from pathlib import Path

import numpy as np
import pytest

from situs import api
from situs.core import Placement
from situs.core.problem import Problem
from situs.errors import Status
from situs.importers import load_model
from situs.profiling.attribute import attribute
from situs.profiling.inputs import random_inputs
from situs.profiling.links import _fit
from situs.profiling.profile import profile
from situs.simulate import evaluate
from situs.testing.problems import diamond4


@pytest.fixture(scope="module")
def problem(squeezenet: Path) -> Problem:
    cluster = api.devices(["CPU"], ["CPU_B:threads=1"])
    return api.measure_problem(api.load(squeezenet), cluster)


def test_uniform_predictions_are_the_measured_latencies(problem: Problem) -> None:
    notes = dict(problem.costs.notes)
    for d, assignment in problem.uniform():
        measured_s = float(notes[f"{problem.cluster.names[d]}.latency_s"])
        assert evaluate(problem, assignment[None])[0] == pytest.approx(measured_s, rel=1e-6)
    assert len(problem.uniform()) == 2


def test_convolutions_cost_most_and_fused_ops_stay_together(problem: Problem) -> None:
    types = np.array(problem.graph.op_types)
    seconds = problem.costs.seconds
    for d in range(problem.num_devices):
        assert seconds[types == "Convolution", d].sum() > 0.5 * seconds[:, d].sum()
    assert problem.num_units < problem.graph.num_ops / 2
    graph = problem.graph
    fused = 0
    for tensor, reader in zip(graph.edge_tensor, graph.consumer_ops, strict=True):
        producer = graph.tensor_producer[tensor]
        if types[producer] == "Add" and types[reader] == "Relu":
            fused += problem.units[producer] == problem.units[reader]
    assert fused >= 20


def test_profile_says_what_it_ran_with(problem: Problem) -> None:
    notes = dict(problem.costs.notes)
    assert notes["CPU_B.INFERENCE_NUM_THREADS"] == "1"
    assert float(notes["CPU.coverage"]) > 0.5
    assert problem.costs.source == "measured"


def test_a_device_that_cannot_run_the_model_is_marked(squeezenet: Path) -> None:
    model = load_model(squeezenet)
    cluster = api.devices(["CPU:nonsense=1"])
    whole = np.zeros(model.graph.num_ops, dtype=np.int32)
    placement = Placement(model.graph.fingerprint, cluster.names, whole)
    inputs = random_inputs(model.model, np.random.default_rng(0))
    result = profile(model, cluster.devices[0], placement, inputs)
    assert result.status is Status.COMPILE_FAILED
    assert "NONSENSE" in result.detail
    assert np.isnan(result.seconds).all()


def test_fused_time_is_shared_by_flop_and_stray_time_is_spread() -> None:
    from dataclasses import replace

    graph = replace(
        diamond4().graph,
        op_flop=np.array([0.0, 30.0, 10.0, 5.0]),
        is_input=np.zeros(4, dtype=bool),
        is_output=np.zeros(4, dtype=bool),
    )
    op_of = np.array([0, 1, 1, 2], dtype=np.int32)
    number = {"p": 0, "fused": 1, "reorder": 1, "q": 2, "stray": 3}
    runtime_s = {"p": 1.0, "fused": 3.0, "reorder": 1.0, "q": 5.0, "stray": 10.0}
    seconds = attribute(graph, op_of, number, runtime_s)
    assert seconds == pytest.approx([2.0, 6.0, 2.0, 10.0])


def test_link_fit_finds_latency_and_bandwidth() -> None:
    sizes = np.array([1e3, 1e5, 1e6])
    latency_s, s_per_byte = _fit(sizes, 2e-5 + sizes * 1e-10)
    assert latency_s == pytest.approx(2e-5, rel=1e-3)
    assert s_per_byte == pytest.approx(1e-10, rel=1e-3)
    assert _fit(sizes, np.array([-1e-6, -1e-6, -1e-6])) == (0.0, 0.0)
