import gc
import threading
import weakref

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from situs.core import Placement
from situs.errors import RunError
from situs.executors import discover, parse_device
from situs.executors.openvino_parallel import ParallelExecutor, ParallelModel
from situs.hardware import Cluster
from situs.importers import Imported, load_model
from situs.profiling.inputs import random_inputs
from situs.testing.executor_suite import ExecutorSuite, reference_outputs, split_by_unit
from situs.testing.models import TINY_MODELS


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return ExecutorSuite.cluster()


@pytest.fixture(scope="module")
def model() -> Imported:
    return load_model(TINY_MODELS["two_towers"]())


def alternating(model: Imported, cluster: Cluster) -> Placement:
    return split_by_unit(model, cluster, np.arange(model.graph.num_ops, dtype=np.int32) % 2)


def compiled(model: Imported, cluster: Cluster) -> ParallelModel:
    result = ParallelExecutor(cluster).compile(model, alternating(model, cluster))
    assert isinstance(result, ParallelModel)
    return result


def test_many_requests_in_flight_do_not_mix(model: Imported, cluster: Cluster) -> None:
    placed = compiled(model, cluster)
    requests, wanted = [], []
    for seed in range(12):
        inputs = random_inputs(model.model, np.random.default_rng(seed))
        request = placed.create_infer_request()
        request.set_input_tensor(0, ov.Tensor(inputs[0]))
        requests.append(request)
        wanted.append(reference_outputs(model.model, inputs)[0])
    for _ in range(5):
        for request in requests:
            request.start_async()
        for request, want in zip(requests, wanted, strict=True):
            request.wait()
            assert np.allclose(request.get_output_tensor(0).data, want, rtol=1e-4, atol=1e-5)


def test_a_failure_reaches_the_caller_once_and_the_request_can_be_used_again() -> None:
    # The target shape is an input: a wrong one fails only when the sub-graph runs. OpenVINO 2026.4
    # itself loses the error, and leaves the old output in place, with one thread per device and
    # when the same wrong shape comes again.
    cluster = discover([parse_device("CPU"), parse_device("CPU_B:threads=2", virtual=True)])
    x = ops.parameter([2, 6], np.float32, name="x")
    shape = ops.parameter([2], np.int64, name="shape")
    y = ops.reshape(ops.relu(x), shape, False)
    model = load_model(ov.Model([ops.result(ops.sigmoid(y))], [x, shape], "reshapes"))
    types = np.array(model.graph.op_types)
    wish = np.isin(types, ["Reshape", "Sigmoid", "Result"]).astype(np.int32)
    placed = ParallelExecutor(cluster).compile(model, split_by_unit(model, cluster, wish))
    assert isinstance(placed, ParallelModel)
    values = np.random.default_rng(0).standard_normal((2, 6)).astype(np.float32)
    good, bad, worse = np.array([3, 4]), np.array([5, 7]), np.array([9, 9])
    request = placed.create_infer_request()
    request.set_input_tensor(0, ov.Tensor(values))
    for target in (good, bad, good, worse, good):
        request.set_input_tensor(1, ov.Tensor(target))
        if target is not good:
            with pytest.raises(RunError, match=r"sub-graph \d+ on CPU.* failed: ") as caught:
                request.infer()
            assert "\n" not in str(caught.value)
            continue
        request.infer()
        want = 1 / (1 + np.exp(-np.maximum(values, 0).reshape(3, 4)))
        assert np.allclose(request.get_output_tensor(0).data, want, atol=1e-5)


def test_threads_end_with_the_model(model: Imported, cluster: Cluster) -> None:
    before = threading.active_count()
    placed = compiled(model, cluster)
    placed.bind(random_inputs(model.model, np.random.default_rng(0)))
    placed.run()
    assert threading.active_count() > before
    gone = weakref.ref(placed)
    del placed
    gc.collect()
    assert gone() is None
    for thread in threading.enumerate():
        if thread.name.startswith("Thread-") and "(work)" in thread.name:
            thread.join(timeout=10)
    assert threading.active_count() <= before


def test_several_cpus_are_not_pinned_unless_asked(model: Imported, cluster: Cluster) -> None:
    configuration = dict(compiled(model, cluster).realised.configuration)
    assert configuration["CPU.ENABLE_CPU_PINNING"] == "False"
    assert configuration["CPU_B.INFERENCE_NUM_THREADS"] == "1"


def test_one_device_is_the_plain_device(model: Imported, cluster: Cluster) -> None:
    whole = Placement(
        model.graph.fingerprint,
        cluster.names,
        np.zeros(model.graph.num_ops, dtype=np.int32),
    )
    placed = ParallelExecutor(cluster).compile(model, whole)
    assert not isinstance(placed, ParallelModel)
    assert placed.realised.subgraphs == 1
