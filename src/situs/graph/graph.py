"""The computation graph: a DAG of ops joined by tensors, as flat arrays in topological order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from html import escape
from typing import Any

import numpy as np

from situs.errors import GraphError
from situs.graph.arrays import Bools, Floats, Ints, Longs, csr_from_pairs, csr_rows, frozen

_DTYPES: dict[str, Any] = {
    "tensor_producer": np.int32,
    "tensor_port": np.int32,
    "tensor_bytes": np.int64,
    "consumer_offsets": np.int32,
    "consumer_ops": np.int32,
    "constant_bytes": np.int64,
    "reader_offsets": np.int32,
    "reader_ops": np.int32,
    "op_flop": np.float64,
    "colocation": np.int32,
    "is_input": np.bool_,
    "is_output": np.bool_,
}


@dataclass(frozen=True, eq=False)
class Graph:
    """Ops in topological order, the tensors between them, and the constants that they read.

    Axes: ``N`` ops, ``T`` tensors, ``E`` (tensor, consumer) pairs, ``C`` constants, ``R``
    (constant, reader) pairs. An op that reads one tensor at several ports is one pair.

    Attributes:
        name: What the model is called; not part of the fingerprint.
        op_names: ``N`` unique names.
        op_types: ``N`` op types (``"Convolution"``, ...).
        tensor_producer: ``int32[T]`` op that writes the tensor; non-decreasing.
        tensor_port: ``int32[T]`` output port of the producer.
        tensor_dtype: ``T`` element types (``"f32"``, ...).
        tensor_shape: ``T`` shapes.
        tensor_bytes: ``int64[T]`` size, B.
        consumer_offsets: ``int32[T + 1]`` CSR offsets into ``consumer_ops``.
        consumer_ops: ``int32[E]`` ops that read each tensor, ascending within a tensor.
        constant_bytes: ``int64[C]`` size of each constant, B.
        reader_offsets: ``int32[C + 1]`` CSR offsets into ``reader_ops``.
        reader_ops: ``int32[R]`` ops that read each constant.
        op_flop: ``float64[N]`` estimated floating-point operations of one run.
        colocation: ``int32[N]`` class whose members must share a device; -1 for none.
        is_input: ``bool[N]`` op is an input of the model.
        is_output: ``bool[N]`` op is an output of the model.

    Raises:
        GraphError: If lengths differ, names repeat, or an edge does not point forward.
    """

    name: str
    op_names: tuple[str, ...]
    op_types: tuple[str, ...]
    tensor_producer: Ints
    tensor_port: Ints
    tensor_dtype: tuple[str, ...]
    tensor_shape: tuple[tuple[int, ...], ...]
    tensor_bytes: Longs
    consumer_offsets: Ints
    consumer_ops: Ints
    constant_bytes: Longs
    reader_offsets: Ints
    reader_ops: Ints
    op_flop: Floats
    colocation: Ints
    is_input: Bools
    is_output: Bools

    def __post_init__(self) -> None:
        for field, dtype in _DTYPES.items():
            object.__setattr__(self, field, frozen(getattr(self, field), dtype))
        self._check()

    def _check(self) -> None:
        n, t, c = len(self.op_names), len(self.tensor_producer), len(self.constant_bytes)
        for field in ("op_types", "op_flop", "colocation", "is_input", "is_output"):
            if len(getattr(self, field)) != n:
                raise GraphError(f"{field} has {len(getattr(self, field))} entries for {n} ops")
        for field in ("tensor_port", "tensor_dtype", "tensor_shape", "tensor_bytes"):
            if len(getattr(self, field)) != t:
                raise GraphError(f"{field} has {len(getattr(self, field))} entries for {t} tensors")
        if len(set(self.op_names)) != n:
            seen: set[str] = set()
            twice = next(x for x in self.op_names if x in seen or seen.add(x))  # type: ignore[func-returns-value]
            raise GraphError(f"op name {twice!r} appears more than once; names must be unique")
        for offsets, ops, rows in (
            (self.consumer_offsets, self.consumer_ops, t),
            (self.reader_offsets, self.reader_ops, c),
        ):
            if len(offsets) != rows + 1 or offsets[0] != 0 or offsets[-1] != len(ops):
                raise GraphError("CSR offsets do not match their rows and values")
            if (np.diff(offsets) < 0).any():
                raise GraphError("CSR offsets decrease")
            if len(ops) and (ops.min() < 0 or ops.max() >= n):
                raise GraphError(f"an op index is outside 0..{n - 1}")
        if t and (self.tensor_producer.min() < 0 or self.tensor_producer.max() >= n):
            raise GraphError(f"a tensor's producer is outside 0..{n - 1}")
        if t > 1 and (np.diff(self.tensor_producer) < 0).any():
            raise GraphError("tensors must be sorted by producer")
        if len(self.consumer_ops) and (self.edge_producer >= self.consumer_ops).any():
            edge = int(np.argmax(self.edge_producer >= self.consumer_ops))
            reader = self.op_names[self.consumer_ops[edge]]
            raise GraphError(f"ops are not in topological order: {reader!r} reads a later op")
        if (self.tensor_bytes < 0).any() or (self.constant_bytes < 0).any():
            raise GraphError("a size in bytes is negative")

    @property
    def num_ops(self) -> int:
        """Number of ops ``N``."""
        return len(self.op_names)

    @property
    def num_tensors(self) -> int:
        """Number of tensors ``T``."""
        return len(self.tensor_producer)

    @property
    def num_edges(self) -> int:
        """Number of (tensor, consumer) pairs ``E``."""
        return len(self.consumer_ops)

    @cached_property
    def edge_tensor(self) -> Ints:
        """``int32[E]`` tensor of every (tensor, consumer) pair."""
        return frozen(csr_rows(self.consumer_offsets), np.int32)

    @cached_property
    def edge_producer(self) -> Ints:
        """``int32[E]`` producing op of every (tensor, consumer) pair."""
        return frozen(self.tensor_producer[csr_rows(self.consumer_offsets)], np.int32)

    @cached_property
    def op_tensors(self) -> Ints:
        """``int32[N + 1]``: op ``i`` writes tensors ``op_tensors[i] : op_tensors[i + 1]``."""
        counts = np.bincount(self.tensor_producer, minlength=self.num_ops)
        return frozen(np.concatenate(([0], np.cumsum(counts))), np.int32)

    @cached_property
    def inputs(self) -> tuple[Ints, Ints]:
        """CSR ``(offsets[N + 1], tensors[E])``: the tensors that each op reads."""
        return csr_from_pairs(self.consumer_ops, self.edge_tensor, self.num_ops)

    @cached_property
    def op_constants(self) -> tuple[Ints, Ints]:
        """CSR ``(offsets[N + 1], constants[R])``: the constants that each op reads."""
        rows = csr_rows(self.reader_offsets)
        return csr_from_pairs(self.reader_ops, rows, self.num_ops)

    @cached_property
    def op_constant_bytes(self) -> Longs:
        """``int64[N]`` bytes of the constants that each op reads (a shared one counts at each)."""
        sizes = np.bincount(
            self.reader_ops,
            weights=self.constant_bytes[csr_rows(self.reader_offsets)],
            minlength=self.num_ops,
        )
        return frozen(sizes, np.int64)

    def cut(self, part: Ints) -> tuple[Ints, Ints]:
        """Tensors read in a part of the graph that they do not come from, each once per part.

        Args:
            part: ``int32[N]`` part of each op: its device, its node, any label.

        Returns:
            ``int32[C]`` tensors, in order, and the part of ``part`` that reads each.
        """
        ends = np.stack([self.edge_tensor, part[self.consumer_ops]], axis=1)
        pairs = np.unique(ends, axis=0)
        away = pairs[part[self.tensor_producer[pairs[:, 0]]] != pairs[:, 1]]
        return frozen(away[:, 0], np.int32), frozen(away[:, 1], np.int32)

    def constants_read(self, part: Ints, count: int) -> Floats:
        """Bytes of the constants that each part of the graph reads, each constant once per part.

        Args:
            part: ``int32[N]`` part of each op, in 0 .. count - 1: its device, its unit.
            count: Number of parts.

        Returns:
            ``float64[count]`` bytes, B.
        """
        ends = np.stack([csr_rows(self.reader_offsets), part[self.reader_ops]], axis=1)
        pairs = np.unique(ends, axis=0)
        sizes = self.constant_bytes[pairs[:, 0]]
        return frozen(np.bincount(pairs[:, 1], sizes, count), np.float64)

    @cached_property
    def op_index(self) -> Mapping[str, int]:
        """Op number by name."""
        return {name: i for i, name in enumerate(self.op_names)}

    @cached_property
    def units(self) -> Ints:
        """``int32[N]`` dense number of each op's unit: its co-location class, or itself alone."""
        keys = np.where(self.colocation >= 0, self.colocation, -1 - np.arange(self.num_ops))
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        rank = np.empty(len(first), dtype=np.int32)
        rank[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
        return frozen(rank[inverse], np.int32)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (32 hex digits) of structure, types, shapes, sizes; not of names or weights."""
        from situs.graph.fingerprint import fingerprint

        return fingerprint(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return all(_same(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"Graph({self.name!r}, {self.num_ops} ops, {self.num_edges} edges)"

    def _repr_html_(self) -> str:
        counts = Counter(self.op_types).most_common(12)
        rows = "".join(f"<tr><td>{escape(t)}</td><td>{k}</td></tr>" for t, k in counts)
        head = f"{escape(self.name)}: {self.num_ops} ops, {self.num_edges} edges"
        return f"<p>{head}</p><table><tr><th>op type</th><th>ops</th></tr>{rows}</table>"


def _same(a: Any, b: Any) -> bool:
    return bool(np.array_equal(a, b)) if isinstance(a, np.ndarray) else bool(a == b)
