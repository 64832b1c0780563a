import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from situs.cli.simulate import simulate
from situs.errors import ClusterError, ParameterError, ProblemError

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
    for model in ("sequential", "dataflow"):
        record = json.loads(run(str(squeezenet), *options, "--execution-model", model, "--json"))
        assert record["simulated"] is True
        assert 0 < record["lower_bound_s"] <= record["simulated_s"] < 1
        events = json.loads(trace.read_text())["traceEvents"]
        spans = [e for e in events if e["ph"] == "X"]
        assert [e["ts"] for e in spans] == sorted(e["ts"] for e in spans)
        until: dict[tuple[int, int], float] = {}
        for e in spans:
            row = e["pid"], e["tid"]
            assert e["ts"] >= until.get(row, 0.0) - 1e-6
            until[row] = e["ts"] + e["dur"]
        names = " ".join(e["args"].get("name", "") for e in events)
        assert "cuda:0" in names
        assert "simulated" in names
    record = json.loads(
        run(str(squeezenet), *options[:4], "--execution-model", "pipeline", "--json")
    )
    assert 0 < record["lower_bound_s"] <= record["simulated_s"]
    with pytest.raises(ProblemError, match="timeline"):
        run(str(squeezenet), *options, "--execution-model", "pipeline")
    assert "simulated" in run(str(squeezenet), *options)


def test_misuse(squeezenet: Path) -> None:
    with pytest.raises(ClusterError, match="catalogue"):
        run(str(squeezenet), "--cluster", "nothing", "--placement", "CPU")
    with pytest.raises(ClusterError, match="unknown device"):
        run(str(squeezenet), "--cluster", "rtx-4090", "--placement", "GPU.7")
    with pytest.raises(ParameterError, match="sequential, dataflow, pipeline"):
        run(str(squeezenet), "--cluster", "a100", "--placement", "CPU", "--execution-model", "x")
