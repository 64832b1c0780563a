"""Situs decides on which device each operator of a neural network runs, and runs it that way.

The public names load on first use, so that ``import situs`` stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from situs.api import (
        compile,
        devices,
        load,
        load_placement,
        place,
        save,
    )

_API = ("compile", "devices", "load", "load_placement", "place", "save")

__all__ = [
    "__version__",
    "compile",
    "devices",
    "load",
    "load_placement",
    "place",
    "save",
]


def __getattr__(name: str) -> Any:
    if name in _API:
        import situs.api

        return getattr(situs.api, name)
    raise AttributeError(f"module 'situs' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
