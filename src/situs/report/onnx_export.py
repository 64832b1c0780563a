"""A copy of an ONNX model whose nodes carry their device, for ONNX Runtime and for viewers."""

from __future__ import annotations

from pathlib import Path

from situs.errors import MissingExtraError, ModelError
from situs.report.saved import Saved

ANNOTATION = "layer_ann"
"""Node metadata that ONNX Runtime reads as a layer annotation."""
_IDENTITIES = ("Dropout", "Identity")
DEVICE = "situs.device"
"""Node metadata with the device's own name; viewers show it beside the node."""


def session_entry(saved: Saved) -> tuple[str, str]:
    """The ONNX Runtime session option that sends each annotation to a kind of hardware.

    ONNX Runtime knows devices by kind and number (``cpu``, ``gpu:0``, ``npu``), in the order of its
    own list; ours are numbered per kind in the order of the placement.
    """
    joined: dict[str, list[str]] = {}
    gpus = 0
    for device in saved.problem.cluster.devices:
        kind = {"gpu": f"gpu:{gpus}", "npu": "npu"}.get(device.kind, "cpu")
        gpus += device.kind == "gpu"
        joined.setdefault(kind, []).append(device.name)
    text = ";".join(f"{kind}({','.join(names)})" for kind, names in joined.items())
    return "session.layer_assignment_settings", text


def annotate_onnx(saved: Saved, model: Path, output: Path) -> int:
    """Write ``model`` with its devices to ``output`` and return how many nodes got one.

    A node is matched by its name, by the name of one of its outputs, or by that of an identity that
    reads it: OpenVINO names an op that came from ONNX after one of them. Nodes without a match
    (folded constants) carry none. Weights in external files stay there: write the copy into the
    folder of the model.

    Raises:
        MissingExtraError: If onnx is not installed.
        ModelError: If the model is no ONNX file, or no node of it is in the placement.
    """
    try:
        import onnx
    except ImportError as error:
        raise MissingExtraError("onnx", "report") from error
    from google.protobuf.message import DecodeError

    try:
        proto = onnx.load(str(model), load_external_data=False)
    except (OSError, DecodeError) as error:
        raise ModelError(f"{model}: not an ONNX model: {error}; give the one placed") from error
    placement = saved.file.placement
    device = {
        name: placement.devices[int(d)]
        for name, d in zip(saved.problem.graph.op_names, placement.assignment, strict=True)
    }
    count = 0
    # Readers before what they read: an op may carry the name of an identity that was removed.
    for node in reversed(proto.graph.node):
        found = next((device[k] for k in (node.name, *node.output) if k and k in device), None)
        if found is None:
            continue
        if node.op_type in _IDENTITIES:
            device.setdefault(node.input[0], found)
        count += 1
        for key in (ANNOTATION, DEVICE):
            node.metadata_props.add(key=key, value=found)
    if count == 0:
        raise ModelError(f"{model}: none of its nodes is in the placement; give the model placed")
    proto.metadata_props.add(key="situs.graph", value=placement.graph)
    proto.metadata_props.add(key="situs.devices", value=",".join(placement.devices))
    onnx.save(proto, str(output))
    return count
