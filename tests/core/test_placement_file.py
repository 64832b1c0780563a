import json
import os
from pathlib import Path

import numpy as np
import pytest

from situs.core import place
from situs.core.placement_file import (
    PlacementFile,
    check_writable,
    placement_from_json,
    placement_to_json,
    read_placement,
    write_placement,
    write_text,
)
from situs.errors import OutputError, PlacementError
from situs.hardware import Cluster, Device
from situs.testing.problems import chain3, diamond4


def example() -> PlacementFile:
    problem = chain3()
    devices = (Device("D0", full_name="Zero"), Device("D1", virtual=True, full_name="One"))
    placement = place(problem, np.array([0, 1, 0], dtype=np.int32))
    return PlacementFile(placement, devices, {"measured_s": [1.0, 2.0]})


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "näme with spaces.json"
    graph = chain3().graph
    write_placement(path, example(), graph)
    again = read_placement(path, graph)
    assert again.placement == example().placement
    assert again.devices == example().devices
    assert again.record == example().record
    assert os.listdir(tmp_path) == [path.name]


def test_another_model_is_one_clear_line() -> None:
    text = placement_to_json(example(), chain3().graph)
    with pytest.raises(PlacementError, match="another model") as caught:
        placement_from_json(text, diamond4().graph, "p.json")
    assert "\n" not in str(caught.value)
    assert "p.json" in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "other"},
        {"ops": {"a": "D0"}},
        {"ops": {"a": "D0", "b": "D0", "c": "D9"}},
        {"ops": {"a": "D0", "b": "D0", "x": "D0"}},
        {"ops": []},
        {"devices": [{"name": "D0"}]},
        {"devices": None},
        {"record": 3},
    ],
)
def test_files_that_do_not_fit_are_refused(change: dict[str, object]) -> None:
    graph = chain3().graph
    document = json.loads(placement_to_json(example(), graph)) | change
    with pytest.raises(PlacementError) as caught:
        placement_from_json(json.dumps(document), graph)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 50_000, "\x00", '"x"'])
def test_text_that_is_no_placement_is_refused(text: str) -> None:
    with pytest.raises(PlacementError):
        placement_from_json(text, chain3().graph)


def test_a_missing_or_binary_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlacementError, match="cannot be read"):
        read_placement(tmp_path / "none.json", chain3().graph)
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PlacementError, match="cannot be read"):
        read_placement(binary, chain3().graph)


def test_unwritable_paths_fail_early_and_leave_nothing(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "no" / "file.json"):
        with pytest.raises(OutputError):
            check_writable(path)
        with pytest.raises(OutputError):
            write_text(path, "x")
    assert os.listdir(tmp_path) == []
    with pytest.raises(OutputError):
        check_writable(Path("/proc/placement.json"))


def test_devices_are_known_by_identity() -> None:
    file = example()
    file.require_devices(Cluster(file.devices))
    with pytest.raises(PlacementError, match="not here"):
        file.require_devices(Cluster(file.devices[:1]))
    changed = (file.devices[0], Device("D1", full_name="Another"))
    with pytest.raises(PlacementError, match="run situs place again"):
        file.require_devices(Cluster(changed))
