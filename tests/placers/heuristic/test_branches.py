import itertools

import numpy as np

from situs.placers.heuristic.branches import branch_groups
from situs.placers.heuristic.moves import Neighbourhood
from situs.testing.problems import fork_join, tiny


def groups(problem, largest: int = 64) -> set[tuple[str, ...]]:
    offsets, units = branch_groups(problem, largest)
    names = np.array(problem.graph.op_names)
    return {
        tuple(names[np.isin(problem.units, units[a:b])]) for a, b in itertools.pairwise(offsets)
    }


def two_branches():
    reads = {"f": [], "a1": ["f"], "a2": ["a1"], "b1": ["f"], "b2": ["b1"], "b3": ["b2"]}
    reads |= {"j": ["a2", "b3"], "t": ["j"]}
    return tiny(reads, dict.fromkeys(reads, (1.0, 2.0)), 0.5)


def test_branches_lie_between_their_fork_and_join() -> None:
    assert groups(two_branches()) == {("a1", "a2"), ("b1", "b2", "b3")}
    assert groups(two_branches(), largest=2) == {("a1", "a2")}


def test_a_way_out_of_a_branch_ends_it() -> None:
    reads = {"f": [], "a1": ["f"], "a2": ["a1"], "b1": ["f"], "b2": ["b1", "a1"]}
    reads |= {"j": ["a2", "b2"]}
    crossed = tiny(reads, dict.fromkeys(reads, (1.0, 2.0)), 0.5)
    assert groups(crossed) == {("a1", "a2", "b1", "b2")}


def test_drawn_moves_are_allowed_distinct_and_somewhere_else() -> None:
    for problem in (two_branches(), fork_join()):
        moves = Neighbourhood(problem)
        device = np.zeros(problem.num_units, dtype=np.int32)
        offsets, units, targets = moves.draw_many(device, 500, np.random.default_rng(0))
        seen = set()
        for k, target in enumerate(targets):
            group = units[offsets[k] : offsets[k + 1]]
            assert len(set(group.tolist())) == len(group) > 0
            assert problem.unit_allowed[group, target].all()
            assert target != device[group[0]]
            seen.add(tuple(sorted(group.tolist())))
        assert len(seen) > problem.num_units
