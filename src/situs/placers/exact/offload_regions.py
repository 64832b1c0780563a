"""Shortest ways through the ideals, with bounds on the regions that they cross."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from situs.graph.arrays import Floats, Ints, Longs
from situs.placers.exact._barrier_kernels import Stages, barrier_split, group_calls, region_bounds
from situs.placers.exact.offload_ideals import Step

_ROUNDS = 6
_THREADS = 2


@dataclass(slots=True)
class Regions:
    """Lower bounds of the region steps, sharpened where the shortest way uses them."""

    table: Floats
    offsets: Longs
    solved: dict[tuple[int, int], list[tuple[int, float, dict[int, int] | None]]] = field(
        default_factory=dict
    )

    @classmethod
    def build(cls, x: Stages, least: Floats, largest: int) -> Regions:
        """Tables for every group of at most ``largest`` ideals."""
        tables: list[Floats] = []
        offsets = np.full(len(least), -1, dtype=np.int64)
        size = 0
        with ThreadPoolExecutor(_THREADS) as pool:
            for g in range(len(least)):
                group = x.members[x.member_offsets[g] : x.member_offsets[g + 1]]
                m = len(group)
                if not 1 < m <= largest:
                    continue
                local = _local(x, group)
                if local is None:
                    continue
                offsets[g] = size
                call = group_calls(x, g)
                chunks = [np.arange(k, m, _THREADS, dtype=np.int64) for k in range(_THREADS)]
                jobs = [
                    pool.submit(region_bounds, *local, least[g], call, _ROUNDS, rows)
                    for rows in chunks
                ]
                table = np.empty((m, m))
                for rows, job in zip(chunks, jobs, strict=True):
                    table[rows] = job.result()
                tables.append(table.ravel())
                size += m * m
        return cls(np.concatenate([*tables, np.empty(0)]), offsets)

    def steps(self, count: int) -> tuple[Longs, Longs, Longs, Floats]:
        """Solved steps as CSR by their first ideal: offsets, targets, calls, seconds."""
        rows = sorted((i, j, c, s) for (i, j), ks in self.solved.items() for c, s, _ in ks)
        first = np.array([r[0] for r in rows], dtype=np.int64)
        offsets = np.concatenate(([0], np.cumsum(np.bincount(first, minlength=count))))
        return (
            offsets.astype(np.int64),
            np.array([r[1] for r in rows], dtype=np.int64),
            np.array([r[2] for r in rows], dtype=np.int64),
            np.array([r[3] for r in rows], dtype=np.float64),
        )


def _local(x: Stages, group: Ints) -> tuple[np.ndarray, np.ndarray, Floats, Floats] | None:
    """Ideals of a group as 64-bit sets over the nodes that they differ in; None if over 64."""
    first, last = x.sets[group[0]], x.sets[group[-1]]
    width = len(x.cpu_s)
    differ = np.unpackbits((last & ~first).view(np.uint8), bitorder="little")[:width]
    nodes = np.flatnonzero(differ)
    if len(nodes) > 64:
        return None
    power = np.left_shift(np.uint64(1), np.arange(len(nodes), dtype=np.uint64))
    bits = np.unpackbits(x.sets[group].view(np.uint8), axis=1, bitorder="little")[:, nodes]
    rank = {int(v): k for k, v in enumerate(nodes)}
    masks = np.zeros(len(nodes), dtype=np.uint64)
    for k, v in enumerate(nodes):
        for p in x.preds[x.pred_offsets[v] : x.pred_offsets[v + 1]].tolist():
            if p in rank:
                masks[k] |= power[rank[p]]
    sets = (bits * power).sum(axis=1, dtype=np.uint64)
    return sets, masks, x.cpu_s[nodes], x.least_s[nodes]


def shortest_way(
    x: Stages, accelerators: int, least: Floats, regions: Regions, relaxed: bool
) -> tuple[float, list[Step]]:
    """Value and steps of the shortest way, in order."""
    value, parent, calls = barrier_split(
        x, accelerators, least, regions.table, regions.offsets, *regions.steps(len(x.sets)), relaxed
    )
    at = int(x.visit[-1])
    used = int(np.argmin(value[at]))
    best_s = float(value[at, used])
    steps: list[Step] = []
    while np.isfinite(best_s) and at != int(x.visit[0]):
        before, c = int(parent[at, used]), int(calls[at, used])
        left = used - (c if c >= 0 else -1 - c)
        steps.append(Step(before, at, c, float(value[at, used] - value[before, left])))
        at, used = before, left
    return best_s, steps[::-1]
