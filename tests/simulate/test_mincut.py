import itertools
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

from situs.core import Dataflow, Problem
from situs.costs import roofline
from situs.errors import ProblemError
from situs.hardware import Cluster, catalogue
from situs.importers import load_model
from situs.simulate import evaluate
from situs.simulate.mincut import cut_network, minimum_cut
from situs.testing.models import light_models
from situs.testing.problems import chain3, diamond4, memory_tight
from situs.testing.strategies import problems


def brute_force(problem: Problem) -> float:
    units = np.array(list(itertools.product([0, 1], repeat=problem.num_units)), dtype=np.int32)
    return float(evaluate(problem, units[:, problem.units]).min())


@settings(max_examples=400, deadline=None)
@given(problems(max_ops=8, colocation=True))
def test_equals_brute_force(problem: Problem) -> None:
    seconds, assignment = minimum_cut(problem)
    assert seconds == pytest.approx(brute_force(problem), rel=1e-12, abs=1e-12)
    if np.isfinite(seconds):
        assert evaluate(problem, assignment[None])[0] == seconds


@settings(max_examples=60, deadline=None)
@given(problems(min_ops=10, max_ops=40))
def test_equals_an_independent_minimum_cut(problem: Problem) -> None:
    assert minimum_cut(problem)[0] == pytest.approx(independent(problem), rel=1e-9, abs=1e-9)


def independent(problem: Problem) -> float:
    """networkx on a network of its own: one node per (tensor, direction), ops as they are."""
    graph, costs = problem.graph, problem.costs
    net = nx.DiGraph()
    net.add_nodes_from(["s", "t"])

    def arc(a: object, b: object, capacity: float) -> None:
        if net.has_edge(a, b):
            capacity += net[a][b].get("capacity", np.inf)
        if np.isfinite(capacity):
            net.add_edge(a, b, capacity=capacity)
        else:
            net.add_edge(a, b)

    for op in range(graph.num_ops):
        arc("s", op, costs.seconds[op, 1])
        arc(op, "t", costs.seconds[op, 0])
    for unit in range(problem.num_units):
        members = np.flatnonzero(problem.units == unit)
        for other in members[1:]:
            arc(int(members[0]), int(other), np.inf)
            arc(int(other), int(members[0]), np.inf)
    for tensor in range(graph.num_tensors):
        readers = graph.consumer_ops[
            graph.consumer_offsets[tensor] : graph.consumer_offsets[tensor + 1]
        ]
        producer = int(graph.tensor_producer[tensor])
        if len(readers):
            arc(producer, ("to1", tensor), costs.transfer_s(tensor, 0, 1) + costs.boundary_s[1])
            arc(("to0", tensor), producer, costs.transfer_s(tensor, 1, 0) + costs.boundary_s[0])
        for reader in readers.tolist():
            arc(("to1", tensor), reader, np.inf)
            arc(reader, ("to0", tensor), np.inf)
    try:
        return float(nx.minimum_cut_value(net, "s", "t"))
    except nx.NetworkXUnbounded:
        return float("inf")


@pytest.mark.parametrize("name", ["squeezenet", "inception_v2", "resnet50", "densenet121"])
def test_equals_an_independent_minimum_cut_on_real_graphs(name: str) -> None:
    graph = load_model(light_models()[f"light_{name}"]).graph
    machine = catalogue("i9-flex170")
    names = ("CPU", "GPU.1")
    cluster = Cluster(
        tuple(d for d in machine.devices if d.name in names),
        tuple(k for k in machine.links if k.source in names and k.target in names),
        machine.name,
    )
    costs = roofline(graph, cluster)
    # The modelled GPU wins everywhere; a third of the ops at CPU speed makes the cut interesting.
    seconds = costs.seconds.copy()
    slow = np.random.default_rng(0).random(graph.num_ops) < 0.33
    seconds[slow, 1] = 3 * seconds[slow, 0]
    problem = Problem(graph, cluster, replace(costs, seconds=seconds))
    value, assignment = minimum_cut(problem)
    assert value == pytest.approx(independent(problem), rel=1e-9)
    assert 0 < assignment.sum() < graph.num_ops


def test_by_hand() -> None:
    seconds, assignment = minimum_cut(chain3())
    assert seconds == 5.0
    assert assignment.tolist() == [0, 1, 0]


def test_a_network_has_one_auxiliary_pair_per_shared_tensor() -> None:
    from situs.core import Sequential

    network = cut_network(diamond4(Sequential()))
    assert network.num_nodes == 4 + 2 + 2


def test_only_sequential_on_two_devices() -> None:
    with pytest.raises(ProblemError, match="two devices"):
        minimum_cut(diamond4(Dataflow()))


def test_memory_limits_are_not_part_of_the_cut() -> None:
    # Both ops on D0 take 2 s; they do not fit, so that 2 is a bound and 4 the optimum.
    seconds, assignment = minimum_cut(memory_tight())
    assert (seconds, assignment.tolist()) == (2.0, [0, 0])
