"""Defaults of options from a TOML file: ``situs.toml`` here, or what SITUS_CONFIG names."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from situs.errors import ParameterError

_MAX_BYTES = 1 << 20


def config_path(environment: Mapping[str, str] = os.environ) -> Path | None:
    """The file whose defaults count, or None.

    Raises:
        ParameterError: If SITUS_CONFIG names a file that is not there.
    """
    named = environment.get("SITUS_CONFIG")
    if named:
        if not Path(named).is_file():
            raise ParameterError(f"SITUS_CONFIG names {named}, which is no file; correct it")
        return Path(named)
    return Path("situs.toml") if Path("situs.toml").is_file() else None


def read_config(path: Path, options: Mapping[str, set[str]]) -> dict[str, dict[str, Any]]:
    """Defaults by command and parameter, from one table per command: ``[place] seed = 1``.

    Args:
        path: The file.
        options: Parameter names by command.

    Raises:
        ParameterError: If it cannot be read, or names an unknown command or option.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ParameterError(f"{path}: over 1 MiB; this is not a config file")
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ParameterError(f"{path}: cannot be read as TOML: {error}") from error
    found: dict[str, dict[str, Any]] = {}
    for command, table in document.items():
        _known(command, options, f"{path}: command")
        if not isinstance(table, dict):
            raise ParameterError(f"{path}: write [{command}] and its options below it")
        found[command] = {}
        for key, value in table.items():
            name = key.replace("-", "_")
            _known(name, options[command], f"{path}: [{command}]: option")
            found[command][name] = value
    return found


def _known(name: str, names: Mapping[str, Any] | set[str], what: str) -> None:
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"they are {', '.join(sorted(names))}"
        raise ParameterError(f"{what} {name!r} does not exist; {hint}")
