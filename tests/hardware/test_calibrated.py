import importlib.util
from pathlib import Path

import numpy as np
import pytest

from situs.core import Problem
from situs.costs import roofline
from situs.errors import ClusterError
from situs.graph import Graph
from situs.hardware import Cluster, Device, catalogue, cluster_from_toml, cluster_to_toml
from situs.simulate import evaluate
from situs.testing.problems import chain3

MODELS = Path(__file__).parents[2] / "benchmarks" / "models.py"


def _graph(name: str, folder: Path) -> Graph:
    spec = importlib.util.spec_from_file_location("paper_models", MODELS)
    assert spec is not None
    assert spec.loader is not None
    models = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(models)
    graph: Graph = models.paper_model(name, folder).graph
    return graph


# BERT-base takes 20 s to build: benchmarks/calibrate_paper.py prints it (6.38 and 2.68 ms, +-1 %).
@pytest.mark.parametrize(
    ("name", "cpu_ms", "gpu_ms"), [("inception-v3", 12.8, 12.0), ("resnet-50", 16.0, 7.81)]
)
def test_single_devices_are_as_the_paper_measured(
    name: str, cpu_ms: float, gpu_ms: float, tmp_path: Path
) -> None:
    graph, cluster = _graph(name, tmp_path), catalogue("paper-i9-flex170")
    problem = Problem(graph, cluster, roofline(graph, cluster))
    both = np.stack([np.full(graph.num_ops, d, dtype=np.int32) for d in range(2)])
    assert evaluate(problem, both) * 1e3 == pytest.approx([cpu_ms, gpu_ms], rel=0.065)


def test_the_machine_is_the_described_one_with_shares_in_range() -> None:
    fitted, described = catalogue("paper-i9-flex170"), catalogue("i9-flex170")
    assert fitted.names == ("CPU", "GPU.1")
    for device in fitted.devices:
        same = described.devices[described.index(device.name)]
        for key in ("peak_flop_per_s", "memory_bytes_per_s", "op_overhead_s", "memory_bytes"):
            assert getattr(device, key) == getattr(same, key)
        assert all(0.02 <= share <= 0.95 for _, share in device.type_efficiency)
        assert "arXiv 2405.14185" in device.source
    assert set(fitted.links) <= set(described.links)


def test_shares_by_type_replace_the_efficiency() -> None:
    graph = chain3().graph
    plain = Device("A", peak_flop_per_s=1e9, memory_bytes_per_s=1e9, efficiency=0.5)
    shares = (("*", 0.25), (graph.op_types[1], 0.5))
    fitted = Device("B", peak_flop_per_s=1e9, memory_bytes_per_s=1e9, type_efficiency=shares)
    peak = Device("C", peak_flop_per_s=1e9, memory_bytes_per_s=1e9)
    cluster = Cluster((plain, fitted, peak))
    seconds = roofline(graph, cluster).seconds
    share = np.where(np.array(graph.op_types) == graph.op_types[1], 0.5, 0.25)
    assert seconds[:, 1] == pytest.approx(seconds[:, 2] / share)
    assert cluster_from_toml(cluster_to_toml(cluster)) == Cluster(cluster.devices, (), "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('type_efficiency = { Add = 1.5 }', "type_efficiency of Add must be in"),
        ('type_efficiency = { Add = "x" }', "must be a table of numbers"),
        ("type_efficiency = 0.5", "must be a table of numbers"),
    ],
)  # fmt: skip
def test_bad_shares_are_refused(text: str, said: str) -> None:
    with pytest.raises(ClusterError, match=said):
        cluster_from_toml(f'[[device]]\nname = "A"\n{text}\n')
