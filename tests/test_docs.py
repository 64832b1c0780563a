"""The documentation builds strictly, and every block of it runs."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ["index", "concepts", "how-to", "pytorch", "algorithms", "formats", "extend", "benchmarks"]


def test_every_block_runs_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from situs.testing.models import light_models

    assert {path.stem for path in (ROOT / "docs").glob("*.md")} == set(PAGES)
    shutil.copy(light_models()["light_squeezenet"], tmp_path / "model.onnx")
    monkeypatch.chdir(tmp_path)
    ran = 0
    for page in PAGES:
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        scope: dict[str, object] = {"__name__": page}
        for kind, block in re.findall(r"```(\w+)\n(.*?)```", text, re.DOTALL):
            ran += 1
            if kind == "python":
                exec(compile(block, f"docs/{page}.md", "exec"), scope)
                continue
            assert kind == "bash"
            for line in block.strip().splitlines():
                program, *arguments = shlex.split(line)
                assert program == "situs"
                command = [sys.executable, "-c", "from situs.cli import main; main()", *arguments]
                done = subprocess.run(command, capture_output=True, text=True, timeout=240)
                assert done.returncode == 0, f"{line}\n{done.stderr}"
    assert ran >= 12
    assert (tmp_path / "model.html").stat().st_size > 1e6


def test_the_readmes_commands_and_code_run_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import numpy as np

    from situs.testing.models import light_models

    shutil.copy(light_models()["light_squeezenet"], tmp_path / "model.onnx")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^    (situs .*)$", text, re.MULTILINE)
    assert len(commands) >= 9
    for line in commands:
        program, *arguments = shlex.split(line, comments=True)
        assert program == "situs"
        command = [sys.executable, "-c", "from situs.cli import main; main()", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    image = np.random.default_rng(0).random((1, 3, 224, 224), dtype=np.float32)
    scope: dict[str, object] = {"__name__": "readme", "image": image}
    exec(compile(block, "README.md", "exec"), scope)
    assert scope["outputs"] is not None


def test_the_site_builds_strictly(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="mkdocs is not installed")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=240)
    assert done.returncode == 0, done.stderr
    algorithms = (tmp_path / "algorithms" / "index.html").read_text(encoding="utf-8")
    assert "Stone" in algorithms
    assert "hsdag" in algorithms
    assert "<table>" in (tmp_path / "benchmarks" / "index.html").read_text(encoding="utf-8")
