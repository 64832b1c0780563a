"""An exported program through the commands, and device maps as other tools' arguments."""

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from situs.cli.app import app
from situs.errors import ClusterError, ParameterError, PlacementError, WorkError
from torch_models import save_configuration


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = torch.nn.Linear(64, 128), torch.nn.Linear(128, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.relu(self.first(x))) + x


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("program")
    program = torch.export.export(Net().eval(), (torch.zeros(8, 64),), strict=False)
    torch.export.save(program, made / "net.pt2")
    save_configuration(made)
    return made


def run(*arguments: str) -> dict[str, object]:
    result = CliRunner().invoke(app, [*arguments, "--json"])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    record: dict[str, object] = json.loads(result.stdout)
    return record


def test_inspect_and_simulate(folder: Path) -> None:
    record = run("inspect", str(folder / "net.pt2"))
    assert record["flop"] == 2 * (2 * 8 * 64 * 128) + 8 * 128 + 8 * 64
    assert record["constant_bytes"] == 4 * (2 * 64 * 128 + 128 + 64)
    assert record["input_names"] == ["x"]
    simulated = run(
        "simulate", str(folder / "net.pt2"), "--cluster", "i9-flex170", "--placement", "CPU"
    )
    assert simulated["simulated"] is True
    config = run("inspect", str(folder / "config.json"))
    matrices = 4 * (4 * 64 * 64 + 3 * 64 * 128) + 64 * 200
    scores = 4 * 2 * 2 * 4 * 512 * 512 * 16
    assert config["flop"] >= 2 * 512 * matrices + scores  # type: ignore[operator]


def test_placed_runs_and_agrees(folder: Path) -> None:
    model, file = str(folder / "net.pt2"), folder / "net.placement.json"
    # Each matrix takes 32 KiB: one on each device.
    placed = run(
        "place", model, "--framework", "torch", "--max-memory", "cpu=48KiB,cpu:1=48KiB",
        "--machine", "i9-flex170", "--placer", "milp", "--output", str(file),
    )  # fmt: skip
    assert placed["simulated"] is True
    assert min(placed["ops"].values()) > 0  # type: ignore[attr-defined]
    assert 0 < placed["lower_bound_s"] <= placed["predicted_s"]  # type: ignore[operator]
    ran = run("run", model, "--placement", str(file), "--runs", "3", "--strict")
    assert ran["status"] == "ok"
    assert ran["ops"] == placed["ops"]
    assert ran["subgraphs"] == 2
    assert ran["output_check"]["passed"]  # type: ignore[index]
    assert ran["output_check"]["varies_with_input"]  # type: ignore[index]


def test_program_misuse(folder: Path) -> None:
    model = str(folder / "net.pt2")
    options = ["place", model, "--framework", "torch", "--max-memory"]
    with pytest.raises(WorkError, match="no placement within the limits"):
        run(*options, "cpu=16KiB", "--machine", "i9-flex170", "--placer", "milp")
    with pytest.raises(ParameterError, match="latency or throughput"):
        run(*options, "cpu=1GiB", "--objective", "fit")
    with pytest.raises(ParameterError, match="disk"):
        run(*options, "cpu=1GiB,disk=1GiB")
    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    target = str(folder / "cuda.json")
    run(*options, "cuda:0=1GiB", "--placer", "single", "--output", target)
    with pytest.raises(ClusterError, match="no device 'cuda:0' here"):
        run("run", model, "--placement", target)


def test_maps_for_other_tools(folder: Path, tmp_path: Path) -> None:
    config, target = str(folder / "config.json"), tmp_path / "map.json"
    layers = {f"model.layers.{k}": f"cuda:{k // 2}" for k in range(4)}
    ends = {"model.embed_tokens": "cuda:0", "model.norm": "cuda:1", "lm_head": "cuda:1"}
    target.write_text(json.dumps(layers | ends | {"model.rotary_emb": "cuda:0"}))
    vllm = run("export", str(target), "--to", "vllm", "--model", config)
    assert vllm["environment"] == {
        "CUDA_VISIBLE_DEVICES": "0,1",
        "VLLM_PP_LAYER_PARTITION": "2,2",
    }
    assert vllm["arguments"] == ["--pipeline-parallel-size", "2"]
    written = tmp_path / "arguments.txt"
    run("export", str(target), "--to", "llama.cpp", "--model", config, "--output", str(written))
    assert "--tensor-split 2,3" in written.read_text()
    with pytest.raises(ParameterError, match="--model"):
        run("export", str(target), "--to", "vllm")
    target.write_text("[]")
    with pytest.raises(PlacementError, match="not a device map"):
        run("export", str(target), "--to", "vllm", "--model", config)
