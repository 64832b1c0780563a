import pytest

from situs.errors import ClusterError
from situs.executors import discover, parse_device


def test_the_cpu_is_found_and_described() -> None:
    cluster = discover([parse_device("cpu:threads=1,streams=1")])
    device = cluster.devices[0]
    assert (device.name, device.kind, device.virtual) == ("CPU", "cpu", False)
    assert device.full_name
    assert dict(device.properties) == {
        "INFERENCE_NUM_THREADS": "1",
        "NUM_STREAMS": "1",
        "INFERENCE_PRECISION_HINT": "f32",
    }


def test_a_virtual_cpu_says_so_and_can_be_asked_for_twice() -> None:
    for _ in range(2):
        cluster = discover([parse_device("CPU_T:threads=1", virtual=True)])
        assert cluster.devices[0].label == "CPU_T (virtual)"


def test_an_unknown_device_names_those_that_exist() -> None:
    with pytest.raises(ClusterError, match="CPU"):
        discover([parse_device("GPU.7")])


@pytest.mark.parametrize("text", ["", ":", "CPU:threads", "CPU:=1", "c p u", "CPU:threads="])
def test_malformed_devices_are_refused(text: str) -> None:
    with pytest.raises(ClusterError):
        parse_device(text)


@pytest.mark.parametrize("text", ["CPU", "GPU", "FAST"])
def test_a_virtual_device_needs_a_name_of_its_own(text: str) -> None:
    with pytest.raises(ClusterError, match="CPU_B"):
        parse_device(text, virtual=True)


def test_precision_is_checked() -> None:
    with pytest.raises(ClusterError, match="f32"):
        discover([], precision="f64")
