"""Why no placement can keep a problem's limits, as far as counting can tell."""

from __future__ import annotations

import numpy as np

from situs.core import Problem


def why_infeasible(problem: Problem) -> str | None:
    """Name the device and the bytes that are missing, or None where counting finds no reason.

    Counts constants only, each once on the devices that must hold it: units with one allowed
    device on that device, and everything on all devices together.
    """
    graph, memory = problem.graph, problem.memory_bytes
    rows = np.repeat(np.arange(len(graph.constant_bytes)), np.diff(graph.reader_offsets))
    units = problem.units[graph.reader_ops]
    allowed = problem.unit_allowed
    only = allowed.sum(axis=1) == 1
    for d, name in enumerate(problem.cluster.names):
        held = np.unique(rows[only[units] & allowed[units, d]])
        short = float(graph.constant_bytes[held].sum()) - memory[d]
        if short > 0:
            return (
                f"{name} is short of {short:.0f} B: ops that may run nowhere else "
                f"need {memory[d] + short:.0f} B, it has {memory[d]:.0f} B"
            )
    usable = np.flatnonzero(allowed.any(axis=0))
    read = np.unique(rows)
    short = float(graph.constant_bytes[read].sum() - memory[usable].sum())
    if short > 0:
        largest = problem.cluster.names[int(usable[np.argmax(memory[usable])])]
        return (
            f"all devices together are short of {short:.0f} B for the constants; "
            f"the largest is {largest} with {memory[usable].max():.0f} B"
        )
    biggest = problem.unit_constant_bytes
    room = np.where(allowed, memory, -np.inf).max(axis=1)
    worst = int(np.argmax(biggest - room)) if len(room) else 0
    if len(room) and biggest[worst] > room[worst]:
        op = int(np.flatnonzero(problem.units == worst)[0])
        device = problem.cluster.names[int(np.argmax(np.where(allowed[worst], memory, -np.inf)))]
        return (
            f"{device} is short of {biggest[worst] - room[worst]:.0f} B for op "
            f"{graph.op_names[op]!r} and the ops kept together with it"
        )
    return None
