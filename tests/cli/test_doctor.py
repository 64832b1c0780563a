import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from saved import saved_chain
from situs.cli.app import app, options_of
from situs.cli.config import config_path, read_config
from situs.cli.doctor import accelerators
from situs.errors import ParameterError


def situs(*args: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from situs.cli import main; main()", *map(str, args)]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, env=os.environ | environment, timeout=120
    )


def test_doctor_lists_packages_and_devices() -> None:
    done = CliRunner().invoke(app, ["doctor", "--json"])
    assert done.exit_code == 0
    found = {f["what"]: f for f in json.loads(done.stdout)["findings"]}
    assert found["openvino"]["ok"]
    assert found["device CPU"]["found"]


def test_the_cause_of_an_unseen_gpu_is_named(tmp_path: Path) -> None:
    devices, loaders = tmp_path / "dev", tmp_path / "vendors"
    loaders.mkdir()
    (devices / "dri").mkdir(parents=True)
    (none,) = accelerators({"cpu"}, devices, loaders)
    assert none.ok
    assert "--device /dev/dri" in none.advice
    (devices / "dri" / "renderD128").touch()
    (no_driver,) = accelerators({"cpu"}, devices, loaders)
    assert not no_driver.ok
    assert "OpenCL driver" in no_driver.advice
    (loaders / "intel.icd").touch()
    (unknown,) = accelerators({"cpu"}, devices, loaders)
    assert "not listed" in unknown.found
    (devices / "accel").mkdir()
    (devices / "accel" / "accel0").touch()
    gpu, npu = accelerators({"cpu", "gpu"}, devices, loaders)
    assert gpu.ok
    assert not npu.ok


def test_a_config_file_gives_defaults_and_the_command_line_wins(tmp_path: Path) -> None:
    saved_chain(tmp_path / "p.json")
    (tmp_path / "situs.toml").write_text("[explain]\nop = 'b'\njson = true\n")
    done = situs("explain", "p.json", cwd=tmp_path)
    assert json.loads(done.stdout)["op"] == "b", done.stderr
    done = situs("explain", "p.json", "--op", "c", cwd=tmp_path)
    assert json.loads(done.stdout)["op"] == "c"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[plase]\n", "did you mean 'place'"),
        ("[place]\nsede = 1\n", "did you mean 'seed'"),
        ("place = 1\n", r"write \[place\]"),
        ("[", "TOML"),
    ],
)
def test_a_bad_config_file_is_refused(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "situs.toml"
    path.write_text(text)
    with pytest.raises(ParameterError, match=words):
        read_config(path, options_of(app))


def test_a_named_config_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="SITUS_CONFIG"):
        config_path({"SITUS_CONFIG": str(tmp_path / "none.toml")})


def test_every_command_has_help_with_an_example_and_json() -> None:
    for command, options in options_of(app).items():
        if command == "bench":
            continue
        shown = CliRunner().invoke(app, [command, "--help"])
        assert f"situs {command}" in shown.output.split("Example")[1]
        assert "json" in options, command


def test_no_colour_when_piped_or_refused(tmp_path: Path) -> None:
    path = saved_chain(tmp_path / "p.json")
    for environment in ({}, {"NO_COLOR": "1", "FORCE_COLOR": ""}):
        done = situs("explain", path, "--op", "b", cwd=tmp_path, **environment)
        assert "\x1b[" not in done.stdout + done.stderr
