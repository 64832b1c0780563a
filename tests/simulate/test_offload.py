import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situs.core import Offload, Problem, violation
from situs.errors import ParameterError, ProblemError
from situs.simulate import bound, evaluate, timeline
from situs.testing.problems import chain3, tiny
from situs.testing.strategies import problems, random_rows


def reference(problem: Problem, a: np.ndarray) -> float:
    """Longest way through the calls and host ops by relaxation; a cycle never settles."""
    if violation(problem, a):
        return math.inf
    graph, costs = problem.graph, problem.costs
    assert isinstance(problem.model, Offload)
    calls = problem.model.calls
    node = [("host", i) if a[i] == 0 else ("call", int(a[i])) for i in range(problem.num_ops)]
    took: dict[tuple[str, int], float] = {("call", k): 0.0 for k in range(1, problem.num_devices)}
    for k in range(1, problem.num_devices):
        took["call", k] = float(costs.boundary_s[k]) if (a == k).any() else 0.0
    arcs = {(("call", k), ("call", k + 1)) for k in range(1, problem.num_devices - 1) if k % calls}
    moved = set()
    for i in range(problem.num_ops):
        took[node[i]] = took.get(node[i], 0.0) + float(costs.seconds[i, a[i]])
    for e in range(graph.num_edges):
        u, v, t = graph.edge_producer[e], graph.consumer_ops[e], int(graph.edge_tensor[e])
        if node[u] != node[v]:
            arcs.add((node[u], node[v]))
            if a[u] != a[v]:
                moved |= {(t, int(a[u]), 0)} if a[u] else set()
                moved |= {(t, 0, int(a[v]))} if a[v] else set()
    for t, source, target in moved:
        took["call", source or target] += float(costs.transfer_s(t, source, target))
    end = dict.fromkeys(took, 0.0)
    for _ in range(len(took) + 1):
        before = dict(end)
        for x in took:
            end[x] = took[x] + max((before[u] for u, v in arcs if v == x), default=0.0)
        if end == before:
            return max((end[x] for x in node), default=0.0)
    # Zero-time cycles settle too; they are found by their order.
    return math.inf


def cyclic(problem: Problem, a: np.ndarray) -> bool:
    import networkx as nx

    graph = nx.DiGraph()
    assert isinstance(problem.model, Offload)
    calls = problem.model.calls
    graph.add_edges_from((-k, -k - 1) for k in range(1, problem.num_devices - 1) if k % calls)
    name = [i if a[i] == 0 else -int(a[i]) for i in range(problem.num_ops)]
    for u, v in zip(problem.graph.edge_producer, problem.graph.consumer_ops, strict=True):
        if name[u] != name[v]:
            graph.add_edge(name[u], name[v])
    return not nx.is_directed_acyclic_graph(graph)


@settings(max_examples=200, deadline=None)
@given(
    problems(
        max_ops=9,
        devices=st.sampled_from([1, 3, 5]),
        model=st.sampled_from([Offload(1), Offload(2)]),
        colocation=True,
    ),
    st.integers(0, 2**32),
)
def test_equals_reference(problem: Problem, seed: int) -> None:
    rows = random_rows(problem, seed, 5)
    expected = [math.inf if cyclic(problem, a) else reference(problem, a) for a in rows]
    np.testing.assert_allclose(evaluate(problem, rows), expected, rtol=1e-9, atol=1e-12)
    assert bound(problem).seconds <= min(expected) * (1 + 1e-9)


def test_chain_by_hand() -> None:
    problem = chain3(Offload())
    rows = np.array([[0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 1], [1, 1, 0]])
    # All on the host 6; one call 9; b alone in a call 1 + (1 + 1 + 1) + 1; not convex; a and b.
    assert list(evaluate(problem, rows)) == [6, 9, 5, np.inf, 4 + 1 + 1 + 1]


def test_two_calls_of_one_accelerator_run_in_order() -> None:
    seconds = {"a": (9.0, 1.0, 1.0), "b": (1.0, 9.0, 9.0), "c": (9.0, 1.0, 1.0)}
    problem = tiny({"a": [], "b": ["a"], "c": ["b"]}, seconds, 0.5, model=Offload(2))
    rows = np.array(list(itertools.product(range(3), repeat=3)))
    values = dict(zip(map(tuple, rows.tolist()), evaluate(problem, rows), strict=True))
    assert values[1, 0, 2] == 1.5 + 1 + 1.5
    assert values[2, 0, 1] == np.inf
    assert min(values.values()) == 4


def test_misuse() -> None:
    with pytest.raises(ParameterError, match="calls"):
        Offload(0)
    with pytest.raises(ProblemError, match="timeline"):
        timeline(chain3(Offload()), np.zeros(3, dtype=np.int32))
