import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_the_demo_places_and_runs_a_real_model(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / "demo.py")]
    command += ["--model", "light_squeezenet", "--folder", str(tmp_path / "demo")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    placement = json.loads((tmp_path / "demo" / "light_squeezenet.placement.json").read_text())
    assert set(placement["ops"].values()) <= {"CPU", "CPU_B"}
    assert "as planned" in done.stdout


def test_every_command_of_the_readme_exists() -> None:
    from typer.testing import CliRunner

    from situs.cli.app import app

    readme = (ROOT / "README.md").read_text()
    commands = set(re.findall(r"^    situs (\w+)", readme, re.MULTILINE))
    assert {"place", "run", "inspect", "devices", "simulate"} <= commands
    for command in commands:
        shown = CliRunner().invoke(app, [command, "--help"])
        assert shown.exit_code == 0
        options = re.findall(rf"^    situs {command} .*", readme, re.MULTILINE)
        for option in {o for line in options for o in re.findall(r"--[a-z-]+", line)}:
            assert option in shown.output


def test_the_readmes_python_runs(squeezenet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    readme = (ROOT / "README.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    monkeypatch.chdir(squeezenet.parent)
    block = block.replace("model.onnx", squeezenet.name)
    image = np.random.default_rng(0).standard_normal((1, 3, 224, 224)).astype(np.float32)
    scope: dict[str, object] = {"image": image}
    exec(block, scope)
    assert np.isfinite(next(iter(scope["outputs"].values()))).all()  # type: ignore[attr-defined]
