"""Every export is read back by the program that it is made for."""

import csv
import importlib.util
import io
import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

from saved import saved_placement
from situs import api
from situs.cli.app import app
from situs.core import Sequential
from situs.core.placement_file import PlacementFile, write_placement
from situs.core.problem_record import problem_to_record
from situs.errors import ModelError, ParameterError
from situs.graph import OpSpec, build_graph
from situs.report.exports import EXPORTS, export_text
from situs.report.onnx_export import ANNOTATION, DEVICE, annotate_onnx
from situs.report.saved import Saved
from situs.testing.models import light_models, two_towers

NAMES = ['a"b\\', "</svg>&", "née 🧠\nline", "c:0/d.e", "\x00bell\x07"]


@pytest.fixture(scope="module")
def strange() -> Saved:
    specs = [
        OpSpec(
            name=name,
            type="Relu",
            sources=[(i - 1, 0)] if i else [],
            output_shapes=[(1,)],
            output_dtypes=["f32"],
            output_bytes=[4],
            is_input=i == 0,
            is_output=i == len(NAMES) - 1,
        )
        for i, name in enumerate(NAMES)
    ]
    return saved_placement(build_graph('x"y', specs, []))


def run(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def write(saved: Saved, path: Path) -> Path:
    record = saved.record | {"problem": problem_to_record(saved.problem)}
    write_placement(path, replace(saved.file, record=record), saved.problem.graph)
    return path


def test_csv_is_read_by_a_csv_reader(strange: Saved) -> None:
    rows = list(csv.DictReader(io.StringIO(export_text(strange, "csv"), newline="")))
    assert [row["op"] for row in rows] == NAMES
    assert [row["device"] for row in rows] == [
        strange.problem.cluster.names[d] for d in strange.assignment
    ]
    assert float(rows[1]["seconds CPU"]) == pytest.approx(
        strange.problem.costs.seconds[1, 0], rel=1e-5
    )


def test_dot_is_read_by_pydot(strange: Saved) -> None:
    pydot = pytest.importorskip("pydot", reason="pydot is not installed")
    (graph,) = pydot.graph_from_dot_data(export_text(strange, "dot"))
    nodes = {n.get_name(): n for n in graph.get_nodes() if n.get_name().startswith("n")}
    nodes.pop("node", None)
    assert len(nodes) == len(NAMES)
    assert {(e.get_source(), e.get_destination()) for e in graph.get_edges()} == {
        ("n0", "n1"),
        ("n1", "n2"),
        ("n2", "n3"),
        ("n3", "n4"),
    }
    assert nodes["n0"].get_label() == '"a\\"b\\\\"'
    devices = [nodes[f"n{i}"].get("device").strip('"') for i in range(len(NAMES))]
    assert devices == [strange.labels[d] for d in strange.assignment]


def test_svg_is_well_formed_and_holds_every_op(strange: Saved) -> None:
    root = ElementTree.fromstring(export_text(strange, "svg"))
    space = "{http://www.w3.org/2000/svg}"
    titles = [title.text or "" for title in root.iter(f"{space}title")]
    assert len(titles) == len(NAMES)
    assert titles[1].startswith("</svg>&\n")
    assert len(list(root.iter(f"{space}polyline"))) == strange.problem.graph.num_edges


def test_model_explorer_data_has_a_value_and_a_colour_per_op(strange: Saved) -> None:
    results = json.loads(export_text(strange, "model-explorer"))["main"]["results"]
    assert list(results) == NAMES
    assert results[NAMES[0]]["value"] == strange.labels[strange.assignment[0]]
    assert results[NAMES[0]]["bgColor"].startswith("#")


def test_perfetto_spans_are_the_ops(strange: Saved) -> None:
    events = json.loads(export_text(strange, "perfetto"))["traceEvents"]
    assert [e["name"] for e in events if e["ph"] == "X" and e["pid"] == 1] == NAMES


def test_an_unknown_format_is_refused(strange: Saved) -> None:
    with pytest.raises(ParameterError, match="csv, dot"):
        export_text(strange, "png")
    assert set(EXPORTS) >= {"openvino", "model-explorer"}


def test_the_openvino_loader_sets_every_affinity_and_runs(tmp_path: Path) -> None:
    import openvino as ov

    ov.save_model(two_towers(), tmp_path / "model.xml", compress_to_fp16=False)
    model = api.load(tmp_path / "model.xml")
    cluster = api.devices(["CPU"], ["CPU_B:threads=1"])
    graph = model.graph
    assignment = (np.arange(graph.num_ops) >= graph.num_ops // 2).astype(np.int32)
    assignment = assignment[np.unique(graph.units, return_index=True)[1]][graph.units]
    template = saved_placement(graph)
    costs = replace(
        template.problem.costs,
        seconds=np.ones((graph.num_ops, 2)),
        link_latency_s=np.zeros((2, 2)),
        link_s_per_byte=np.zeros((2, 2)),
        boundary_s=np.zeros(2),
    )
    problem = replace(template.problem, cluster=cluster, costs=costs, model=Sequential())
    placement = replace(template.file.placement, devices=cluster.names, assignment=assignment)
    saved = Saved(PlacementFile(placement, cluster.devices, template.record), problem)
    path = write(saved, tmp_path / "model.placement.json")
    files = json.loads(run("export", path, "--to", "openvino", "--json"))["files"]
    spec = importlib.util.spec_from_file_location("loader", files[1])
    assert spec is not None
    assert spec.loader is not None
    loader = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loader)
    from situs.executors.runtime import core

    # The virtual device is registered with the process's one core.
    compiled = loader.load(tmp_path / "model.xml", files[0], core())
    assert set(compiled.get_property("EXECUTION_DEVICES")) == {"CPU", "CPU_B"}
    ran = {
        op.get_friendly_name(): op.get_rt_info()["affinity"].astype(str)
        for op in core().read_model(tmp_path / "model.xml").get_ops()
        if "affinity" in op.get_rt_info()
    }
    assert ran == {}  # An IR holds no affinities: without the loader there are none.
    x = np.random.default_rng(0).standard_normal((1, 3, 16, 16)).astype(np.float32)
    alone = core().compile_model(tmp_path / "model.xml", "CPU")
    assert compiled([x])[0] == pytest.approx(alone([x])[0], abs=1e-4)


def test_the_onnx_copy_runs_in_onnx_runtime_and_shows_devices(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    original = light_models()["light_squeezenet"]
    saved = saved_placement(api.load(original).graph)
    path = write(saved, tmp_path / "m.placement.json")
    made, options_file = json.loads(
        run("export", path, "--to", "onnx", "--model", original, "--json")
    )["files"]
    proto = onnx.load(made)
    onnx.checker.check_model(proto)
    shown = {
        name: {p.key: p.value for p in node.metadata_props}
        for node in proto.graph.node
        for name in (node.name, *node.output)
    }
    names = saved.problem.graph.op_names
    known = [i for i, name in enumerate(names) if shown.get(name)]
    # Only folded constants have no device.
    kinds = {n.op_type for n in proto.graph.node if not n.metadata_props}
    assert kinds == {"ConstantOfShape"}
    assert len(known) == 65  # Of 66 nodes: OpenVINO joins the Dropout with what it reads.
    for i in known:
        device = saved.problem.cluster.names[saved.assignment[i]]
        assert shown[names[i]] == {ANNOTATION: device, DEVICE: device}

    options = ort.SessionOptions()
    for key, value in json.loads(Path(options_file).read_text()).items():
        options.add_session_config_entry(key, value)
    session = ort.InferenceSession(made, options, providers=["CPUExecutionProvider"])
    assert session.get_modelmeta().custom_metadata_map["situs.graph"] == saved.file.placement.graph
    port = session.get_inputs()[0]
    x = np.random.default_rng(0).standard_normal(port.shape).astype(np.float32)
    before = ort.InferenceSession(original, providers=["CPUExecutionProvider"])
    got, wanted = session.run(None, {port.name: x}), before.run(None, {port.name: x})
    assert got[0] == pytest.approx(wanted[0])


def test_another_model_is_refused(strange: Saved, tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed")
    with pytest.raises(ModelError, match="none of its nodes"):
        annotate_onnx(strange, light_models()["light_squeezenet"], tmp_path / "out.onnx")
    (tmp_path / "text.onnx").write_text("no model")
    with pytest.raises(ModelError, match="not an ONNX model"):
        annotate_onnx(strange, tmp_path / "text.onnx", tmp_path / "out.onnx")
    assert not (tmp_path / "out.onnx").exists()
