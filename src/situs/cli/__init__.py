"""The command line: ``situs COMMAND``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; our own errors are one line and exit code 2 or 1."""
    from situs.cli.app import app
    from situs.errors import SitusError

    try:
        app()
    except SitusError as error:
        sys.stderr.write(f"error: {' '.join(str(error).split())}\n")
        sys.exit(error.exit_code)
