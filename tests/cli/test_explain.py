import json
from pathlib import Path

from typer.testing import CliRunner

from saved import saved_chain
from situs.cli.app import app


def test_explain_shows_times_and_moves(tmp_path: Path) -> None:
    path = saved_chain(tmp_path / "p.json")
    shown = CliRunner().invoke(app, ["explain", str(path), "--op", "b"])
    assert shown.exit_code == 0
    assert "33.33 %" in shown.stdout
    assert "+1000.0000" in shown.stdout
    assert "awaits a: D0 -> D1" in shown.stdout
    record = json.loads(
        CliRunner().invoke(app, ["explain", str(path), "--op", "b", "--json"]).stdout
    )
    assert record["predicted_change_s"]["group"] == {"D0": 1.0, "D1": 0.0}
