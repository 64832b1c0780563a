"""Alpha-expansion: let every unit choose at once between its device and one other device."""

from __future__ import annotations

import numpy as np

from situs.core import Problem
from situs.graph.arrays import Ints, frozen
from situs.simulate.mincut import CutNetwork, source_side


def expansion_move(problem: Problem, unit_device: Ints, alpha: int) -> Ints:
    """``int32[U]`` devices after the best move in which units may only switch to ``alpha``.

    Transfers are taken per (tensor, reading unit) here, which overestimates a tensor that several
    units read, and are truncated where they break the triangle inequality (then the move is not
    the best one, but still a valid one); the caller keeps a move only if its true value is better.

    Source: Boykov, Veksler, Zabih, "Fast approximate energy minimization via graph cuts", IEEE
    PAMI 23(11), 2001, section 5.
    """
    units, graph, costs = problem.units, problem.graph, problem.costs
    triples = np.stack(
        [graph.edge_tensor, units[graph.edge_producer], units[graph.consumer_ops]], axis=1
    )
    triples = np.unique(triples[triples[:, 1] != triples[:, 2]], axis=0)
    tensor, p, c = triples.T
    a = np.full(len(tensor), alpha)
    here_p, here_c = unit_device[p], unit_device[c]

    def price(source: Ints, target: Ints) -> np.ndarray:
        moved = costs.transfer_s(tensor, source, target) + costs.boundary_s[target]
        return np.where(source == target, 0.0, moved)

    keep_keep, keep_alpha, alpha_keep = price(here_p, here_c), price(here_p, a), price(a, here_c)
    ok = np.isfinite(keep_keep) & np.isfinite(keep_alpha) & np.isfinite(alpha_keep)
    p, c = p[ok], c[ok]
    keep_keep, keep_alpha, alpha_keep = keep_keep[ok], keep_alpha[ok], alpha_keep[ok]
    # With x = 1 for "takes alpha", a pair's energy is
    # const + (alpha_keep - keep_keep) x_p - alpha_keep x_c + cross (1 - x_p) x_c.
    every = np.arange(problem.num_units)
    seconds = problem.unit_seconds
    takes = seconds[:, alpha] - seconds[every, unit_device]
    np.add.at(takes, p, alpha_keep - keep_keep)
    np.add.at(takes, c, -alpha_keep)
    cross = np.maximum(keep_alpha + alpha_keep - keep_keep, 0.0)
    num = problem.num_units
    network = CutNetwork(
        frozen(np.concatenate([np.full(num, num), every, p]), np.int32),
        frozen(np.concatenate([every, np.full(num, num + 1), c]), np.int32),
        frozen(np.concatenate([np.maximum(takes, 0), np.maximum(-takes, 0), cross]), np.float64),
        num + 2,
        num,
        num + 1,
    )
    keeps = source_side(network)[:num]
    return frozen(np.where(keeps, unit_device, alpha), np.int32)
