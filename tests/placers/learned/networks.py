"""A layered network with branches, on two devices, whose best placement mixes them."""

import numpy as np

from situs.core import Problem
from situs.testing.problems import tiny


def layered(blocks: int = 12, seed: int = 0, transfer_s: float = 0.3) -> Problem:
    """Blocks of two branches of three ops each, joined; runs of blocks prefer one device."""
    rng = np.random.default_rng(seed)
    ops: dict[str, list[str]] = {"in": []}
    seconds = {"in": (0.0, 0.0)}
    last = "in"
    for b in range(blocks):
        fast = (b // 4) % 2
        ends = []
        for branch in "xy":
            reads = last
            for k in range(3):
                name = f"{branch}{b}_{k}"
                cost = rng.uniform(0.5, 1.5)
                ops[name] = [reads]
                seconds[name] = tuple(cost if d == fast else 4 * cost for d in range(2))
                reads = name
            ends.append(reads)
        last = f"join{b}"
        ops[last] = ends
        seconds[last] = (0.1, 0.1)
    return tiny(ops, seconds, transfer_s)
