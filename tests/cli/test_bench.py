import json
from pathlib import Path

import pytest

from situs.cli.bench import learn, paper, solvers
from situs.errors import InputError

CHECKOUT = Path(__file__).parents[2]


def test_says_where_to_run_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "msr-fiddle").mkdir()
    monkeypatch.chdir(tmp_path)
    for command in (lambda: solvers(tmp_path), paper, learn):
        with pytest.raises(InputError, match="checkout"):
            command()


def test_says_which_folder_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CHECKOUT)
    with pytest.raises(InputError, match="--data"):
        solvers(tmp_path)


def test_refuses_an_unknown_placer_before_it_starts() -> None:
    with pytest.raises(InputError, match="did you mean 'hsdag'"):
        learn(placers=["hsdga"])


def test_prints_the_scripts_results_as_json_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "benchmarks" / "learning.py"
    script.parent.mkdir()
    script.write_text(
        "import sys, pathlib\n"
        "print('a table for people')\n"
        "path = sys.argv[sys.argv.index('--output') + 1] + '.json'\n"
        "pathlib.Path(path).write_text('{\"rows\": [1]}')\n"
    )
    monkeypatch.chdir(tmp_path)
    learn(output=tmp_path / "out", json=True)
    shown = capfd.readouterr()
    assert json.loads(shown.out) == {"rows": [1]}
    assert "a table for people" in shown.err
