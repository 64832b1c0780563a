import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from saved import BEST, saved_chain
from situs.core import Limits
from situs.errors import PlacementError, ProblemError
from situs.report.explain import explain
from situs.report.saved import read_saved
from situs.testing.problems import chain3


def test_chain3_by_hand() -> None:
    found = explain(chain3(), BEST, 1)
    one = {"bytes": 1, "seconds": 1}
    assert found.record() == {
        "op": "b",
        "type": "Op",
        "outputs": ["u8[1]"],
        "device": "D1",
        "seconds": {"D0": 4.0, "D1": 1.0},
        "cost_source": "modelled",
        "cost_weight": pytest.approx(1 / 3),
        "reason": "cheaper",
        "why": "cheaper here; moving to D0: +1e+03 ms (predicted)",
        "group": ["b"],
        "predicted_change_s": {"group": {"D0": 1.0, "D1": 0.0}, "alone": {"D0": 1.0, "D1": 0.0}},
        "transfers": [
            {"direction": "in", "producer": "a", "from": "D0", "to": "D1"} | one,
            {"direction": "out", "producer": "b", "from": "D1", "to": "D0"} | one,
        ],
    }


def test_a_group_moves_as_one_and_an_op_alone_on_paper() -> None:
    problem = replace(chain3(), limits=Limits(together=np.array([0, 0, -1], dtype=np.int32)))
    found = explain(problem, np.zeros(3, dtype=np.int32), 1)
    assert found.group == ("a", "b")
    # Together 4 + 1 + 1 + 1 = 7 of 6; b alone 1 + 1 + 1 + 1 + 1 = 5 of 6.
    assert found.group_moves_s.tolist() == [0.0, 1.0]
    assert found.alone_moves_s.tolist() == [0.0, -1.0]


def test_a_saved_placement_is_explained_without_its_model(tmp_path: Path) -> None:
    saved = read_saved(saved_chain(tmp_path / "p.json"))
    assert saved.problem.graph == chain3().graph
    assert explain(saved.problem, saved.assignment, saved.op("c")).device == 0
    with pytest.raises(ProblemError, match="no op 'd'"):
        saved.op("d")


def test_files_without_graph_or_costs_are_refused(tmp_path: Path) -> None:
    path = saved_chain(tmp_path / "p.json")
    document = json.loads(path.read_text())
    for change, words in (
        ({"structure": {}}, "not a graph"),
        ({"record": {}}, "no costs"),
        ({"structure": document["structure"] | {"op_names": ["a", "b", "x"]}}, "misses op 'x'"),
    ):
        path.write_text(json.dumps(document | change))
        with pytest.raises(PlacementError, match=words):
            read_saved(path)
    del document["structure"]
    path.write_text(json.dumps(document))
    with pytest.raises(PlacementError, match="run situs place again"):
        read_saved(path)
