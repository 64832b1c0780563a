import numpy as np
import pytest

from situs.core.rules import Rule, Rules, read_rules
from situs.errors import ClusterError, ProblemError
from situs.testing.problems import fork_join

PROBLEM = fork_join()  # a, b1, b2, c, all of type Op
GRAPH, CLUSTER = PROBLEM.graph, PROBLEM.cluster


def pinned(*rules: Rule, default: str = "") -> list[int]:
    return Rules(rules, default).pinned(GRAPH, CLUSTER).tolist()


@pytest.mark.parametrize(
    ("kind", "pattern", "expected"),
    [
        ("name", "b1", [-1, 1, -1, -1]),
        ("glob", "b*", [-1, 1, 1, -1]),
        ("regex", "^[ac]$", [1, -1, -1, 1]),
        ("type", "Op", [1, 1, 1, 1]),
        ("range", "b1..c", [-1, 1, 1, 1]),
    ],
)
def test_every_kind(kind: str, pattern: str, expected: list[int]) -> None:
    assert pinned(Rule(kind, pattern, "d1")) == expected


def test_default_fills_the_rest() -> None:
    assert pinned(Rule("name", "a", "D1"), default="D0") == [1, 0, 0, 0]


def test_agreeing_rules_may_overlap_and_others_conflict() -> None:
    assert pinned(Rule("glob", "b*", "D1"), Rule("name", "b1", "D1")) == [-1, 1, 1, -1]
    with pytest.raises(ProblemError, match=r"both select 'b1'.*narrow"):
        pinned(Rule("glob", "b*", "D1"), Rule("name", "b1", "D0"))


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (Rule("name", "B1", "D0"), "matches no op; near names: b1"),
        (Rule("type", "op", "D0"), "near names: Op"),
        (Rule("glob", "zzz*", "D0"), "matches no op"),
        (Rule("regex", "(", "D0"), "not a regular expression"),
        (Rule("range", "a", "D0"), "first..last"),
        (Rule("range", "a..d", "D0"), "no op is named 'd'"),
        (Rule("range", "c..a", "D0"), "matches no op"),
    ],
)
def test_mistakes_are_one_clear_line(rule: Rule, message: str) -> None:
    with pytest.raises(ProblemError) as caught:
        pinned(rule)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_device() -> None:
    with pytest.raises(ClusterError, match="unknown device"):
        pinned(Rule("name", "a", "GPU"))


def test_file(tmp_path) -> None:
    path = tmp_path / "pins.toml"
    path.write_text('default = "D0"\n[[pin]]\nglob = "b*"\ndevice = "D1"\n')
    assert read_rules(path).pinned(GRAPH, CLUSTER).tolist() == [0, 1, 1, 0]
    assert np.array_equal(read_rules(path).pinned(GRAPH, CLUSTER), [0, 1, 1, 0])


@pytest.mark.parametrize(
    "text",
    [
        "default = 3",
        "pins = []",
        "[[pin]]\ndevice = 'D0'",
        "[[pin]]\nname = 'a'",
        "[[pin]]\nname = 'a'\nglob = 'b'\ndevice = 'D0'",
        "[[pin]]\nname = 3\ndevice = 'D0'",
        "[[pin]\n",
    ],
)
def test_bad_files(tmp_path, text: str) -> None:
    path = tmp_path / "pins.toml"
    path.write_text(text)
    with pytest.raises(ProblemError, match=r"pins\.toml"):
        read_rules(path)
