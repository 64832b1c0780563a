from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from situs.errors import ClusterError
from situs.hardware import Cluster, Device, Link, cluster_from_toml, cluster_to_toml, load_cluster

names = st.text(min_size=1, max_size=8)


@given(st.lists(names, min_size=1, max_size=4, unique=True), st.text(max_size=10), st.data())
def test_toml_round_trip(devices: list[str], text: str, data: st.DataObject) -> None:
    cluster = Cluster(
        tuple(
            Device(
                name,
                full_name=text,
                memory_bytes=data.draw(st.floats(0, allow_nan=False)),
                peak_flop_per_s=data.draw(st.floats(0, 1e20)),
                properties=(("KEY", text),),
            )
            for name in devices
        ),
        tuple(Link(a, b, 1e-6, 2e9) for a in devices for b in devices if a != b),
        text,
    )
    assert cluster_from_toml(cluster_to_toml(cluster)) == cluster


def test_a_link_can_go_both_ways() -> None:
    cluster = cluster_from_toml(
        """
        [[device]]
        name = "CPU"
        [[device]]
        name = "GPU"
        kind = "gpu"
        [[link]]
        source = "CPU"
        target = "GPU"
        latency_s = 1e-5
        bytes_per_s = 16e9
        both = true
        """
    )
    back = cluster.link(1, 0)
    assert back is not None
    assert back.bytes_per_s == 16e9


def test_device_names_match_in_any_case_and_hint() -> None:
    cluster = Cluster((Device("CPU"), Device("GPU.1", "gpu")))
    assert cluster.index("gpu.1") == 1
    with pytest.raises(ClusterError, match=r"did you mean GPU\.1"):
        cluster.index("GPU1")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x = [",
        "device = 3",
        "[device]\nname='a'",
        "[[device]]\nname = 3",
        "[[device]]\nkind = 'cpu'",
        "[[device]]\nname='a'\nkind='fpga'",
        "[[device]]\nname='a'\nmemroy_bytes=1",
        "[[device]]\nname='a'\nmemory_bytes=-1",
        "[[device]]\nname='a'\nmemory_bytes=nan",
        "[[device]]\nname='a'\nefficiency=0",
        "[[device]]\nname='a'\nstreams=0",
        "[[device]]\nname='a'\nvirtual='yes'",
        "[[device]]\nname='a'\nproperties=3",
        "[[device]]\nname='a'\n[[device]]\nname='a'",
        "[[device]]\nname='a'\n[[link]]\nsource='a'\ntarget='b'",
        "[[device]]\nname='a'\n[[link]]\nsource='a'\ntarget='a'",
        "[[device]]\nname='a'\n[[link]]\nsource='a'\ntarget='a'\nboth=1",
        "[[device]]\nname='a'\n[[device]]\nname='b'\n[[link]]\nsource='a'\ntarget='b'\nlatency_s=-1",
        "[[device]]\nname='a'\n[[device]]\nname='b'\n[[link]]\nsource='a'\ntarget='b'\nbytes_per_s=0",
        "typo = 1",
    ],
)
def test_bad_descriptions_are_one_clear_line(text: str) -> None:
    with pytest.raises(ClusterError) as caught:
        cluster_from_toml(text, "file.toml")
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="cannot be read"):
        load_cluster(tmp_path / "none.toml")
    big = tmp_path / "big.toml"
    big.write_bytes(b"#" * (1 << 20) + b"##")
    with pytest.raises(ClusterError, match="1 MiB"):
        load_cluster(big)


def test_a_virtual_device_always_says_so() -> None:
    assert Device("CPU_B", virtual=True).label == "CPU_B (virtual)"
