from pathlib import Path

import numpy as np

import situs
from situs.errors import Status


def test_the_readme_example(squeezenet: Path, tmp_path: Path) -> None:
    model = situs.load(squeezenet)
    result = situs.place(model, ["CPU"], virtual=["CPU_B:threads=1"], placers=["greedy", "mincut"])
    situs.save(result, tmp_path / "p.json")
    compiled = situs.compile(model, situs.load_placement(tmp_path / "p.json", model))
    image = np.random.default_rng(0).standard_normal((1, 3, 224, 224)).astype(np.float32)
    outputs = compiled([image])
    assert np.isfinite(next(iter(outputs.values()))).all()
    assert result.status is Status.OK
    text = str(result)
    for word in ("status", "latency", "best single", "ops", "bytes moved", "placer", "seed"):
        assert word in text


def test_a_device_that_cannot_run_the_model_does_not_end_the_search(squeezenet: Path) -> None:
    result = situs.place(squeezenet, ["CPU"], virtual=["CPU_C:nonsense=1"], placers=["greedy"])
    assert result.status is Status.OK
    failed = [t for t in result.trials if not t.ok]
    assert any("NONSENSE" in t.measurement.detail for t in failed)
    assert result.placement is not None
    assert result.placement.uniform_device == "CPU"
