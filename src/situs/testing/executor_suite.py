"""The contract of an executor: subclass ``ExecutorSuite`` and give it one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from situs.core import Placement
from situs.errors import PlacementError
from situs.executors import Executor, discover, parse_device
from situs.hardware import Cluster
from situs.importers import Imported, load_model
from situs.profiling.check import compare_outputs
from situs.profiling.inputs import random_inputs
from situs.testing.models import TINY_MODELS

if TYPE_CHECKING:
    import openvino as ov

# The plain CPU plugin needs seconds for a chain of thousands of element-wise ops.
KINDS = sorted(set(TINY_MODELS) - {"deep_chain"})


def split_by_unit(imported: Imported, cluster: Cluster, wish: np.ndarray) -> Placement:
    """A placement that follows the wish of the first op of every unit."""
    units = imported.graph.units
    first = np.unique(units, return_index=True)[1]
    return Placement(imported.graph.fingerprint, cluster.names, wish[first][units].astype(np.int32))


def wishes(num_ops: int) -> Iterator[np.ndarray]:
    """Halves both ways, alternating ops, one op, random ones."""
    position = np.arange(num_ops)
    yield position >= num_ops // 2
    yield position < num_ops // 2
    yield position % 2
    yield position == num_ops // 2
    rng = np.random.default_rng(0)
    for _ in range(2):
        yield rng.random(num_ops) < 0.5


class ExecutorSuite:
    """Every executor's contract."""

    def executor(self, cluster: Cluster) -> Executor:
        """The executor under test."""
        raise NotImplementedError

    @staticmethod
    def cluster() -> Cluster:
        """The CPU and a virtual second one, one thread each, f32."""
        return discover(
            [parse_device("CPU:threads=1"), parse_device("CPU_B:threads=1", virtual=True)]
        )

    @pytest.mark.parametrize("kind", KINDS)
    def test_outputs_are_those_of_one_device(self, kind: str) -> None:
        """Split in six ways, every kind of model computes what it computes unsplit."""
        imported = load_model(TINY_MODELS[kind]())
        cluster = self.cluster()
        executor = self.executor(cluster)
        inputs = random_inputs(imported.model, np.random.default_rng(0))
        reference = reference_outputs(imported.model, inputs)
        for wish in wishes(imported.graph.num_ops):
            placement = split_by_unit(imported, cluster, np.asarray(wish, dtype=np.int32))
            runnable = executor.compile(imported, placement)
            runnable.bind(inputs)
            runnable.run()
            if kind != "random_branch":
                check = compare_outputs(runnable.outputs(), reference, 1e-4, varies=True)
                assert check.passed, f"{kind}, {placement.assignment.tolist()}: {check.detail}"
            assert runnable.realised.differences == ()

    def test_inputs_can_be_replaced(self) -> None:
        """A second set of inputs is read by every sub-graph."""
        imported = load_model(TINY_MODELS["two_towers"]())
        cluster = self.cluster()
        n = imported.graph.num_ops
        runnable = self.executor(cluster).compile(
            imported, split_by_unit(imported, cluster, (np.arange(n) >= n // 2).astype(np.int32))
        )
        for seed in range(3):
            inputs = random_inputs(imported.model, np.random.default_rng(seed))
            runnable.bind(inputs)
            runnable.run()
            reference = reference_outputs(imported.model, inputs)
            assert compare_outputs(runnable.outputs(), reference, 1e-4, varies=True).passed

    def test_realised_covers_both_devices(self) -> None:
        """Reading back op by op finds ops on each device that was planned, and no difference."""
        imported = load_model(TINY_MODELS["two_towers"]())
        cluster = self.cluster()
        n = imported.graph.num_ops
        placement = split_by_unit(imported, cluster, (np.arange(n) >= n // 2).astype(np.int32))
        realised = self.executor(cluster).realise(
            imported, placement, random_inputs(imported.model, np.random.default_rng(0))
        )
        present = realised.device >= 0
        assert realised.differences == ()
        assert set(realised.device[present].tolist()) == {0, 1}
        assert (realised.device[present] == placement.assignment[present]).all()

    def test_another_graph_is_refused(self) -> None:
        """A placement of another graph is misuse."""
        imported = load_model(TINY_MODELS["two_towers"]())
        cluster = self.cluster()
        zeros = np.zeros(imported.graph.num_ops, dtype=np.int32)
        with pytest.raises(PlacementError, match="another model"):
            self.executor(cluster).compile(imported, Placement("0" * 32, cluster.names, zeros))


def reference_outputs(model: ov.Model, inputs: list[np.ndarray[Any, Any]]) -> list[Any]:
    """Outputs of the model unsplit on the CPU in f32."""
    import openvino as ov

    request = (
        ov.Core()
        .compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        .create_infer_request()
    )
    for i, array in enumerate(inputs):
        request.set_input_tensor(i, ov.Tensor(np.asarray(array, order="C")))
    request.infer()
    outputs = []
    for i in range(len(model.outputs)):
        tensor = request.get_output_tensor(i)
        text = tensor.get_element_type().get_type_name() == "string"
        outputs.append(np.array(tensor.str_data if text else tensor.data))
    return outputs
