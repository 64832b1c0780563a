import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

DEVICES = ["--devices", "CPU,CPU_B", "--virtual", "CPU_B:threads=1"]


def situs(*args: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from situs.cli import main; main()", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=240)


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """The error of a refused call: exit code 2, nothing on stdout, one line on stderr."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    lines = [s for s in done.stderr.splitlines() if s.startswith("error: ")]
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stderr
    return lines[0]


@pytest.fixture(scope="module")
def placed(squeezenet: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    path = tmp_path_factory.mktemp("placed") / "out.json"
    done = situs("place", squeezenet, *DEVICES, "-o", path, "--json")
    assert done.returncode == 0, done.stderr
    return path, json.loads(done.stdout)


def test_place_measures_every_device_and_keeps_the_fastest(placed: tuple[Path, dict]) -> None:
    path, record = placed
    assert path.exists()
    by_name = {c["name"]: c for c in record["candidates"]}
    alone = [c for name, c in by_name.items() if " alone" in name]
    assert len(alone) == 2
    assert all(c["status"] == "ok" and c["measured_s"] > 0 for c in alone)
    assert any("(virtual)" in name for name in by_name)
    for candidate in by_name.values():
        if candidate["status"] == "ok":
            low, high = candidate["interval_s"]
            assert low <= candidate["measured_s"] <= high
            assert len(candidate["samples_s"]) >= 6
            if candidate["output_check"]:
                assert candidate["output_check"]["passed"]
                assert candidate["output_check"]["varies_with_input"]
    chosen, single = by_name[record["chosen"]], by_name[record["best_single"]]
    # Never slower than the best single device: it is that device, or it is faster beyond doubt.
    assert chosen is single or chosen["ratio_to_best_single"][2] < 1.0
    assert {p["placer"] for p in record["placers"]} >= {"greedy", "mincut", "local-search"}


def test_the_file_runs(placed: tuple[Path, dict], squeezenet: Path) -> None:
    path, record = placed
    document = json.loads(path.read_text())
    assert document["schema"] == "situs-placement/1"
    assert document["record"]["chosen"] == record["chosen"]
    done = situs("run", squeezenet, "--placement", path, "--runs", 5, "--strict", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["latency"]["n"] == 5
    assert report["differences"] == []


def test_a_split_file_runs_with_its_outputs_checked(
    placed: tuple[Path, dict], squeezenet: Path, tmp_path: Path
) -> None:
    document = json.loads(placed[0].read_text())
    names = list(document["ops"])
    for name in names[: len(names) // 2]:
        document["ops"][name] = "CPU"
    for name in names[len(names) // 2 :]:
        document["ops"][name] = "CPU_B"
    path = tmp_path / "split.json"
    path.write_text(json.dumps(document))
    done = situs("run", squeezenet, "--placement", path, "--runs", 5, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["output_check"]["passed"]
    assert report["output_check"]["varies_with_input"]
    assert report["subgraphs"] >= 2
    assert report["devices"]["CPU_B"]["virtual"]


def test_a_placement_of_another_model_is_refused(placed: tuple[Path, dict], tmp_path: Path) -> None:
    x = ops.parameter([1, 3], np.float32, name="x")
    other = tmp_path / "other.xml"
    ov.save_model(ov.Model([ops.result(ops.relu(x))], [x], "other"), other)
    line = one_line(situs("run", other, "--placement", placed[0]))
    assert "another model" in line


@pytest.mark.parametrize(
    "case", ["truncated", "text", "missing", "device", "shape", "output", "placer", "spec"]
)
def test_bad_input_is_one_clear_line_and_leaves_nothing(
    case: str, squeezenet: Path, tmp_path: Path
) -> None:
    from situs.testing.models import light_models

    arguments: list[object] = [squeezenet]
    if case == "truncated":
        cut = tmp_path / "cut.onnx"
        cut.write_bytes(light_models()["light_squeezenet"].read_bytes()[:-3000])
        arguments, words = [cut], ["cut.onnx"]
    elif case == "text":
        text = tmp_path / "text.onnx"
        text.write_text("this is no model\n")
        arguments, words = [text], ["text.onnx"]
    elif case == "missing":
        arguments, words = [tmp_path / "none.onnx"], ["none.onnx"]
    elif case == "device":
        arguments, words = [squeezenet, "--devices", "TPU"], ["TPU", "CPU"]
    elif case == "shape":
        x = ops.parameter([-1, 3], np.float32, name="x")
        dynamic = tmp_path / "dynamic.xml"
        ov.save_model(ov.Model([ops.result(ops.relu(x))], [x], "dynamic"), dynamic)
        arguments, words = [dynamic], ["x", "--shape"]
    elif case == "output":
        arguments, words = [squeezenet, "-o", tmp_path / "no" / "p.json"], ["does not exist"]
    elif case == "placer":
        arguments, words = [squeezenet, "--placer", "mincat"], ["did you mean 'mincut'"]
    else:
        arguments, words = [squeezenet, "--placer", "greedy{x=1}"], ["unknown parameter 'x'"]
    if "-o" not in arguments:
        arguments += ["-o", tmp_path / "out.json"]
    before = sorted(os.listdir(tmp_path))
    line = one_line(situs("place", *arguments))
    for word in words:
        assert word in line
    assert sorted(f for f in os.listdir(tmp_path)) == sorted({*before, *arguments_made(case)})


def arguments_made(case: str) -> list[str]:
    return {
        "truncated": ["cut.onnx"],
        "text": ["text.onnx"],
        "shape": ["dynamic.xml", "dynamic.bin"],
    }.get(case, [])


def test_pins_are_kept_and_a_rule_that_matches_nothing_is_refused(
    squeezenet: Path, tmp_path: Path
) -> None:
    pins = tmp_path / "pins.toml"
    pins.write_text("[[pin]]\ntype = 'Softmax'\ndevice = 'cpu_b'\n")
    path = tmp_path / "out.json"
    arguments = [squeezenet, *DEVICES, "--placer", "mincut", "--pins", pins, "-o", path]
    done = situs("place", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    ops_of = json.loads(path.read_text())["ops"]
    softmax = [device for name, device in ops_of.items() if "softmax" in name.lower()]
    assert "CPU_B" in softmax
    by_name = {c["name"]: c for c in record["candidates"]}
    assert not by_name["CPU alone"]["allowed"]
    assert by_name["CPU alone"]["status"] == "ok"
    assert by_name[record["chosen"]]["allowed"]
    assert record["verdict"].startswith("With the pins")
    pins.write_text("[[pin]]\ntype = 'SoftMax'\ndevice = 'CPU_B'\n")
    assert "near names: Softmax" in one_line(situs("place", *arguments))


def test_ctrl_c_keeps_the_best_so_far(squeezenet: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    command = [sys.executable, "-c", "from situs.cli import main; main()"]
    with subprocess.Popen(
        [*command, "place", str(squeezenet), *DEVICES, "-o", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "screening" in line:
                break
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    assert "Traceback" not in stderr
    assert json.loads(path.read_text())["record"]["status"] == "interrupted"
    assert "written to" in stdout


def test_devices_and_inspect(squeezenet: Path) -> None:
    done = situs("devices", "--virtual", "CPU_B:threads=1", "--json")
    rows = json.loads(done.stdout)["devices"]
    assert [row["name"] for row in rows if row["virtual"]] == ["CPU_B"]
    record = json.loads(situs("inspect", squeezenet, "--json").stdout)
    assert record["op_types"]["Convolution"] == 26
    assert record["inputs"] == record["outputs"] == 1
    assert "Convolution 26" in situs("inspect", squeezenet).stdout


@pytest.mark.parametrize("command", ["place", "run", "inspect", "devices", "simulate"])
def test_help_has_an_example(command: str) -> None:
    done = situs(command, "--help")
    assert done.returncode == 0
    assert f"situs {command}" in done.stdout.split("Example")[1]


def test_import_is_light() -> None:
    code = "import sys, situs; print(sorted({m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert not {"numpy", "openvino", "numba", "torch", "scipy"} & set(eval(done.stdout))


def test_completion_offers_the_commands() -> None:
    asked = {"_SITUS_COMPLETE": "complete_bash", "COMP_WORDS": "situs ex", "COMP_CWORD": "1"}
    command = [
        sys.executable,
        "-c",
        "import sys; sys.argv[0] = 'situs'; from situs.cli import main; main()",
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | asked, timeout=60
    )
    assert done.stdout.split() == ["explain", "export"]
