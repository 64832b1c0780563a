"""``situs export``: a placement in the formats of other tools."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from situs.cli.explain import Saved
from situs.cli.output import Json, out, print_json
from situs.core.placement_file import check_writable, write_text
from situs.errors import ParameterError
from situs.report.exports import EXPORTS, export_text, openvino_loader
from situs.report.onnx_export import annotate_onnx, session_entry
from situs.report.saved import read_saved


def export(
    placement: Saved,
    to: Annotated[str, typer.Option(help=f"One of {', '.join(sorted([*EXPORTS, 'onnx']))}.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Default: beside PLACEMENT.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="The ONNX model that was placed; only for --to onnx.")
    ] = None,
    json: Json = False,
) -> None:
    """Write a placement for another tool.

    openvino writes an affinity map and a loader that sets it; onnx a copy of the model whose nodes
    carry their device, and the session option that ONNX Runtime needs; the others csv, dot, svg,
    Model Explorer node data and a Perfetto trace.

    Example: situs export model.placement.json --to openvino
    """
    kinds = sorted([*EXPORTS, "onnx"])
    if to not in kinds:
        raise ParameterError(f"--to must be one of {', '.join(kinds)}; got {to!r}")
    saved = read_saved(placement)
    suffix = ".placed.onnx" if to == "onnx" else EXPORTS[to].suffix
    stem = placement.name.removesuffix(".json").removesuffix(".placement")
    path = output or placement.with_name(stem + suffix)
    check_writable(path)
    written = [path]
    if to == "onnx":
        if model is None:
            raise ParameterError("--to onnx copies the model: give it with --model MODEL.onnx")
        annotate_onnx(saved, model, path)
        written.append(path.with_name(path.name + ".session.json"))
        check_writable(written[1])
        write_text(written[1], dumps(dict([session_entry(saved)]), indent=1) + "\n")
    else:
        write_text(path, export_text(saved, to))
    if to == "openvino":
        written.append(path.with_name(path.name.removesuffix(".json") + ".load.py"))
        check_writable(written[1])
        write_text(written[1], openvino_loader())
    if json:
        print_json({"format": to, "files": [str(name) for name in written]})
        return
    for name in written:
        out.print(f"written to {name}", markup=False, soft_wrap=True)
