"""A stable hash of what a placement depends on: structure, types, shapes and sizes."""

from __future__ import annotations

import hashlib
import json

import numpy as np

from situs.graph.graph import Graph


def fingerprint(graph: Graph) -> str:
    """Return the first 32 hex digits of the SHA-256 over everything but names, weights and FLOP."""
    digest = hashlib.sha256(b"situs-graph-1")
    texts = [graph.op_types, graph.tensor_dtype, graph.tensor_shape]
    digest.update(json.dumps(texts, separators=(",", ":")).encode())
    for array in (
        graph.tensor_producer,
        graph.tensor_port,
        graph.tensor_bytes,
        graph.consumer_offsets,
        graph.consumer_ops,
        graph.constant_bytes,
        graph.reader_offsets,
        graph.reader_ops,
        graph.colocation,
        graph.is_input,
        graph.is_output,
    ):
        digest.update(np.ascontiguousarray(array).astype("<i8").tobytes())
    return digest.hexdigest()[:32]
