"""Real and tiny models: the ``light_*`` networks, and one of each kind that breaks such tools."""

from __future__ import annotations

from pathlib import Path


def light_models() -> dict[str, Path]:
    """The nine ``light_*.onnx`` networks that the onnx package ships, by name.

    Their weights are constant; see ``situs.testing.weights.randomize_weights``.
    """
    import onnx

    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    return {path.stem: path for path in sorted(folder.glob("light_*.onnx"))}
