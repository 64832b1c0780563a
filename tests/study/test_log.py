"""Logs of measured searches."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from situs.errors import Status
from situs.study.log import MemoryLog, Sample, placement_key


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20))
def test_a_placement_has_one_key_whatever_its_integers_are_stored_as(devices: list[int]) -> None:
    wide, small = np.array(devices, np.int64), np.array(devices, np.int32)
    assert placement_key(wide) == placement_key(small) == placement_key(small[::-1][::-1])
    other = small.copy()
    other[0] += 1
    assert placement_key(other) != placement_key(small)


def test_a_sample_taken_twice_is_kept_once() -> None:
    log = MemoryLog()
    first = Sample(0, 0, "a", Status.OK, 1.0)
    log.append([first], {"a": np.zeros(2, np.int32)})
    log.append([Sample(0, 0, "a", Status.OK, 2.0), Sample(0, 1, "a", Status.OK, 3.0)], {})
    assert [s.seconds for s in log.samples()] == [1.0, 3.0]
    assert list(log.placements) == ["a"]
