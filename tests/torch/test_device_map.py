"""Device maps: accelerate's own checks, limits, ties, proofs, and a run through accelerate."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from accelerate import dispatch_model
from accelerate.utils.modeling import check_device_map, compute_module_sizes

from situs.errors import ParameterError, Status
from situs.importers.torch.blocks import Request, module_blocks, no_split_classes
from situs.simulate import evaluate
from situs.torch import device_map, map_blocks, parse_memory
from situs.torch.baseline import accelerate_map, devices_of
from situs.torch.machine import machines
from situs.torch.problem import Case
from situs.torch.valuing import PlainObjective
from torch_models import KINDS, build, weight_bytes

REQUEST = Request(1, 8, 2)


def setups(size: int) -> dict[str, dict[str, int]]:
    """Limits by the bytes of the weights."""
    return {
        "even": {"cuda:0": size * 8 // 10, "cuda:1": size * 8 // 10},
        "uneven": {"cuda:0": size * 5 // 10, "cuda:1": size * 12 // 10},
        "small GPU and CPU": {"cuda:0": size * 6 // 10, "cpu": size * 3},
        "one nearly full": {"cuda:0": size * 8 // 10, "cuda:1": size // 20, "cuda:2": size},
    }


def held(model: torch.nn.Module, mapped: dict[str, str]) -> dict[str, int]:
    """Bytes per device by the names of the tensors, each storage once a device."""
    total: dict[str, set[int]] = {}
    size = {}
    for name, tensor in [
        *model.named_parameters(remove_duplicate=False),
        *model.named_buffers(remove_duplicate=False),
    ]:
        key = max((k for k in mapped if k in ("", name) or name.startswith(f"{k}.")), key=len)
        total.setdefault(mapped[key], set()).add(id(tensor))
        size[id(tensor)] = tensor.numel() * tensor.element_size()
    assert sum(size.values()) == compute_module_sizes(model)[""]
    return {device: sum(size[i] for i in ids) for device, ids in total.items()}


@pytest.mark.filterwarnings("ignore:The following device_map keys:UserWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_maps_keep_their_promises(kind: str) -> None:
    model = build(kind)
    blocks = module_blocks(model, REQUEST)
    for limits in setups(weight_bytes(model)).values():
        rival = accelerate_map(model, limits, no_split_classes(model))
        found = map_blocks(blocks, limits, "throughput", counting="weights", rival=rival)
        if found.best is None:
            assert found.short_bytes > 0
            assert "disk" in rival.values()
            continue
        check_device_map(model, found.device_map)
        assert all(used <= limits[d] for d, used in held(model, found.device_map).items())
        names = devices_of(blocks, found.device_map)
        assert names is not None
        tied = [d for d, c in zip(names, blocks.graph.colocation, strict=True) if c >= 0]
        assert len(set(tied)) <= 1
        assert found.bound <= found.best.bottleneck_s * (1 + 1e-9)
        if found.accelerate is not None:
            assert found.best.bottleneck_s <= found.accelerate.bottleneck_s * (1 + 1e-9)


@pytest.mark.parametrize("goal", ["latency", "throughput", "fit"])
def test_equals_every_map(goal: str) -> None:
    """By brute force over all maps of a small chain on two devices of unequal memory."""
    model = torch.nn.Sequential(*(torch.nn.Linear(n, n + 8) for n in (64, 72, 80, 88, 96, 104)))
    blocks = module_blocks(model, inputs={"input": torch.zeros(2, 64)})
    size = weight_bytes(model)
    limits = {"cuda:0": size * 4 // 10, "cuda:1": size * 8 // 10}
    found = map_blocks(blocks, limits, goal, counting="weights")  # type: ignore[arg-type]
    (machine,) = machines(limits, "4xa100")
    one = Case(blocks, machine, "weights")
    best = np.inf
    for choice in itertools.product(range(2), repeat=6):
        assignment = np.array(choice, dtype=np.int32)
        used = one.used_bytes(assignment)
        if (used > one.limits).any():
            continue
        value = (
            (used / one.limits).max()
            if goal == "fit"
            else evaluate(one.problem(goal), assignment[None])[0]  # type: ignore[arg-type]
        )
        best = min(best, float(value))
    assert found.best is not None
    assert found.status is Status.OPTIMAL
    assert found.best.value(goal) == pytest.approx(best, rel=1e-6)  # type: ignore[arg-type]


@pytest.mark.parametrize("goal", ["latency", "throughput"])
@pytest.mark.parametrize("limited", [False, True])
def test_plain_values_are_the_simulators(goal: str, limited: bool) -> None:
    """What is valued without compiled kernels is what they give, infeasible ones too."""
    model = build("t5")
    size = weight_bytes(model)
    limits = {"cuda:0": size * 6 // 10, "cuda:1": size * 9 // 10, "cpu": size}
    blocks = module_blocks(model, REQUEST)
    rng = np.random.default_rng(0)
    feasible = 0
    for machine in machines(limits, "4xa100"):
        one = Case(blocks, machine, "weights")
        problem = one.problem(goal, one.limits if limited else None)  # type: ignore[arg-type]
        wishes = rng.integers(0, len(machine.limits), (40, problem.num_units))
        assignments = wishes[:, problem.units].astype(np.int32)
        assignments[-1, 0] = (assignments[-1, 1] + 1) % len(machine.limits)
        plain = PlainObjective(problem).evaluate(assignments).seconds
        np.testing.assert_allclose(plain, evaluate(problem, assignments), rtol=1e-12)
        feasible += int(np.isfinite(plain).sum())
    assert 0 < feasible < 40 * len(machines(limits, "4xa100"))


def test_proof_counts_the_missing_bytes() -> None:
    model = torch.nn.Sequential(*(torch.nn.Linear(100, 100, bias=False) for _ in range(3)))
    blocks = module_blocks(model, inputs={"input": torch.zeros(1, 100)})
    # Three matrices of 40,000 B, of which only one fits on each device.
    limits = {"cuda:0": 70_000, "cuda:1": 70_000}
    found = map_blocks(blocks, limits, counting="weights")
    assert found.status is Status.INFEASIBLE
    assert 9_900 <= found.short_bytes <= 10_000
    with pytest.raises(ParameterError, match="short of at least"):
        _ = found.device_map
    # In a run the activations must fit, too: of 400 B in and 400 B out, one call at a time.
    assert map_blocks(blocks, {"cuda:0": 120_000}, counting="weights").best is not None
    short = map_blocks(blocks, {"cuda:0": 120_000}, counting="run")
    assert 790 <= short.short_bytes <= 800


@pytest.mark.parametrize("offload", [("cpu",), ("cpu", "disk")])
def test_same_logits_through_accelerate(offload: tuple[str, ...], tmp_path: Path) -> None:
    model = build("llama", "cpu")
    size = weight_bytes(model)
    limits: dict[int | str, int | str] = {"cpu": size * 2}
    if "disk" in offload:
        limits = {"cpu": size * 6 // 10, "disk": "1GiB"}
    found = device_map(model, limits, request=REQUEST, counting="weights")
    assert set(found.device_map.values()) == set(offload)
    ids = torch.arange(12).reshape(1, 12)
    with torch.no_grad():
        expected = model(input_ids=ids).logits
        placed = dispatch_model(
            model, found.device_map, main_device="cpu", offload_dir=str(tmp_path)
        )
        assert torch.equal(placed(input_ids=ids).logits, expected)
    offloaded = {n.rpartition(".")[0] for n, p in placed.named_parameters() if p.is_meta}
    assert bool(offloaded) == ("disk" in offload)


def test_sizes_and_misuse() -> None:
    assert parse_memory({0: "20GiB", "cpu": "1.5GB", "disk": 7}) == {
        "cuda:0": 20 * 2**30,
        "cpu": 1_500_000_000,
        "disk": 7,
    }
    for bad in ({"cuda:0": "lots"}, {}, {0: 1, "cuda:0": 1}, {"disk": "1GiB"}, {"cuda:0": -1}):
        with pytest.raises(ParameterError, match=r"max_memory|memory limit"):
            device_map(build("gpt2"), bad)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="one cpu, not cpu:1"):
        device_map(build("gpt2"), {"cpu:1": "1GiB"})
    with pytest.raises(ParameterError, match="latency, throughput, fit"):
        device_map(build("gpt2"), {"cpu": "1GiB"}, objective="speed")  # type: ignore[arg-type]
