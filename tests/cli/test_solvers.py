from pathlib import Path

import pytest

from situs.cli.solvers import solvers
from situs.errors import InputError


def test_says_where_to_run_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="checkout"):
        solvers(tmp_path)


def test_says_which_folder_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    with pytest.raises(InputError, match="--data"):
        solvers(tmp_path)
