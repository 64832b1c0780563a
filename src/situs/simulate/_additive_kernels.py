"""Moves under the ``sequential`` model in time proportional to the degree of what moves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from situs.graph.arrays import Floats, Ints, Longs
from situs.simulate.tables import Tables


class Additive(NamedTuple):
    """State of one assignment.

    Attributes:
        a: ``int32[N]`` the assignment.
        readers: ``int32[T, D]`` readers of each tensor on each device.
        unit_count: ``int32[U, D]`` ops of each unit on each device.
        total: ``float64[2]`` sum of the finite terms, s, and its compensation (Neumaier).
        broken: ``int64[2]`` infinite terms, and devices that units have too many.
    """

    a: Ints
    readers: Ints
    unit_count: Ints
    total: Floats
    broken: Longs


@njit(cache=True, inline="always")
def _add(state: Additive, value: float, sign: float) -> None:
    if value == np.inf:
        state.broken[0] += 1 if sign > 0 else -1
        return
    term = sign * value
    total = state.total[0]
    after = total + term
    if abs(total) >= abs(term):
        state.total[1] += (total - after) + term
    else:
        state.total[1] += (term - after) + total
    state.total[0] = after


@njit(cache=True)
def value(state: Additive) -> float:
    """Latency of the state, s."""
    if state.broken[0] > 0 or state.broken[1] > 0:
        return np.inf
    return float(state.total[0] + state.total[1])


@njit(cache=True)
def fill(state: Additive, tables: Tables, units: Ints) -> float:
    """Compute everything from ``state.a``; the latency, s."""
    a = state.a
    seconds, producer, offsets, consumers = tables[0], tables[3], tables[4], tables[5]
    size, latency, per_byte, boundary = tables[7:11]
    state.readers[:] = 0
    state.unit_count[:] = 0
    state.total[:] = 0.0
    state.broken[:] = 0
    for i in range(len(a)):
        _add(state, seconds[i, a[i]], 1.0)
        if state.unit_count[units[i], a[i]] == 0:
            state.broken[1] += 1
        state.unit_count[units[i], a[i]] += 1
    state.broken[1] -= len(state.unit_count)
    for t in range(len(producer)):
        s = a[producer[t]]
        for e in range(offsets[t], offsets[t + 1]):
            d = a[consumers[e]]
            if d != s and state.readers[t, d] == 0:
                _add(state, latency[s, d] + size[t] * per_byte[s, d] + boundary[d], 1.0)
            state.readers[t, d] += 1
    return value(state)


@njit(cache=True)
def shift(
    state: Additive,
    tables: Tables,
    units: Ints,
    in_offsets: Ints,
    in_tensors: Ints,
    i: int,
    to: int,
) -> None:
    """Move one op."""
    a = state.a
    old = a[i]
    if old == to:
        return
    seconds, op_tensors, producer = tables[0], tables[2], tables[3]
    size, latency, per_byte, boundary = tables[7:11]
    _add(state, seconds[i, old], -1.0)
    _add(state, seconds[i, to], 1.0)
    row = state.unit_count[units[i]]
    row[old] -= 1
    if row[old] == 0:
        state.broken[1] -= 1
    if row[to] == 0:
        state.broken[1] += 1
    row[to] += 1
    for k in range(in_offsets[i], in_offsets[i + 1]):
        t = in_tensors[k]
        s = a[producer[t]]
        count = state.readers[t]
        count[old] -= 1
        if count[old] == 0 and old != s:
            _add(state, latency[s, old] + size[t] * per_byte[s, old] + boundary[old], -1.0)
        if count[to] == 0 and to != s:
            _add(state, latency[s, to] + size[t] * per_byte[s, to] + boundary[to], 1.0)
        count[to] += 1
    for t in range(op_tensors[i], op_tensors[i + 1]):
        for d in range(len(boundary)):
            if state.readers[t, d] == 0:
                continue
            if d != old:
                _add(state, latency[old, d] + size[t] * per_byte[old, d] + boundary[d], -1.0)
            if d != to:
                _add(state, latency[to, d] + size[t] * per_byte[to, d] + boundary[d], 1.0)
    a[i] = to


@njit(cache=True)
def shift_all(
    state: Additive,
    tables: Tables,
    units: Ints,
    in_offsets: Ints,
    in_tensors: Ints,
    ops: Ints,
    to: Ints,
) -> float:
    """Move every op of a group to its device; the latency after it, s."""
    for k in range(len(ops)):
        shift(state, tables, units, in_offsets, in_tensors, ops[k], to[k])
    return value(state)


@njit(cache=True)
def shift_one(
    state: Additive,
    tables: Tables,
    units: Ints,
    in_offsets: Ints,
    in_tensors: Ints,
    i: int,
    to: int,
) -> float:
    """Move one op; the latency after it, s."""
    shift(state, tables, units, in_offsets, in_tensors, i, to)
    return value(state)


@njit(cache=True)
def change(
    state: Additive, tables: Tables, in_offsets: Ints, in_tensors: Ints, i: int, to: int
) -> float:
    """What moving one op would add to the sum, s; not finite if an infinite term takes part."""
    a, readers = state.a, state.readers
    seconds, op_tensors, producer = tables[0], tables[2], tables[3]
    size, latency, per_byte, boundary = tables[7:11]
    old = a[i]
    if old == to:
        return 0.0
    more = seconds[i, to] - seconds[i, old]
    for k in range(in_offsets[i], in_offsets[i + 1]):
        t = in_tensors[k]
        s = a[producer[t]]
        if old != s and readers[t, old] == 1:
            more -= latency[s, old] + size[t] * per_byte[s, old] + boundary[old]
        if to != s and readers[t, to] == 0:
            more += latency[s, to] + size[t] * per_byte[s, to] + boundary[to]
    for t in range(op_tensors[i], op_tensors[i + 1]):
        for d in range(len(boundary)):
            if readers[t, d] > 0:
                if d != old:
                    more -= latency[old, d] + size[t] * per_byte[old, d] + boundary[d]
                if d != to:
                    more += latency[to, d] + size[t] * per_byte[to, d] + boundary[d]
    return float(more)


@njit(cache=True, nogil=True)
def scan(
    state: Additive,
    tables: Tables,
    units: Ints,
    in_offsets: Ints,
    in_tensors: Ints,
    member_offsets: Ints,
    members: Ints,
    moved: Ints,
    to: Ints,
    out: Floats,
) -> None:
    """Latency after each move of a unit on its own; the state ends as it began."""
    first, second = state.total[0], state.total[1]
    finite = state.broken[0] == 0 and state.broken[1] == 0
    for k in range(len(moved)):
        u = moved[k]
        home = state.a[members[member_offsets[u]]]
        if finite and member_offsets[u + 1] - member_offsets[u] == 1:
            op = members[member_offsets[u]]
            more = change(state, tables, in_offsets, in_tensors, op, to[k])
            if np.isfinite(more):
                out[k] = first + (second + more)
                continue
        for m in range(member_offsets[u], member_offsets[u + 1]):
            shift(state, tables, units, in_offsets, in_tensors, members[m], to[k])
        out[k] = value(state)
        for m in range(member_offsets[u], member_offsets[u + 1]):
            shift(state, tables, units, in_offsets, in_tensors, members[m], home)
        state.total[0], state.total[1] = first, second
