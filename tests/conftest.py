import os
from pathlib import Path

import pytest

# A thread pool per test worker would only fight over the machine's cores.
os.environ.setdefault("NUMBA_NUM_THREADS", "2")


@pytest.fixture(scope="session")
def squeezenet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """light_squeezenet with seeded random weights, saved as OpenVINO IR."""
    import openvino as ov

    from situs.testing.models import light_models
    from situs.testing.weights import randomize_weights

    path = tmp_path_factory.mktemp("models") / "squeezenet.xml"
    model = ov.Core().read_model(light_models()["light_squeezenet"])
    ov.save_model(randomize_weights(model, seed=1), path, compress_to_fp16=False)
    return path
