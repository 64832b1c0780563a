"""Units that do not act as one: the problems that each of their ways makes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from situs.core import Problem


def variants(problem: Problem, most: int = 3) -> list[Problem] | None:
    """Problems whose units each act as one node; their optima's least is the problem's.

    A unit acts as one node on the CPU unless some of its ops could end, or start, before others.
    Such a unit is either split and kept on the CPU, or kept whole and off it. None if more than
    ``most`` units are like that.
    """
    loose = _loose_units(problem)
    if len(loose) > most:
        return None
    out = [problem]
    for unit in loose:
        mine = problem.units == unit
        both = []
        for p in out:
            forbidden = np.zeros((p.num_ops, p.num_devices), dtype=np.bool_)
            if p.limits.forbidden is not None:
                forbidden |= p.limits.forbidden
            split, whole = forbidden.copy(), forbidden.copy()
            split[mine, 1:] = True
            whole[mine, 0] = True
            free = replace(p.graph, colocation=np.where(mine, -1, p.graph.colocation))
            apart = p.limits.together
            if apart is not None:
                apart = np.where(mine, -1, apart)
            if p.unit_allowed[p.units[mine][0], 0]:
                limits = replace(p.limits, forbidden=split, together=apart)
                both.append(replace(p, graph=free, limits=limits))
            if p.unit_allowed[p.units[mine][0], 1:].any():
                both.append(replace(p, limits=replace(p.limits, forbidden=whole)))
        out = both
    return out


def _loose_units(problem: Problem) -> list[int]:
    """Units with an op whose output does not wait for all the unit's inputs and work."""
    graph, units = problem.graph, problem.units
    counts = np.bincount(units)
    u, v = graph.edge_producer, graph.consumer_ops
    same = units[u] == units[v]
    matters = np.asarray(problem.costs.seconds.any(axis=1))
    matters[v[~same]] = True
    leaves = np.zeros(problem.num_ops, dtype=np.bool_)
    leaves[u[~same]] = True
    # What nobody reads still ends the request.
    has_inputs, read = np.zeros_like(leaves), np.zeros_like(leaves)
    has_inputs[v], read[u] = True, True
    leaves |= ~read & (matters | has_inputs)
    loose = []
    for unit in np.flatnonzero(counts > 1):
        ops = np.flatnonzero(units == unit)
        rank = {int(op): k for k, op in enumerate(ops)}
        before = np.eye(len(ops), dtype=np.bool_)
        inner = same & (units[u] == unit)
        for a, b in zip(u[inner].tolist(), v[inner].tolist(), strict=True):
            before[rank[b]] |= before[rank[a]]
        if not before[np.ix_(leaves[ops], matters[ops])].all():
            loose.append(int(unit))
    return loose
