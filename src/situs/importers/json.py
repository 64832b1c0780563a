"""Graphs from the JSON files that ``graph_to_json`` writes."""

from __future__ import annotations

from pathlib import Path

from situs.errors import GraphError
from situs.graph import Graph, graph_from_json

MAX_BYTES = 1 << 30
"""Largest graph file that is read; a graph of 100,000 ops takes about 20 MB."""


def load_graph(path: str | Path, max_bytes: int = MAX_BYTES) -> Graph:
    """Read a graph file.

    Args:
        path: A file that holds the text of ``graph_to_json``, in UTF-8.
        max_bytes: Refuse a larger file, B.

    Raises:
        GraphError: If the file is missing, too large, or holds no graph.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise GraphError(f"cannot read graph file {str(path)!r}: {error.strerror}") from error
    if len(data) > max_bytes:
        raise GraphError(f"graph file {str(path)!r} is larger than {max_bytes} bytes; not read")
    try:
        return graph_from_json(data.decode())
    except UnicodeDecodeError as error:
        raise GraphError(f"graph file {str(path)!r} is not UTF-8 text") from error
    except GraphError as error:
        raise GraphError(f"graph file {str(path)!r}: {error}") from error
