import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import openvino as ov
import pytest

from situs.testing.models import two_towers

PLACER = "hsdag{episodes=3,samples=6,hidden=16}"
# The uniform placements first, then three episodes.
EVALUATIONS = 2 + 3 * 6


def command(model: Path, keep: Path, *more: object) -> list[str]:
    return [
        sys.executable, "-c", "from situs.cli import main; main()", "place", str(model),
        "--devices", "CPU,CPU_B", "--virtual", "CPU_B:threads=1", "--placer", PLACER,
        "--reward", "measured", "--keep", str(keep), "--json", *map(str, more),
    ]  # fmt: skip


def measured(keep: Path) -> list[dict]:
    path = keep / "hetero.measurements.jsonl"
    text = path.read_bytes() if path.exists() else b""
    whole = text[: text.rfind(b"\n") + 1]
    return [json.loads(line) for line in whole.splitlines()][1:]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "towers.xml"
    ov.save_model(two_towers(), path)
    return path


def test_killed_at_any_moment_it_goes_on_with_nothing_lost_or_measured_twice(
    model: Path, tmp_path: Path
) -> None:
    keep, output = tmp_path / "keep", tmp_path / "out.placement.json"
    before: list[dict] = []
    for count in (1, 4):
        with subprocess.Popen(
            command(model, keep, "-o", output), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as running:
            deadline = time.monotonic() + 120
            while len(measured(keep)) < count and running.poll() is None:
                assert time.monotonic() < deadline
                time.sleep(0.002)
            os.kill(running.pid, signal.SIGKILL)
        after = measured(keep)
        assert after[: len(before)] == before
        before = after
    done = subprocess.run(
        command(model, keep, "-o", output), capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    kept = measured(keep)
    assert kept[: len(before)] == before
    assert len({record["devices"] for record in kept}) == len(kept)
    record = json.loads(done.stdout)
    (placer,) = record["placers"]
    assert placer["evaluations"] == EVALUATIONS
    by_name = {c["name"]: c for c in record["candidates"]}
    assert by_name[record["chosen"]]["measured_s"] <= by_name[record["best_single"]]["measured_s"]
    assert output.exists()


def test_event_files_hold_every_episode(model: Path, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = tmp_path / "events"
    done = subprocess.run(
        command(model, tmp_path / "keep", "--tensorboard", events, "-o", tmp_path / "out.json"),
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    log = EventAccumulator(str(events))
    log.Reload()
    assert {"best_s", "mean_s", "entropy", "groups", "episode"} <= set(log.Tags()["scalars"])
    assert [event.value for event in log.Scalars("episode")] == [1, 2, 3]
    best = [event.value for event in log.Scalars("best_s")]
    assert best == sorted(best, reverse=True)
