import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from situs.cli.simulate import simulate
from situs.errors import ClusterError, ParameterError

app = typer.Typer()
app.command()(simulate)


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    if result.exception:
        raise result.exception
    return result.output


def test_simulates_on_a_machine_that_is_not_here(squeezenet: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    options = ["--cluster", "rtx-4090", "--placement", "cuda:0", "--trace", str(trace)]
    for model in ("sequential", "dataflow", "pipeline"):
        record = json.loads(run(str(squeezenet), *options, "--execution-model", model, "--json"))
        assert record["simulated"] is True
        assert 0 < record["lower_bound_s"] <= record["simulated_s"] < 1
        events = json.loads(trace.read_text())["traceEvents"]
        rows = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
        assert rows == {"cuda:0"}
    assert "simulated" in run(str(squeezenet), *options)


def test_misuse(squeezenet: Path) -> None:
    with pytest.raises(ClusterError, match="catalogue"):
        run(str(squeezenet), "--cluster", "nothing", "--placement", "CPU")
    with pytest.raises(ClusterError, match="unknown device"):
        run(str(squeezenet), "--cluster", "rtx-4090", "--placement", "GPU.7")
    with pytest.raises(ParameterError, match="sequential, dataflow, pipeline"):
        run(str(squeezenet), "--cluster", "a100", "--placement", "CPU", "--execution-model", "x")
