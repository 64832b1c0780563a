import numpy as np
import pytest

from situs.costs import link_matrices
from situs.errors import ClusterError
from situs.hardware import catalogue, catalogue_names


def test_the_machines_of_the_catalogue() -> None:
    assert {
        "i9-12900k", "uhd-770", "flex-170", "i9-flex170", "core-ultra-7", "arc-a770", "rtx-4090",
        "a100", "h100", "h200", "jetson-orin", "4xa100", "8xh100",
    } <= set(catalogue_names())  # fmt: skip


@pytest.mark.parametrize("name", catalogue_names())
def test_every_figure_has_a_source_and_every_pair_a_link(name: str) -> None:
    cluster = catalogue(name)
    assert cluster.name == name
    for device in cluster.devices:
        assert device.source
        assert device.full_name
        assert device.peak_flop_per_s > 1e11
        assert device.memory_bytes_per_s > 1e10
        assert np.isfinite(device.memory_bytes)
    assert all(link.origin for link in cluster.links)
    latency, per_byte = link_matrices(cluster)
    assert np.isfinite(latency).all()
    off = ~np.eye(len(cluster.devices), dtype=bool)
    assert (per_byte[off] > 0).all()


def test_nodes_have_all_their_accelerators() -> None:
    assert len(catalogue("4xa100").devices) == 5
    assert len(catalogue("8xh100").devices) == 9


def test_published_peaks() -> None:
    peaks = {name: catalogue(name).devices[-1].peak_flop_per_s for name in catalogue_names()}
    assert peaks["rtx-4090"] == pytest.approx(82.6e12)
    assert peaks["flex-170"] == pytest.approx(16.8e12, rel=0.01)
    assert peaks["arc-a770"] == pytest.approx(19.7e12, rel=0.01)
    assert peaks["uhd-770"] == pytest.approx(0.79e12, rel=0.01)


def test_unknown_machine_names_a_near_match() -> None:
    with pytest.raises(ClusterError, match="did you mean rtx-4090"):
        catalogue("rtx4090")
