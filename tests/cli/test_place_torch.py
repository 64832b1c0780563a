import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from situs.cli.place import place
from situs.errors import ModelError, ParameterError
from torch_models import save_configuration

app = typer.Typer()
app.command()(place)


@pytest.fixture
def config(tmp_path: Path) -> str:
    save_configuration(tmp_path, dtype="bfloat16")
    return str(tmp_path / "config.json")


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, [*arguments, "--framework", "torch"])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code
    return result.stdout


def test_prints_and_writes_a_map(config: str, tmp_path: Path) -> None:
    target = tmp_path / "map.json"
    options = [config, "--max-memory", "cuda:0=300KiB,cuda:1=300KiB", "--counting", "weights"]
    record = json.loads(
        run(*options, "--objective", "throughput", "--json", "--output", str(target))
    )
    assert record["simulated"] is True
    assert record["device_map"] == json.loads(target.read_text())
    assert set(record["device_map"].values()) == {"cuda:0", "cuda:1"}
    assert all(b <= 300 * 1024 for b in record["ours"]["used_bytes"].values())
    assert 0 < record["bound"] <= record["ours"]["bottleneck_s"]
    text = run(*options)
    assert "simulated" in text
    assert "model.layers.0" in text


def test_says_how_much_is_missing(config: str) -> None:
    record = json.loads(
        run(config, "--max-memory", "cuda:0=100KiB", "--counting", "weights", "--json", code=1)
    )
    assert record["status"] == "infeasible"
    total = 2 * (4 * (4 * 64 * 64 + 3 * 64 * 128 + 2 * 64) + 2 * 200 * 64 + 64)
    # The rotary frequencies are float32 buffers of 8, the second one a copy of the first.
    assert total - 100 * 1024 <= record["short_bytes"] <= total + 64 - 100 * 1024


def test_misuse(config: str, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="needs --max-memory"):
        run(config)
    with pytest.raises(ParameterError, match="DEVICE=SIZE"):
        run(config, "--max-memory", "20GiB")
    with pytest.raises(ParameterError, match="not a size"):
        run(config, "--max-memory", "cpu=lots")
    with pytest.raises(ParameterError, match="batch,prompt,new"):
        run(config, "--max-memory", "cpu=1GiB", "--tokens", "1,2")
    with pytest.raises(ModelError, match=r"config\.json"):
        run(str(tmp_path / "nothing"), "--max-memory", "cpu=1GiB")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "config.json").write_text('{"model_type": "unheard-of"}')
    with pytest.raises(ModelError, match="not a transformers configuration"):
        run(str(tmp_path / "bad"), "--max-memory", "cpu=1GiB")
