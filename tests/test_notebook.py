import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_the_example_notebook_runs_and_shows_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src")]))
    notebook = nbformat.read(ROOT / "examples" / "place.ipynb", as_version=4)
    client = nbclient.NotebookClient(
        notebook,
        timeout=240,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    )
    client.execute()
    shown = [
        output["data"].get("text/html", "")
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "execute_result"
    ]
    assert "<td>Convolution</td><td>26</td>" in shown[0]
    assert "CPU_B (virtual) alone" in shown[1]
    assert (tmp_path / "squeezenet.html").stat().st_size > 1e6
