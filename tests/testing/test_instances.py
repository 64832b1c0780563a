from pathlib import Path

import numpy as np
import pytest

from situs.core import Dataflow, Offload, Pipeline, Problem
from situs.errors import ProblemError
from situs.simulate import bound, evaluate, memory_shortfall
from situs.testing.instances import load_instance

FOLDER = next(
    (
        p / "shared" / "placement-benchmarks"
        for p in Path(__file__).resolve().parents
        if (p / "shared" / "placement-benchmarks").is_dir()
    ),
    None,
)
needs_data = pytest.mark.skipif(
    FOLDER is None, reason="no ../shared/placement-benchmarks beside the checkout"
)

# One accelerator alone, as the sources' programs print it; None = over its memory.
ONE_ACCELERATOR = {
    "bert24_inference-layers": (92.41, True),
    "bert24_training-layers": (217.81, True),
    "gnmt_inference-layers": (182.56, True),
    "gnmt_training-layers": (520.45, True),
    "inceptionv3_inference-layers": (310.97, True),
    "inceptionv3_training-layers": (710.74, False),
    "resnet50_inference-layers": (201.45, False),
    "resnet50_training-layers": (462.38, False),
    "bert_l-12_training-ops": (1891.7, False),
    "bert_l-12_inference-ops": (642.78, True),
    "bert_l-3_inference-ops": (49.35, True),
    "bert_l-3_training-ops": (122.99, True),
    "bert_l-6_inference-ops": (77.46, True),
    "bert_l-6_training-ops": (192.92, True),
    "resnet50_inference-ops": (325.13, True),
    "resnet50_training-ops": (684.89, True),
}
DOPPLER = {
    "4gpu_chain_mm_112nodes": (4800.28, 1500.11),
    "4gpu_ffnn_192nodes": (226.78, 70.87),
    "4gpu_transformer_block_215nodes": (388.68, 324.78),
    "4gpu_full_transformer_layer_261nodes": (388.98, 325.18),
    "8gpu_transformer_block": (777.22, 324.78),
    "8gpu_full_transformer": (777.86, 325.18),
}


def load(kind: str, name: str, **options: bool | int) -> Problem:
    assert FOLDER is not None
    return load_instance(FOLDER / kind / f"{name}.json", **options)  # type: ignore[arg-type]


def uniform(problem: Problem, device: int) -> np.ndarray:
    return np.full((1, problem.num_ops), device, dtype=np.int32)


@needs_data
@pytest.mark.parametrize("name", ONE_ACCELERATOR)
def test_one_accelerator_throughput(name: str) -> None:
    problem = load("msr-fiddle", f"{name}-throughput")
    assert isinstance(problem.model, Pipeline)
    assert problem.model.contiguous
    alone, fits = ONE_ACCELERATOR[name]
    loaded = problem.costs.seconds[:, 1].sum()
    digits = 1 if name == "bert_l-12_training-ops" else 2
    assert round(loaded, digits) == alone
    value = evaluate(problem, uniform(problem, 1))[0]
    if fits:
        assert value == pytest.approx(loaded, rel=1e-12)
    else:
        assert value == np.inf
        text = memory_shortfall(problem, uniform(problem, 1)[0])
        assert text is not None
        assert text.startswith("ACC0 is short of")
    assert bound(problem).seconds <= alone * 1.01
    assert evaluate(problem, uniform(problem, 0))[0] < np.inf


@needs_data
@pytest.mark.parametrize("name", DOPPLER)
def test_doppler_sums_and_paths(name: str) -> None:
    problem = load("doppler", name)
    assert problem.model == Dataflow("fifo", "unlimited", "edge")
    total, path = DOPPLER[name]
    assert round(evaluate(problem, uniform(problem, 0))[0], 2) == total
    # The source's critical path pays a transfer on every edge: every op on a device of its own.
    graph, costs = problem.graph, problem.costs
    tail = np.zeros(problem.num_ops)
    for i in range(problem.num_ops - 1, -1, -1):
        readers = graph.consumer_ops[graph.edge_producer == i]
        after = max((costs.transfer_size[i] + tail[j] for j in readers), default=0.0)
        tail[i] = costs.seconds[i, 0] + after
    assert round(tail.max(), 2) == pytest.approx(path, abs=0.011)


@needs_data
def test_every_latency_problem_loads() -> None:
    assert FOLDER is not None
    files = sorted((FOLDER / "msr-fiddle").glob("*-latency.json"))
    assert len(files) == 8
    for file in files:
        problem = load_instance(file)
        assert problem.model == Offload(1)
        # The host alone runs every op as soon as it can: its critical path.
        host = evaluate(problem, uniform(problem, 0))[0]
        end = np.zeros(problem.num_ops)
        graph = problem.graph
        for i in range(problem.num_ops):
            producers = graph.edge_producer[graph.consumer_ops == i]
            end[i] = problem.costs.seconds[i, 0] + max(end[producers], default=0.0)
        assert host == pytest.approx(end.max(), rel=1e-12)
        assert bound(problem).seconds <= host
        # The models are too large for one accelerator.
        assert evaluate(problem, uniform(problem, 1))[0] == np.inf
        assert load_instance(file, calls=2).num_devices == 2 * problem.num_devices - 1


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("{}")
    with pytest.raises(ProblemError, match="msr-fiddle or doppler"):
        load_instance(path)
