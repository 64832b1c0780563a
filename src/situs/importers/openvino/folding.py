"""Constants of a model: computed ones become plain, compressed ones stay, none joins two ops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from situs.importers.openvino.table import SINKS, varies

if TYPE_CHECKING:
    import openvino as ov

COMPRESSED = frozenset(
    {
        *("i8", "u8", "i4", "u4", "u2", "u3", "u6", "u1", "f16", "bf16"),
        *("nf4", "f8e4m3", "f8e5m2", "f8e8m0", "f4e2m1"),
    }
)
"""Element types in which weights are stored to save memory."""

_DECOMPRESSED = frozenset(("f16", "bf16", "f32", "f64"))
# What OpenVINO's ConstantFolding looks for in a node's rt_info; it has no Python name.
_KEEP = "DisableConstantFolding_0"


def keeps_compressed(node: ov.Node) -> bool:
    """Whether folding ``node``, which depends on no input, would blow up compressed weights."""
    kind = node.get_type_name()
    if kind in ("FakeQuantize", "FakeConvert"):
        return True
    return (
        kind == "Convert"
        and node.get_input_element_type(0).get_type_name() in COMPRESSED
        and node.get_output_element_type(0).get_type_name() in _DECOMPRESSED
    )


def fold(model: ov.Model) -> None:
    """Fold in place what depends on no input, except the chains that decompress weights.

    OpenVINO's own pass does most of it; what it leaves is evaluated op by op. A chain that stays
    is cloned for each op that reads it (its stored constants share their memory), so that no
    constant ties two ops to one device.
    """
    from openvino.passes import ConstantFolding, Manager

    kept = [node for node in model.get_ordered_ops() if keeps_compressed(node)]
    for node in kept:
        node.get_rt_info()[_KEEP] = ""
    manager = Manager()
    manager.register_pass(ConstantFolding())
    manager.run_passes(model)
    for node in kept:
        del node.get_rt_info()[_KEEP]
    _evaluate_rest(model)
    _separate_chains(model)


def _evaluate_rest(model: ov.Model) -> None:
    import openvino as ov

    varying: set[int] = set()
    for node in model.get_ordered_ops():
        sources = [value.get_node() for value in node.input_values()]
        if varies(node) or any(s.get_instance_id() in varying for s in sources):
            varying.add(node.get_instance_id())
            continue
        kind = node.get_type_name()
        if kind in SINKS or kind == "Constant" or keeps_compressed(node):
            continue
        if any(s.get_type_name() != "Constant" for s in sources):
            continue
        ports = node.outputs()
        if any(p.get_partial_shape().is_dynamic for p in ports):
            continue
        results = [ov.Tensor(p.get_element_type(), p.get_shape()) for p in ports]
        if not node.evaluate(results, [s.get_tensor_view() for s in sources]):
            continue
        for port, result in zip(ports, results, strict=True):
            constant = ov.op.Constant(result)
            constant.set_friendly_name(node.get_friendly_name())
            port.replace(constant.output(0))


def _separate_chains(model: ov.Model) -> None:
    import openvino as ov

    varying: set[int] = set()
    owner: dict[int, int] = {}
    for node in model.get_ordered_ops():
        reader = node.get_instance_id()
        if varies(node) or any(
            value.get_node().get_instance_id() in varying for value in node.input_values()
        ):
            varying.add(reader)
        elif node.get_type_name() not in SINKS:
            continue
        for port in node.inputs():
            source = port.get_source_output()
            if source.get_node().get_instance_id() in varying:
                continue
            chain = _chain(source.get_node())
            if all(owner.setdefault(link, reader) == reader for link in chain):
                continue
            copy = ov.Model([source], []).clone()
            port.replace_source_output(copy.get_results()[0].input_value(0))


def _chain(node: Any) -> list[int]:
    """The nodes that compute a constant, without its stored leaves."""
    seen: dict[int, None] = {}
    stack = [node]
    while stack:
        top = stack.pop()
        number = top.get_instance_id()
        if top.get_type_name() == "Constant" or number in seen:
            continue
        seen[number] = None
        stack.extend(value.get_node() for value in top.input_values())
    return list(seen)
