"""Models of each kind, imported: what the graph must say about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import openvino as ov
import pytest

from situs.importers import Imported, load_model
from situs.testing.models import TINY_MODELS, deep_chain


def load(name: str) -> Imported:
    return load_model(TINY_MODELS[name]())


def together(imported: Imported, *names: str) -> bool:
    graph = imported.graph
    return len({int(graph.units[graph.op_index[name]]) for name in names}) == 1


def of_type(imported: Imported, kind: str) -> list[str]:
    graph = imported.graph
    return [n for n, t in zip(graph.op_names, graph.op_types, strict=True) if t == kind]


def names_of(model: ov.Model) -> list[str]:
    return [node.get_friendly_name() for node in model.get_ordered_ops()]


every_kind = pytest.mark.parametrize("make", TINY_MODELS.values(), ids=TINY_MODELS.keys())


@every_kind
def test_every_node_is_an_op_or_has_an_owner(make: Callable[[], ov.Model]) -> None:
    imported = load_model(make())
    names = names_of(imported.model)
    assert len(set(names)) == len(names)
    assert set(names) == set(imported.graph.op_names) | set(imported.constant_owner)
    assert not set(imported.graph.op_names) & set(imported.constant_owner)


@every_kind
def test_tensors_are_as_large_as_their_shapes_say(make: Callable[[], ov.Model]) -> None:
    graph = load_model(make()).graph
    for shape, dtype, size in zip(
        graph.tensor_shape, graph.tensor_dtype, graph.tensor_bytes, strict=True
    ):
        assert size == np.prod(shape) * {"boolean": 8}.get(dtype, _bits(dtype)) / 8


def _bits(dtype: str) -> int:
    return int(getattr(ov.Type, dtype).bitwidth)


@every_kind
def test_edges_inputs_and_outputs_are_the_models(make: Callable[[], ov.Model]) -> None:
    model = make()
    graph = load_model(model).graph
    assert graph.is_input.sum() == len(model.inputs)
    assert graph.is_output.sum() == len(model.outputs)
    # A Result sits with what it returns, and every op but an input reads a tensor or a constant.
    for result in np.flatnonzero(graph.is_output):
        edges = np.flatnonzero(graph.consumer_ops == result)
        assert all(graph.units[graph.edge_producer[edges]] == graph.units[result])


@every_kind
def test_the_callers_model_is_untouched(make: Callable[[], ov.Model]) -> None:
    model = make()
    before = [(n.get_friendly_name(), n.get_type_name()) for n in model.get_ordered_ops()]
    imported = load_model(model)
    assert imported.model is not model
    assert imported.path is None
    after = [(n.get_friendly_name(), n.get_type_name()) for n in model.get_ordered_ops()]
    assert before == after
    assert all("DisableConstantFolding_0" not in n.get_rt_info() for n in imported.model.get_ops())


@every_kind
def test_two_loads_agree(make: Callable[[], ov.Model]) -> None:
    first, second = load_model(make()), load_model(make())
    assert first.graph.fingerprint == second.graph.fingerprint
    assert [*first.graph.op_names] == [*second.graph.op_names]


@every_kind
def test_the_prepared_model_computes_the_same(make: Callable[[], ov.Model]) -> None:
    model = make()
    inputs = [_random_input(port) for port in model.inputs]
    want, got = (_run(m, inputs) for m in (model, load_model(model).model))
    assert len(want) == len(got)
    for a, b in zip(want, got, strict=True):
        assert a.shape == b.shape
        if a.dtype.kind in "fiub":
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def _random_input(port: Any) -> Any:
    if port.get_element_type() == ov.Type.string:
        return np.array(["some", "text"])
    rng = np.random.default_rng(3)
    dtype = port.get_element_type().to_dtype()
    return (rng.standard_normal(tuple(port.get_shape())) * 2).astype(dtype)


def _run(model: ov.Model, inputs: list[Any]) -> list[np.ndarray]:
    compiled = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    result = compiled.create_infer_request().infer(inputs)
    return [result[i].copy() for i in range(len(model.outputs))]


def test_a_shared_constant_is_counted_once_and_moves_nothing() -> None:
    imported = load("shared_constant")
    graph = imported.graph
    assert graph.constant_bytes.tolist() == [32]
    readers = {graph.op_types[i] for i in graph.reader_ops}
    assert readers == {"Add", "Multiply", "Subtract"}
    add, multiply = of_type(imported, "Add")[0], of_type(imported, "Multiply")[0]
    assert not together(imported, add, multiply)


def test_tied_weights_are_counted_once() -> None:
    graph = load("tied_weights").graph
    assert graph.constant_bytes.tolist() == [16 * 16 * 4]
    assert len(graph.reader_ops) == 3


def test_a_states_whole_path_stays_together() -> None:
    imported = load("state")
    path = [*of_type(imported, "ReadValue"), "between", "path", *of_type(imported, "Assign")]
    assert together(imported, *path)
    assert not together(imported, "path", "after")


def test_two_states_stay_apart() -> None:
    imported = load("two_states")
    reads = of_type(imported, "ReadValue")
    assert together(imported, reads[0], "k_add") != together(imported, reads[0], "v_add")
    assert not together(imported, "k_add", "v_add")
    assert not together(imported, "k_add", "k_relu")


def test_a_shape_chain_stays_with_its_reader() -> None:
    imported = load("shape_chain")
    assert together(imported, "shape", "count", "target", "shaped")
    assert not together(imported, "rows", "shape")
    assert not together(imported, "shaped", "end")
    # 4 x 4 values can have at most 16 non-zero ones.
    graph = imported.graph
    assert graph.tensor_shape[graph.op_tensors[graph.op_index["rows"]]] == (16, 2)


def test_static_shape_chains_are_folded_away() -> None:
    graph = load("static_shape_chains").graph
    assert set(graph.op_types) == {"Parameter", "Reshape", "Relu", "Result"}


def test_duplicate_and_missing_names_become_unique() -> None:
    graph = load("duplicate_names").graph
    assert graph.op_names[0] == "same"
    assert graph.op_types == ("Parameter", "Relu", "Sigmoid", "Add", "Tanh", "Result")


def test_names_are_kept_as_they_are() -> None:
    names = load("weird_names").graph.op_names
    assert {'a"b\\c', "line\nbreak\ttab", "名前.1", "../../etc", " "} <= set(names)


def test_a_loop_is_one_op_with_its_bodys_weights_and_work() -> None:
    graph = load("loop_body").graph
    loop = graph.op_types.index("TensorIterator")
    assert int(graph.op_constant_bytes[loop]) == 8 * 8 * 4 + 8
    # 5 steps of an 8 x 8 product, 8 additions and 8 hyperbolic tangents at 10.
    assert graph.op_flop[loop] == 5 * (2 * 64 + 8 + 80)


def test_an_if_owns_the_weight_that_only_its_branch_reads() -> None:
    graph = load("onnx_if").graph
    branch = graph.op_types.index("If")
    assert int(graph.op_constant_bytes[branch]) == 8 * 8 * 4
    assert graph.op_flop[branch] == 2 * 8 * 8 * 2
    assert graph.op_types.count("If") == 1


def test_compressed_weights_stay_compressed() -> None:
    imported = load("compressed_weights")
    graph = imported.graph
    size = dict(zip(graph.op_names, graph.op_constant_bytes.tolist(), strict=True))
    assert size["i8"] == 64 * 64 + 64 + 64 * 4
    assert size["u4"] == 64 * 64 // 2 + 64 + 64 * 4
    assert size["f16"] == 64 * 64 * 2
    assert set(graph.op_types) == {"Parameter", "MatMul", "Relu", "Result"}
    kinds = [n.get_type_name() for n in imported.model.get_ops()]
    assert kinds.count("Convert") == 5


def test_a_shared_decompression_chain_ties_no_ops() -> None:
    imported = load("tied_compressed")
    graph = imported.graph
    assert sorted(graph.constant_bytes.tolist()) == [8, 32 * 4, 32 * 16]
    assert not together(imported, "embed", "head")
    # Each reader has its own Convert and Multiply, over the same stored constants.
    owners = [
        imported.constant_owner[n.get_friendly_name()]
        for n in imported.model.get_ops()
        if n.get_type_name() == "Multiply"
    ]
    assert sorted(owners) == sorted([graph.op_index["embed"], graph.op_index["head"]])


def test_quantised_weights_stay_quantised() -> None:
    imported = load("fake_quantized")
    kinds = [n.get_type_name() for n in imported.model.get_ops()]
    assert kinds.count("FakeQuantize") == 2
    assert imported.graph.op_types.count("FakeQuantize") == 1


def test_a_computed_constant_counts_as_its_result() -> None:
    graph = load("constant_chain").graph
    assert graph.op_types == ("Parameter", "Convolution", "Result")
    assert graph.constant_bytes.tolist() == [2 * 72 * 4]


def test_an_unread_input_is_kept() -> None:
    graph = load("unread_input").graph
    mask = graph.op_index["mask"]
    assert graph.is_input[mask]
    assert graph.colocation[mask] == -1


def test_outputs_may_be_inputs_or_constants() -> None:
    imported = load("passthrough")
    assert imported.graph.op_types.count("Result") == 3
    assert sorted(imported.graph.constant_bytes.tolist()) == [24]


def test_an_op_that_reads_a_value_twice_is_one_consumer() -> None:
    graph = load("many_outputs").graph
    squared = graph.op_index["squared"]
    assert (graph.consumer_ops == squared).sum() == 1
    split = graph.op_types.index("Split")
    ports = graph.tensor_port[graph.op_tensors[split] : graph.op_tensors[split + 1]]
    assert ports.tolist() == [0, 1, 2]
    edge = int(np.flatnonzero(graph.consumer_ops == squared)[0])
    assert graph.tensor_port[graph.edge_tensor[edge]] == 2


def test_disconnected_parts_stay_disconnected() -> None:
    imported = load("disconnected")
    assert not together(imported, "x", "z")


def test_random_numbers_are_no_constant() -> None:
    graph = load("random_branch").graph
    assert "RandomUniform" in graph.op_types


def test_strings_stay_with_their_readers() -> None:
    imported = load("strings")
    assert together(imported, "text", *of_type(imported, "StringTensorUnpack"))
    assert not together(imported, "text", "lengths")


def test_a_deep_chain_needs_no_recursion() -> None:
    assert load_model(deep_chain(3000)).graph.num_ops == 3002


def test_the_first_reader_takes_its_input() -> None:
    imported = load("diamond_sums")
    graph = imported.graph
    b = graph.op_index["b"]
    readers = graph.consumer_ops[graph.edge_producer == b]
    assert sorted(graph.units[readers] == graph.units[b]) == [False, True]
