"""Placed exported models compute what the model computes, wherever their ops are."""

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._pytree import tree_leaves

from situs.core import Placement
from situs.errors import ClusterError, CompileError, PlacementError, RunError, Status
from situs.executors import Executor
from situs.executors.torch import TorchExecutor, torch_cluster
from situs.executors.torch.running import unplaced_outputs
from situs.importers import Imported
from situs.importers.torch.blocks import Request
from situs.importers.torch.inputs import prefill_inputs
from situs.importers.torch.ops import TorchImported, import_exported, import_module
from situs.profiling.running import run_placement
from torch_models import KINDS, build

CLUSTER = torch_cluster(["cpu", "cpu:1", "cpu:2"])
CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no CUDA device")


class Odd(torch.nn.Module):
    """Tied weights, a written buffer, several inputs and outputs, an input given back, views."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(20, 8)
        self.mix = torch.nn.Linear(8, 8)
        self.head = torch.nn.Linear(8, 20, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("total", torch.zeros(8))

    def forward(self, ids: torch.Tensor, shift: torch.Tensor) -> dict[str, Any]:
        x = torch.relu_(self.mix(self.embed(ids)))
        self.total.add_(x.sum((0, 1)))
        low, high = x.split(4, -1)
        x = torch.cat([high, low], -1) + torch.arange(8) + shift
        flag = torch.cond(x.sum() > 0, lambda t: t + torch.ones(8), lambda t: t - 1, (x,))
        return {"logits": self.head(flag), "shift": shift, "total": self.total * 1, "n": 3}


def placed(imported: TorchImported, wish: np.ndarray, cluster: Any = CLUSTER) -> Placement:
    return Placement(imported.graph.fingerprint, cluster.names, wish.astype(np.int32))


def scattered(imported: TorchImported, seed: int, whole_units: bool = True) -> Placement:
    rng = np.random.default_rng(seed)
    n = imported.graph.num_ops
    units = imported.graph.units if whole_units else np.arange(n)
    return placed(imported, rng.integers(0, 3, n)[units])


@cache
def odd() -> tuple[Odd, tuple[torch.Tensor, torch.Tensor], TorchImported]:
    torch.manual_seed(0)
    model = Odd().eval()
    arguments = (torch.randint(0, 20, (2, 3)), torch.rand(8))
    return model, arguments, import_module(model, arguments)


@given(seed=st.integers(0, 10_000), whole=st.booleans())
@settings(deadline=None, max_examples=50)
def test_any_placement_computes_the_same(seed: int, whole: bool) -> None:
    """Also one that does not keep together what should be: the copies are all written back."""
    original, arguments, imported = odd()
    model = deepcopy(original)
    runnable = TorchExecutor(CLUSTER).compile(imported, scattered(imported, seed, whole))
    for _ in range(3):
        got = runnable(*arguments)
        with torch.no_grad():
            want = model(*arguments)
        assert got.keys() == want.keys()
        for a, b in zip(tree_leaves(got), tree_leaves(want), strict=True):
            assert torch.equal(a, b) if isinstance(b, torch.Tensor) else a == b


def test_the_models_own_state_is_left_alone() -> None:
    model, arguments, imported = odd()
    TorchExecutor(CLUSTER).compile(imported, scattered(imported, 0))(*arguments)
    assert not model.total.any()


@pytest.mark.parametrize("kind", KINDS)
def test_transformers_models(kind: str, tmp_path: Path) -> None:
    model = build(kind, "cpu")
    given_ = prefill_inputs(model, Request(1, 8, 2), torch.device("cpu"), cache=False)
    imported = import_module(model, (), given_)
    executor = TorchExecutor(CLUSTER)
    runnable = executor.compile(imported, scattered(imported, 1))
    got = runnable(**given_)
    with torch.no_grad():
        want = model(**given_)
    for a, b in zip(tree_leaves(got), tree_leaves(want), strict=True):
        if isinstance(b, torch.Tensor):
            assert torch.allclose(a.float(), b.float(), rtol=1e-4, atol=1e-4)
    inputs = [value for value in given_.values() if isinstance(value, torch.Tensor)]
    runnable.bind(inputs)
    runnable.run()
    for array, reference in zip(
        runnable.outputs(), unplaced_outputs(imported, inputs), strict=True
    ):
        np.testing.assert_allclose(array, reference, rtol=1e-4, atol=1e-4)
    realised = executor.realise(imported, scattered(imported, 1), inputs)
    assert realised.differences == ()
    assert realised.subgraphs > 1


def test_input_that_is_changed() -> None:
    class Adds(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x.add_(1)
            return x * 2

    imported = import_module(Adds(), (torch.zeros(3),))
    runnable = TorchExecutor(CLUSTER).compile(imported, scattered(imported, 3))
    x = torch.zeros(3)
    assert runnable(x).tolist() == [2, 2, 2]
    assert x.tolist() == [1, 1, 1]


def test_on_meta_shapes_only() -> None:
    model = build("llama")
    given_ = prefill_inputs(model, Request(1, 8, 2), torch.device("meta"), cache=False)
    imported = import_module(model, (), given_)
    cluster = torch_cluster(["meta", "cpu"])
    whole = placed(imported, np.zeros(imported.graph.num_ops), cluster)
    runnable = TorchExecutor(cluster).compile(imported, whole)
    runnable.bind([torch.zeros(1, 8, dtype=torch.long)])
    runnable.run()
    assert [t.shape for t in runnable.tensors()] == [(1, 8, 200)]
    with pytest.raises(RunError, match="shapes only"):
        runnable.outputs()
    on_cpu = placed(imported, np.ones(imported.graph.num_ops), cluster)
    with pytest.raises(CompileError, match="holds no weights"):
        TorchExecutor(cluster).compile(imported, on_cpu)


def test_a_traced_model_runs_too() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Flatten(), torch.nn.ReLU()).eval()
    wrapped = _Leaf(model)
    x = torch.randn(3, 4)
    imported = import_module(wrapped, (x,))
    assert imported.model.how == "torch.fx"
    runnable = TorchExecutor(CLUSTER).compile(imported, scattered(imported, 5))
    with torch.no_grad():
        assert torch.equal(runnable(x), wrapped(x))


@torch.fx.wrap
def looked_at(x: torch.Tensor) -> torch.Tensor:
    return x if x.sum().item() > 1e9 else x + 1


class _Leaf(torch.nn.Module):
    def __init__(self, inner: torch.nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.inner(looked_at(x))
        return y.reshape(y.size(0), -1)


def test_outputs_are_checked_against_the_program_without_a_placement() -> None:
    _, _, imported = odd()
    for placement in (scattered(imported, 2), placed(imported, np.zeros(imported.graph.num_ops))):
        executor = cast(Executor, TorchExecutor(CLUSTER))
        for wrong, status in ((0.0, Status.OK), (1.0, Status.MISMATCH)):

            def unplaced(inputs: list[Any], wrong: float = wrong) -> list[Any]:
                return [output + wrong for output in unplaced_outputs(imported, inputs)]

            report = run_placement(
                executor, cast(Imported, imported), placement, 0, 3, unplaced=unplaced
            )
            assert report.measurement.status is status
            assert report.check is not None
            assert report.check.passed is (status is Status.OK)
            assert report.check.varies


def test_misuse(tmp_path: Path) -> None:
    model = torch.nn.Linear(4, 2).eval()
    torch.export.save(torch.export.export(model, (torch.zeros(3, 4),)), tmp_path / "m.pt2")
    imported = import_exported(tmp_path / "m.pt2")
    executor = TorchExecutor(torch_cluster(["cpu"]))
    with pytest.raises(PlacementError, match=r"cpu:[12]"):
        executor.compile(imported, placed(imported, np.full(imported.graph.num_ops, 1)))
    with pytest.raises(PlacementError, match="another model"):
        executor.compile(imported, Placement("0" * 32, ("cpu",), np.zeros(4, dtype=np.int32)))
    runnable = executor.compile(
        imported, placed(imported, np.zeros(imported.graph.num_ops), torch_cluster(["cpu"]))
    )
    with pytest.raises(RunError, match="bind first"):
        runnable.run()
    with pytest.raises(RunError, match="1 inputs; 2 were given"):
        runnable.bind([torch.zeros(3, 4)] * 2)
    runnable.bind([torch.zeros(3, 5)])
    with pytest.raises(RunError, match="op 'linear' on cpu"):
        runnable.run()
    with pytest.raises(RunError, match="exported for arguments"):
        runnable(torch.zeros(3, 4), 1)
    for name in ("cuda:99", "gpu", "cpu:x"):
        with pytest.raises(ClusterError, match="no device"):
            torch_cluster([name])


@CUDA
def test_on_cuda() -> None:
    model, arguments, imported = odd()
    cluster = torch_cluster(["cpu", "cuda:0"])
    rng = np.random.default_rng(0)
    wish = rng.integers(0, 2, imported.graph.num_ops)[imported.graph.units]
    executor = TorchExecutor(cluster)
    got = executor.compile(imported, placed(imported, wish, cluster))(*arguments)
    want = deepcopy(model)(*arguments)
    assert torch.allclose(got["logits"].cpu(), want["logits"], rtol=1e-4, atol=1e-4)
    assert executor.realise(imported, placed(imported, wish, cluster), arguments).differences == ()
