"""Whole networks: the ``light_*`` models and a sample of the ONNX backend tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino as ov
import pytest

from situs.errors import ModelError
from situs.graph import Graph
from situs.importers import load_model
from situs.testing.backend import backend_cases
from situs.testing.models import light_models

# Ops in the file as OpenVINO reads it, and ops of our graph (377 of inception_v2 incl. its input
# and output depend on the input).
SIZES = {
    "light_bvlc_alexnet": (168, 37),
    "light_densenet121": (3690, 671),
    "light_inception_v1": (1030, 205),
    "light_inception_v2": (1958, 377),
    "light_resnet50": (933, 182),
    "light_shufflenet": (1391, 210),
    "light_squeezenet": (467, 95),
    "light_vgg19": (336, 70),
    "light_zfnet512": (144, 37),
}


@pytest.mark.parametrize("name", SIZES)
def test_light_model(name: str) -> None:
    raw, ours = SIZES[name]
    model = ov.Core().read_model(light_models()[name])
    assert len(model.get_ops()) == raw
    imported = load_model(model)
    graph = imported.graph
    assert graph.num_ops == ours
    assert _reachable(graph).all()
    # No weight is computed any more, and nothing but the weights' own bytes is counted.
    stored = [n for n in imported.model.get_ops() if n.get_type_name() == "Constant"]
    assert len(imported.model.get_ops()) == graph.num_ops + len(stored)
    assert graph.constant_bytes.sum() == sum(n.get_byte_size() for n in stored)
    again = load_model(light_models()[name])
    assert again.graph == _renamed(graph, again.graph)
    assert again.graph.fingerprint == graph.fingerprint


def _reachable(graph: Graph) -> np.ndarray:
    reached = graph.is_input.copy()
    for producer, consumer in zip(graph.edge_producer, graph.consumer_ops, strict=True):
        reached[consumer] |= reached[producer]
    return reached


def _renamed(graph: Graph, like: Graph) -> Graph:
    from dataclasses import replace

    return replace(graph, name=like.name)


def test_known_networks_have_their_published_work() -> None:
    # Multiply-adds: VGG-19 19.6 G, ResNet-50 4.1 G, AlexNet 0.66-0.72 G (papers' and torchvision's
    # figures); weights: VGG-19 143.7 M, ResNet-50 25.6 M, AlexNet 61.0 M parameters.
    for name, giga, million in (
        ("light_vgg19", 19.6, 143.7),
        ("light_resnet50", 4.1, 25.6),
        ("light_bvlc_alexnet", 0.66, 61.0),
    ):
        graph = load_model(light_models()[name]).graph
        assert graph.op_flop.sum() / 2e9 == pytest.approx(giga, rel=0.02)
        assert graph.constant_bytes.sum() / 4e6 == pytest.approx(million, rel=0.01)


def test_fingerprint_ignores_names_and_weights_but_not_shapes() -> None:
    model = ov.Core().read_model(light_models()["light_squeezenet"])
    before = load_model(model).graph
    for i, node in enumerate(model.get_ops()):
        node.set_friendly_name(f"other{i}")
    renamed = load_model(model)
    assert renamed.graph.fingerprint == before.fingerprint
    assert renamed.graph.op_names != before.op_names
    assert load_model(_with_other_weights(renamed.model)).graph.fingerprint == before.fingerprint
    assert load_model(model, {"": [2, 3, 224, 224]}).graph.fingerprint != before.fingerprint


def _with_other_weights(model: ov.Model) -> ov.Model:
    clone = model.clone()
    for node in clone.get_ops():
        if node.get_type_name() == "Constant" and node.get_element_type() == ov.Type.f32:
            other: Any = ov.op.Constant(np.asarray(node.data) + 1)
            node.output(0).replace(other.output(0))
    return clone


def test_every_backend_case_that_openvino_reads_is_imported() -> None:
    # Every 25th of about 2,000; benchmarks/import_onnx_backend.py takes all.
    core = ov.Core()
    imported = 0
    for case in backend_cases(start=3, step=25):
        try:
            model = core.read_model(case.model)
        except RuntimeError:
            continue
        if any(port.get_partial_shape().is_dynamic for port in model.inputs):
            with pytest.raises(ModelError, match="--shape"):
                load_model(model)
            continue
        result = load_model(model)
        names = {node.get_friendly_name() for node in result.model.get_ops()}
        assert names == set(result.graph.op_names) | set(result.constant_owner), case.name
        imported += 1
    assert imported >= 50
