"""Constants of a model: computed ones become plain, compressed ones stay, none joins two ops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from situs.importers.openvino.table import SINKS, Row, varies

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


def keeps_compressed(node: ov.Node, kind: str) -> bool:
    """Whether folding a node of type ``kind``, if constant, would blow up compressed weights."""
    if kind in ("FakeQuantize", "FakeConvert"):
        return True
    return (
        kind == "Convert"
        and node.get_input_element_type(0).get_type_name() in COMPRESSED
        and node.get_output_element_type(0).get_type_name() in _DECOMPRESSED
    )


def fold(model: ov.Model, rows: list[Row]) -> bool:
    """Fold in place what depends on no input, except the chains that decompress weights.

    A chain that stays is cloned for each op that reads it (its stored constants stay
    shared), so that no constant ties two ops to one device. Returns whether ``rows`` no longer
    describe the model.
    """
    computed = {i for i, row in enumerate(rows) if not row.placed and row.type != "Constant"}
    kept = [i for i in computed if keeps_compressed(rows[i].node, rows[i].type)]
    stays = set(kept)
    for i in sorted(computed):
        if any(source in stays for source, _ in rows[i].sources):
            stays.add(i)
    left = {rows[i].node.get_instance_id() for i in stays}
    folds = computed != stays or any(row.type == "ShapeOf" for row in rows)
    while folds:
        _run_pass(model, [rows[i].node for i in kept])
        left, identities = _left(model)
        if not identities:
            break
        # OpenVINO neither folds nor evaluates an Identity; behind it all would stay computed.
        for node in identities:
            node.output(0).replace(node.input_value(0))
        model.validate_nodes_and_infer_types()
    return bool(left and _separate_chains(model, left)) or folds


def _run_pass(model: ov.Model, kept: list[ov.Node]) -> None:
    from openvino.passes import ConstantFolding, Manager

    for node in kept:
        node.get_rt_info()[_KEEP] = ""
    manager = Manager()
    manager.register_pass(ConstantFolding())
    manager.run_passes(model)
    for node in kept:
        del node.get_rt_info()[_KEEP]


def _left(model: ov.Model) -> tuple[set[int], list[ov.Node]]:
    """Nodes that are constant and yet no Constant, and those of them that only pass one on."""
    varying: set[int] = set()
    left: set[int] = set()
    identities: list[ov.Node] = []
    for node in model.get_ordered_ops():
        kind, number = node.get_type_name(), node.get_instance_id()
        if kind == "Constant":
            continue
        sources = [value.get_node().get_instance_id() for value in node.input_values()]
        if not varying.isdisjoint(sources) or varies(node, kind):
            varying.add(number)
        elif kind not in SINKS:
            left.add(number)
            if kind == "Identity" and left.isdisjoint(sources):
                identities.append(node)
    return left, identities


def _separate_chains(model: ov.Model, left: set[int]) -> bool:
    import openvino as ov

    changed = False
    owner: dict[int, int] = {}
    for node in model.get_ordered_ops():
        reader = node.get_instance_id()
        if reader in left:
            continue
        for port in node.inputs():
            source = port.get_source_output()
            if source.get_node().get_instance_id() not in left:
                continue
            chain = _chain(source.get_node())
            links = [link.get_instance_id() for link in chain]
            if any(owner.setdefault(link, reader) != reader for link in links):
                copy = ov.Model([source], []).clone().get_results()[0].input_value(0)
                _share_constants(chain, _chain(copy.get_node()))
                port.replace_source_output(copy)
                changed = True
    return changed


def _share_constants(chain: list[Any], copies: list[Any]) -> None:
    for node, copy in zip(chain, copies, strict=True):
        for port, value in zip(copy.inputs(), node.input_values(), strict=True):
            if value.get_node().get_type_name() == "Constant":
                port.replace_source_output(value)


def _chain(node: Any) -> list[Any]:
    """The nodes that compute a constant, without its stored leaves."""
    seen: dict[int, Any] = {}
    stack = [node]
    while stack:
        top = stack.pop()
        number = top.get_instance_id()
        if top.get_type_name() == "Constant" or number in seen:
            continue
        seen[number] = top
        stack.extend(value.get_node() for value in top.input_values())
    return list(seen.values())
