from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from situs.errors import GraphError
from situs.graph import Graph, graph_to_json
from situs.importers import load_graph
from situs.testing.strategies import graphs


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(graphs(colocation=True))
def test_a_saved_graph_loads_equal(tmp_path: Path, graph: Graph) -> None:
    path = tmp_path / "g.json"
    path.write_text(graph_to_json(graph), encoding="utf-8")
    assert load_graph(path) == graph


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[]", b"{" * 5000, b'{"schema": 1}'])
def test_a_file_that_is_no_graph_gives_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "g.json"
    path.write_bytes(content)
    with pytest.raises(GraphError, match=r"g\.json") as caught:
        load_graph(path)
    assert "\n" not in str(caught.value)


def test_missing_folder_and_large_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="No such file"):
        load_graph(tmp_path / "none.json")
    with pytest.raises(GraphError, match="cannot read"):
        load_graph(tmp_path)
    path = tmp_path / "big.json"
    path.write_text(" " * 101)
    with pytest.raises(GraphError, match="larger than 100 bytes"):
        load_graph(path, max_bytes=100)
