"""``situs export``: a placement in the formats of other tools."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from situs.cli.explain import Saved
from situs.cli.export_torch import SERVERS, export_map
from situs.cli.output import Json, out, print_json
from situs.core.placement_file import check_writable, write_text
from situs.errors import ParameterError
from situs.report.exports import EXPORTS, export_text, openvino_loader
from situs.report.onnx_export import annotate_onnx, session_entry
from situs.report.saved import read_saved

KINDS = sorted([*EXPORTS, "onnx", *SERVERS])


def export(
    placement: Saved,
    to: Annotated[str, typer.Option(help=f"One of {', '.join(KINDS)}.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Default: beside PLACEMENT.")
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(help="The model that was placed: ONNX, or a transformers config.json."),
    ] = None,
    main_device: Annotated[
        str | None,
        typer.Option(help="llama.cpp: what runs the map's layers on cpu [its first accelerator]."),
    ] = None,
    json: Json = False,
) -> None:
    """Write a placement for another tool.

    openvino writes an affinity map and a loader that sets it; onnx a copy of the model whose nodes
    carry their device, and the session option that ONNX Runtime needs; the others csv, dot, svg,
    Model Explorer node data and a Perfetto trace.

    llama.cpp and vllm take a device map that situs place --framework torch wrote, and give the
    arguments that split the model in the same way, or say why there are none.

    Example: situs export model.placement.json --to openvino

    Example: situs export map.json --to vllm --model config.json
    """
    if to not in KINDS:
        raise ParameterError(f"--to must be one of {', '.join(KINDS)}; got {to!r}")
    if to in SERVERS:
        export_map(placement, to, model, main_device, output, json)
        return
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
