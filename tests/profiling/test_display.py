from situs.profiling.display import candidates_html
from situs.testing.problems import chain3


def test_candidates_are_escaped_and_the_chosen_one_is_bold() -> None:
    row = {
        "name": "<b>x</b>",
        "executor": "hetero",
        "predicted_s": 0.001,
        "measured_s": 0.002,
        "interval_s": [0.0019, 0.0021],
        "status": "ok",
    }
    failed = row | {"name": "y", "measured_s": None, "interval_s": None, "status": "run_failed"}
    shown = candidates_html("a < b", [row, failed], "<b>x</b>")
    assert "<p>a &lt; b</p>" in shown
    assert '<tr style="font-weight: bold"><td>&lt;b&gt;x&lt;/b&gt;</td>' in shown
    assert "1.900 to 2.100" in shown
    assert "run failed" in shown
    assert shown.count("bold") == 1


def test_a_graph_shows_its_size_and_types() -> None:
    shown = chain3().graph._repr_html_()
    assert "tiny: 3 ops, 2 edges" in shown
    assert "<td>Op</td><td>3</td>" in shown
