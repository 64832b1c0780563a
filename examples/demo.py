"""Place a real model on this machine: the CPU, and a virtual second CPU device of one thread.

Puts seeded random weights into ``light_inception_v2`` (it ships inside the ``onnx`` package, and
its own weights give a flat output), then runs the commands that a user would run.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import openvino as ov

from situs.testing.models import light_models
from situs.testing.weights import randomize_weights


def main() -> None:
    """Prepare the model, place it, run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="light_inception_v2", choices=sorted(light_models()))
    parser.add_argument("--folder", type=Path, default=Path("demo"))
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    model = options.folder / f"{options.model}.xml"
    original = ov.Core().read_model(light_models()[options.model])
    ov.save_model(randomize_weights(original, seed=1), model, compress_to_fp16=False)
    placement = options.folder / f"{options.model}.placement.json"
    situs = [sys.executable, "-m", "situs"]
    devices = ["--devices", "CPU,CPU_B", "--virtual", "CPU_B:threads=1"]
    for command in (
        ["inspect", str(model)],
        ["place", str(model), *devices, "--output", str(placement)],
        ["run", str(model), "--placement", str(placement)],
    ):
        print(f"\n$ situs {' '.join(command)}", flush=True)
        subprocess.run([*situs, *command], check=True)  # noqa: S603


if __name__ == "__main__":
    main()
