"""Graph to and from JSON text."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import numpy as np

from situs.errors import GraphError
from situs.graph.graph import Graph

SCHEMA = "situs-graph/1"


def graph_to_json(graph: Graph) -> str:
    """Write every field of the graph; ``graph_from_json`` gives an equal graph back."""
    document: dict[str, Any] = {"schema": SCHEMA, "fingerprint": graph.fingerprint}
    for field in fields(graph):
        value = getattr(graph, field.name)
        document[field.name] = value.tolist() if isinstance(value, np.ndarray) else value
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def graph_from_json(text: str) -> Graph:
    """Read a graph that ``graph_to_json`` wrote.

    Raises:
        GraphError: If the text is not such a document, or its fingerprint does not match.
    """
    try:
        document = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise GraphError(f"not a graph in JSON: {error}") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise GraphError(f"not a graph in JSON: 'schema' must be {SCHEMA!r}")
    try:
        values = {field.name: document[field.name] for field in fields(Graph)}
        values["name"] = str(values["name"])
        for key in ("op_names", "op_types", "tensor_dtype"):
            values[key] = tuple(str(v) for v in values[key])
        values["tensor_shape"] = tuple(tuple(int(d) for d in s) for s in values["tensor_shape"])
        graph = Graph(**values)
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise GraphError(f"not a graph in JSON: {error}") from error
    if document.get("fingerprint") != graph.fingerprint:
        raise GraphError("the graph's fingerprint does not match its content; the file was changed")
    return graph
