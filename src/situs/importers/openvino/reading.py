"""Model files to ``ov.Model``, with one-line errors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from situs.errors import ModelError

if TYPE_CHECKING:
    import openvino as ov

EXTENSIONS = (".xml", ".onnx", ".pb", ".pbtxt", ".meta", ".tflite", ".pdmodel")
"""File types that OpenVINO's readers take; a folder must be a TensorFlow SavedModel."""


def first_line(error: Exception) -> str:
    """The line of an OpenVINO message that says what is wrong, without its source locations."""
    noise = ("Exception from ", "Check '", "FrontEnd API failed", "While validating node")
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(noise)] or lines
    return telling[0] if telling else type(error).__name__


def read(path: Path) -> ov.Model:
    """Read a model file or SavedModel folder.

    Raises:
        ModelError: If it is missing, empty, of an unknown type, or not readable.
    """
    _check(path)
    import openvino as ov

    try:
        return ov.Core().read_model(path)
    except (RuntimeError, ValueError, TypeError) as error:
        raise ModelError(
            f"cannot read model {str(path)!r}: {first_line(error)}; "
            "check that the file is complete and of the type that its name says"
        ) from error


def _check(path: Path) -> None:
    known = ", ".join(EXTENSIONS)
    try:
        size = path.stat().st_size
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ModelError(f"cannot read model {str(path)!r}: {reason}; check the path") from error
    if path.is_dir():
        if not any((path / f"saved_model.{kind}").is_file() for kind in ("pb", "pbtxt")):
            raise ModelError(
                f"cannot read model {str(path)!r}: a folder without saved_model.pb; give a "
                f"TensorFlow SavedModel folder or a file of type {known}"
            )
    elif path.suffix.lower() not in EXTENSIONS:
        raise ModelError(
            f"cannot read model {str(path)!r}: unknown file type {path.suffix!r}; known: {known}, "
            "or a TensorFlow SavedModel folder"
        )
    elif size == 0:
        raise ModelError(f"cannot read model {str(path)!r}: the file is empty; export it again")
