"""The op graph against figures worked out by hand, and what it makes of odd models."""

import operator
from pathlib import Path

import pytest
import torch

from situs.errors import ModelError
from situs.graph import Graph
from situs.importers.torch.blocks import Request
from situs.importers.torch.inputs import prefill_inputs
from situs.importers.torch.ops import import_exported, import_module
from torch_models import KINDS, build, weight_bytes


class Attention(torch.nn.Module):
    """An embedding tied to the head, one linear layer, attention of 4 heads."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(20, 8)
        self.project = torch.nn.Linear(8, 8)
        self.head = torch.nn.Linear(8, 20, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.project(self.embed(ids)))
        heads = x.view(2, 3, 4, 2).transpose(1, 2)
        mixed = torch.nn.functional.scaled_dot_product_attention(heads, heads, heads)
        return self.head(mixed.transpose(1, 2).reshape(2, 3, 8) + torch.arange(8))


class Counter(torch.nn.Module):
    """Counts its requests in a buffer; returns an input, a number and one tensor twice."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Linear(4, 4)
        self.register_buffer("count", torch.zeros(4))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, object]:
        low, high = (self.scale(x) - self.count).split(2, -1)
        self.count.add_(x.sum(0))
        z = torch.cat([high, low], -1) * self.count
        return {"y": y, "seven": 7, "z": z, "again": z}


@torch.fx.wrap
def halved(x: torch.Tensor) -> torch.Tensor:
    """What torch.export cannot see through: it looks at the data."""
    return x / 2 if x.sum().item() > 0 else x


class Looks(torch.nn.Module):
    """Needs torch.fx."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU())
        self.bias = torch.nn.Parameter(torch.ones(6))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        best, where = torch.topk(halved(self.layers(x)) + self.bias, 2)
        return best.view(-1), where


def reads(graph: Graph, op: str) -> set[str]:
    offsets, tensors = graph.inputs
    i = graph.op_index[op]
    return {graph.op_names[graph.tensor_producer[t]] for t in tensors[offsets[i] : offsets[i + 1]]}


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_by_hand(device: str) -> None:
    with torch.device(device):
        model = Attention()
    imported = import_module(model, (torch.zeros(2, 3, dtype=torch.long, device=device),))
    graph, program = imported.graph, imported.model
    assert program.how == "torch.export"
    flop = {name: flop for name, flop in zip(graph.op_names, graph.op_flop, strict=True) if flop}
    assert flop == {
        # 6 rows of 8 by 8 x 8, and by 8 x 20.
        "project/linear": 2 * 6 * 8 * 8,
        "head/linear_1": 2 * 6 * 8 * 20,
        # Scores and mixing: 2 sequences, 4 heads, 3 x 3 pairs of 2.
        "scaled_dot_product_attention": 2 * (2 * 2 * 4 * 3 * 3 * 2),
        "relu": 6 * 8,
        "add": 6 * 8,
    }
    assert reads(graph, "scaled_dot_product_attention") == {"relu"}
    assert reads(graph, "output_0") == {"head/linear_1"}
    size = dict(zip(graph.op_names, graph.tensor_bytes.tolist(), strict=False))
    assert size["ids"] == 2 * 3 * 8
    assert int(graph.tensor_bytes[graph.op_tensors[graph.op_index["head/linear_1"]]]) == 6 * 20 * 4
    # The tied matrix once, the linear layer, and eight whole numbers that no input changes.
    assert sorted(graph.constant_bytes) == sorted([20 * 8 * 4, 8 * 8 * 4, 8 * 4, 8 * 8])
    tied = {graph.op_names[i] for i in range(graph.num_ops) if graph.colocation[i] >= 0}
    assert tied == {"embed/embedding", "head/linear_1"}
    assert [graph.op_names[i] for i in range(graph.num_ops) if graph.is_input[i]] == ["ids"]


@pytest.mark.parametrize("kind", KINDS)
def test_transformers_on_meta(kind: str) -> None:
    model = build(kind)
    given = prefill_inputs(model, Request(1, 8, 2), torch.device("meta"), cache=False)
    graph = import_module(model, (), given).graph
    # All weights that are read, and little beside them: positions and masks of eight tokens.
    assert weight_bytes(model) <= graph.constant_bytes.sum() <= weight_bytes(model) + 5000
    paths = {name for name, _ in model.named_modules()}
    assert {n.rpartition("/")[0] for n in graph.op_names} <= paths


def test_buffers_that_are_written_stay_with_who_writes_them() -> None:
    imported = import_module(Counter(), (torch.ones(3, 4), torch.ones(2)))
    graph = imported.graph
    (label,) = {int(c) for c in graph.colocation if c >= 0}
    members = {graph.op_types[i] for i in range(graph.num_ops) if graph.colocation[i] == label}
    assert members == {"sub", "add"}
    assert imported.output_ops[1] == -1
    assert [graph.op_names[i] for i in imported.output_ops if i >= 0] == [
        "output_0",
        "output_2",
        "output_3",
    ]
    assert reads(graph, "output_0") == {"y"}


def test_saved_program_gives_the_same_graph(tmp_path: Path) -> None:
    model = Attention().eval()
    ids = torch.zeros(2, 3, dtype=torch.long)
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(model, (ids,), strict=False), path)
    imported = import_exported(path)
    assert imported.graph.fingerprint == import_module(model, (ids,)).graph.fingerprint
    assert imported.path == path
    assert imported.graph.name == "model"


def test_open_dimensions_are_those_of_the_example(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU()).eval()
    rows = torch.export.Dim("rows", min=2, max=64)
    program = torch.export.export(
        model, (torch.zeros(5, 4),), dynamic_shapes={"input": {0: rows}}, strict=False
    )
    torch.export.save(program, tmp_path / "open.pt2")
    graph = import_exported(tmp_path / "open.pt2").graph
    assert graph.op_flop.tolist() == [0, 2 * 5 * 4 * 6, 5 * 6, 0]


def test_falls_back_to_fx_and_says_so() -> None:
    imported = import_module(Looks(), (torch.ones(3, 4),))
    assert imported.model.how == "torch.fx"
    assert imported.model.why
    graph = imported.graph
    index = graph.op_index
    assert graph.op_flop[index["layers.0/layers_0"]] == 2 * 3 * 4 * 6
    assert graph.op_types[index["layers.0/layers_0"]] == "Linear"
    assert graph.constant_bytes.sum() == 4 * (4 * 6 + 6 + 6)
    add = next(i for i, kind in enumerate(graph.op_types) if kind == operator.add.__name__)
    assert graph.op_flop[add] == 3 * 6
    assert sorted(graph.op_types).count("output") == 2


def test_misuse(tmp_path: Path) -> None:
    class Changes(Looks):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return halved(self.layers(x)).mul_(2)

    with pytest.raises(ModelError, match="in place"):
        import_module(Changes(), (torch.ones(3, 4),))
    with pytest.raises(ModelError, match=r"torch\.export cannot take it .* nor can torch\.fx"):
        import_module(Looks(), (torch.ones(3, 5),))
    with pytest.raises(ModelError, match=r"no file that torch\.export\.save wrote"):
        import_exported(tmp_path / "none.pt2")
    (tmp_path / "bad.pt2").write_bytes(b"PK\x05\x06" + bytes(18))
    with pytest.raises(ModelError, match="cannot read it"):
        import_exported(tmp_path / "bad.pt2")
