"""Cut an OpenVINO model into one model per segment, joined by named tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from situs.executors.segments import Segments

if TYPE_CHECKING:
    import openvino as ov

    from situs.importers import Imported


@dataclass(frozen=True, slots=True)
class Source:
    """Where a tensor comes from: output ``port`` of ``segment``, or model input (segment -1)."""

    segment: int
    port: int


@dataclass(frozen=True, eq=False)
class Piece:
    """One segment as a model of its own.

    Attributes:
        model: Parameters for every tensor from outside, results for every tensor needed outside.
        inputs: Source of each of its inputs, in order.
    """

    model: ov.Model
    inputs: tuple[Source, ...]


@dataclass(frozen=True, eq=False)
class Cut:
    """A model in pieces.

    Attributes:
        pieces: One per segment.
        outputs: Source of each output of the whole model, in order.
    """

    pieces: tuple[Piece, ...]
    outputs: tuple[Source, ...]


def cut(imported: Imported, segments: Segments) -> Cut:
    """Cut the model along segments: on data edges only, constants going with their readers."""
    import openvino as ov
    from openvino import opset13 as ops

    model = imported.model.clone()
    index, owner = imported.graph.op_index, imported.constant_owner
    # Held here so that they outlive the rerouting below.
    nodes = list(model.get_ordered_ops())
    names = [node.get_friendly_name() for node in nodes]
    segment_of = {name: int(segments.of_op[index.get(name, owner.get(name, 0))]) for name in names}
    input_of = {p.get_friendly_name(): i for i, p in enumerate(model.get_parameters())}
    parameters: list[list[Any]] = [[] for _ in range(segments.count)]
    sources: list[list[tuple[str, int]]] = [[] for _ in range(segments.count)]
    exported: list[dict[tuple[str, int], Any]] = [{} for _ in range(segments.count)]
    kinds = {node.get_friendly_name(): node.get_type_name() for node in nodes}
    outputs: list[tuple[str, int]] = []
    for result in model.get_results():
        value = result.input_value(0)
        outputs.append((value.get_node().get_friendly_name(), value.get_index()))
    for node in nodes:
        name = node.get_friendly_name()
        if kinds[name] in ("Result", "Constant"):
            continue
        home = segment_of[name] if name not in input_of else -1
        for output in node.outputs():
            key = (name, output.get_index())
            readers: dict[int, list[Any]] = {}
            for target in output.get_target_inputs():
                reader = target.get_node().get_friendly_name()
                if kinds[reader] != "Result" and segment_of[reader] != home:
                    readers.setdefault(segment_of[reader], []).append(target)
            for segment, targets in readers.items():
                if home < 0 and name not in input_of:
                    continue
                parameter = ops.parameter(output.get_partial_shape(), output.get_element_type())
                for target in targets:
                    target.replace_source_output(parameter.output(0))
                parameters[segment].append(parameter)
                sources[segment].append(key)
            if home >= 0 and (readers or key in outputs):
                exported[home][key] = output
    for key, value in zip(outputs, (r.input_value(0) for r in model.get_results()), strict=True):
        if kinds[key[0]] == "Constant":
            segment_of[key[0]] = 0
            exported[0][key] = value
    ports = [{key: i for i, key in enumerate(values)} for values in exported]

    def source(key: tuple[str, int]) -> Source:
        name = key[0]
        if name in input_of:
            return Source(-1, input_of[name])
        return Source(segment_of[name], ports[segment_of[name]][key])

    sinks: list[list[Any]] = [[] for _ in range(segments.count)]
    for sink in model.get_sinks():
        sinks[segment_of[sink.get_friendly_name()]].append(sink)
    pieces = []
    for k in range(segments.count):
        results = [ops.result(output) for output in exported[k].values()]
        part = ov.Model(results, sinks[k], parameters[k], f"segment{k}")
        pieces.append(Piece(part, tuple(source(key) for key in sources[k])))
    return Cut(tuple(pieces), tuple(source(key) for key in outputs))
