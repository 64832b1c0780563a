from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from situs.core import Placement
from situs.errors import CompileError, PlacementError
from situs.executors import discover, parse_device
from situs.executors.openvino_hetero import HeteroExecutor, annotated
from situs.executors.readback import split_names
from situs.hardware import Cluster
from situs.importers import Imported, load_model
from situs.profiling.check import compare_outputs, outputs_vary
from situs.profiling.inputs import random_inputs


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return discover([parse_device("CPU"), parse_device("CPU_B:threads=1", virtual=True)])


@pytest.fixture(scope="module")
def model(squeezenet: Path) -> Imported:
    return load_model(squeezenet)


def split(model: Imported, cluster: Cluster, wish: np.ndarray) -> Placement:
    """Follow the wish of the first op of every unit."""
    units = model.graph.units
    first = np.unique(units, return_index=True)[1]
    return Placement(model.graph.fingerprint, cluster.names, wish[first][units].astype(np.int32))


def structured_and_random(n: int, count: int, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    position = np.arange(n)
    wishes = [position >= n // 2, position < n // 2, (position // 20) % 2, (position // 7) % 2]
    while len(wishes) < count:
        low, high = np.sort(rng.integers(0, n, size=2))
        wishes.append((position >= low) & (position < high))
        wishes.append(rng.random(n) < 0.1)
    return [np.asarray(w, dtype=np.int32) for w in wishes[:count]]


def test_placed_outputs_are_those_of_one_device_and_vary(model: Imported, cluster: Cluster) -> None:
    executor = HeteroExecutor(cluster)
    rng = np.random.default_rng(0)
    n = model.graph.num_ops
    inputs, others = random_inputs(model.model, rng), random_inputs(model.model, rng)
    alone = executor.compile(model, split(model, cluster, np.zeros(n)))
    alone.bind(others)
    alone.run()
    other = alone.outputs()
    alone.bind(inputs)
    alone.run()
    reference = alone.outputs()
    assert outputs_vary(reference, other)
    for wish in structured_and_random(n, 8, seed=1):
        placed = executor.compile(model, split(model, cluster, wish))
        placed.bind(inputs)
        placed.run()
        check = compare_outputs(placed.outputs(), reference, 1e-4, varies=True)
        assert check.passed, check.detail


def test_realised_is_what_was_planned(model: Imported, cluster: Cluster) -> None:
    executor = HeteroExecutor(cluster)
    inputs = random_inputs(model.model, np.random.default_rng(0))
    for wish in structured_and_random(model.graph.num_ops, 5, seed=2):
        placement = split(model, cluster, wish)
        realised = executor.realise(model, placement, inputs)
        assert realised.differences == ()
        ran = realised.device >= 0
        assert (realised.device[ran] == placement.assignment[ran]).all()
        assert set(placement.assignment.tolist()) <= set(realised.device[ran].tolist())
        assert realised.subgraphs == realised.subgraph.max() + 1


def test_every_node_gets_an_affinity_and_constants_follow_their_readers(
    model: Imported, cluster: Cluster
) -> None:
    n = model.graph.num_ops
    placement = split(model, cluster, (np.arange(n) >= n // 2).astype(np.int32))
    marked = annotated(model, placement)
    affinity = {
        node.get_friendly_name(): node.get_rt_info()["affinity"].astype(str)
        for node in marked.get_ordered_ops()
    }
    index = model.graph.op_index
    for node in marked.get_ordered_ops():
        name = node.get_friendly_name()
        if name in index:
            assert affinity[name] == placement.devices[placement.assignment[index[name]]]
        elif node.get_type_name() == "Constant":
            readers = {
                affinity[t.get_node().get_friendly_name()]
                for t in node.output(0).get_target_inputs()
            }
            assert affinity[name] in readers
    assert all("affinity" not in node.get_rt_info() for node in model.model.get_ordered_ops())


def test_effective_properties_are_read_back(model: Imported, cluster: Cluster) -> None:
    n = model.graph.num_ops
    half = split(model, cluster, (np.arange(n) >= n // 2).astype(np.int32))
    executor = HeteroExecutor(cluster)
    for placement in (half, split(model, cluster, np.ones(n))):
        configuration = dict(executor.compile(model, placement).realised.configuration)
        assert configuration["CPU_B.INFERENCE_NUM_THREADS"] == "1"
        assert configuration["CPU_B.INFERENCE_PRECISION_HINT"] == "f32"


def test_duplicate_names_do_not_collapse(cluster: Cluster) -> None:
    x = ops.parameter([1, 8], np.float32, name="x")
    a = ops.relu(x)
    b = ops.sigmoid(a)
    c = ops.tanh(b)
    for node in (a, b, c):
        node.set_friendly_name("same")
    model = load_model(ov.Model([ops.result(c)], [x], "duplicates"))
    wish = np.zeros(model.graph.num_ops, dtype=np.int32)
    wish[model.graph.op_types.index("Sigmoid")] = 1
    placement = Placement(model.graph.fingerprint, cluster.names, wish)
    realised = HeteroExecutor(cluster).realise(
        model, placement, random_inputs(model.model, np.random.default_rng(0))
    )
    assert realised.subgraphs == 3
    assert realised.differences == ()


def test_behaves_like_a_compiled_model(model: Imported, cluster: Cluster) -> None:
    n = model.graph.num_ops
    compiled = HeteroExecutor(cluster).compile(
        model, split(model, cluster, (np.arange(n) >= n // 2).astype(np.int32))
    )
    image = random_inputs(model.model, np.random.default_rng(0))[0]
    by_call = next(iter(compiled([image]).values()))
    request = compiled.create_infer_request()
    request.infer([image])
    assert np.array_equal(request.get_output_tensor(0).data, by_call)
    assert len(compiled.inputs) == 1


def test_other_models_and_unknown_devices_are_refused(model: Imported, cluster: Cluster) -> None:
    executor = HeteroExecutor(cluster)
    zeros = np.zeros(model.graph.num_ops, dtype=np.int32)
    with pytest.raises(PlacementError, match="another model"):
        executor.compile(model, Placement("0" * 32, cluster.names, zeros))
    with pytest.raises(PlacementError, match="GPU"):
        executor.compile(model, Placement(model.graph.fingerprint, ("GPU",), zeros))


def test_a_refused_property_is_one_line(model: Imported) -> None:
    cluster = discover([parse_device("CPU:nonsense=1")])
    zeros = np.zeros(model.graph.num_ops, dtype=np.int32)
    with pytest.raises(CompileError, match="NONSENSE") as caught:
        HeteroExecutor(cluster).compile(
            model, Placement(model.graph.fingerprint, cluster.names, zeros)
        )
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "known", "names"),
    [
        ("a,b", {"a", "b"}, ["a", "b"]),
        ("a,b,c", {"a,b", "c"}, ["a,b", "c"]),
        ("a,runtime,c", {"a", "c"}, ["a", "c"]),
        ("a,b", {"a,b", "a", "b"}, ["a,b"]),
        ("", {"a"}, []),
        (",", {","}, [","]),
    ],
)
def test_names_with_commas_stay_whole(text: str, known: set[str], names: list[str]) -> None:
    assert split_names(text, known) == names
