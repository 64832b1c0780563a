"""The command line: ``situs COMMAND``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; our own errors are one line and exit code 2 or 1."""
    from situs.cli.app import app, options_of
    from situs.cli.config import config_path, read_config
    from situs.errors import SitusError

    try:
        path = config_path()
        app(default_map=read_config(path, options_of(app)) if path else None)
    except SitusError as error:
        sys.stderr.write(f"error: {' '.join(str(error).split())}\n")
        sys.exit(error.exit_code)
