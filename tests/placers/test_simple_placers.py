import numpy as np
import pytest

from situs.core import Never
from situs.errors import SitusError
from situs.placers import Placer, get_placer, placer_names
from situs.simulate import SimulatedObjective
from situs.testing.placer_suite import PlacerSuite
from situs.testing.problems import chain3


class TestSingle(PlacerSuite):
    def placer(self) -> Placer:
        return get_placer("single")


class TestOpenVINOAuto(PlacerSuite):
    def placer(self) -> Placer:
        return get_placer("openvino-auto")


class TestGreedy(PlacerSuite):
    def placer(self) -> Placer:
        return get_placer("greedy")


@pytest.mark.parametrize(
    ("spec", "seconds", "devices"),
    [
        ("single", 6.0, [0, 0, 0]),
        ("single{device=d1}", 9.0, [1, 1, 1]),
        ("openvino-auto", 6.0, [0, 0, 0]),
        ("openvino-auto{first=d1}", 9.0, [1, 1, 1]),
        ("greedy", 5.0, [0, 1, 0]),
    ],
)
def test_values_by_hand(spec: str, seconds: float, devices: list[int]) -> None:
    problem = chain3()
    result = get_placer(spec)(
        problem, SimulatedObjective(problem), Never(), np.random.default_rng(0)
    )
    assert result.seconds == seconds
    assert result.placement is not None
    assert result.placement.assignment.tolist() == devices


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ("gredy", "did you mean 'greedy'"),
        ("single{device=}}", "device"),
        ("single{devise=D0}", "did you mean 'device'"),
        ("single{device", "name{key=value"),
        ("single{device}", "key=value"),
    ],
)
def test_bad_specs_are_one_clear_line(spec: str, word: str) -> None:
    problem = chain3()
    with pytest.raises(SitusError) as caught:
        get_placer(spec)(problem, SimulatedObjective(problem), Never(), np.random.default_rng(0))
    assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_name_loads() -> None:
    for name in placer_names():
        assert get_placer(name).name == name
