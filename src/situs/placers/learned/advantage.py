"""What a placement is worth to a learner: its log-latency against a running baseline."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from situs.graph.arrays import Floats

_RATE = 0.3
_LARGEST = 3.0


class Baseline:
    """A running mean of the rewards of rounds.

    The reward is ``-log(seconds)``, so that a gain of a tenth weighs the same on every graph; the
    advantage is in standard deviations of its round, clipped at 3.
    """

    def __init__(self) -> None:
        self.value = math.nan

    def advantages(self, seconds: Floats) -> NDArray[np.float32]:
        """``float32[K]`` advantages of finite ``float64[K]`` s; the baseline follows them."""
        reward = -np.log(seconds)
        center = float(reward.mean())
        if math.isnan(self.value):
            self.value = center
        self.value += _RATE * (center - self.value)
        scaled = (reward - self.value) / (reward.std() + 1e-3)
        clipped: NDArray[np.float32] = np.clip(scaled, -_LARGEST, _LARGEST).astype(np.float32)
        return clipped
