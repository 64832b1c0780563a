"""The page in a real browser: what a person does with it works, and shows what the rows say."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saved import saved_placement
from situs.graph import Graph, OpSpec, build_graph
from situs.report.html import embedded_json, report_html
from situs.report.rows import report_rows
from situs.report.saved import Saved
from situs.simulate import timeline

Open = Callable[[Saved], Any]

NASTY = [
    "</script><script>document.title='broken'</script>",
    "<img src=x onerror=\"document.title='broken'\">",
    "quotes \" ' ` & back \\ slash",
    "emoji 🧠🚀 and ünïcode",
    "long " + "x" * 10_000,
    "@@data@@ ${1+1} {{x}} <b>bold</b>",
]


def chain(names: list[str]) -> Graph:
    return build_graph(
        "chain of <i>names</i>",
        [
            OpSpec(
                name=name,
                type="<u>Relu</u>",
                sources=[(i - 1, 0)] if i else [],
                output_shapes=[(1, 8)],
                output_dtypes=["f32"],
                output_bytes=[32],
                flop=1e6,
                is_input=i == 0,
                is_output=i == len(names) - 1,
            )
            for i, name in enumerate(names)
        ],
        [],
    )


def errors(browser: Any) -> list[str]:
    """Console errors; software rendering also warns that it is slow, which is no error."""
    return [e["message"] for e in browser.get_log("browser") if e["level"] == "SEVERE"]


def wait(browser: Any, script: str) -> Any:
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, 20).until(lambda b: b.execute_script(f"return {script}"))


def show(browser: Any, chart: str) -> None:
    """Bring a chart into sight; it is drawn then."""
    browser.execute_script(f"document.getElementById('{chart}').scrollIntoView({{block:'center'}})")
    wait(browser, f"drawnOnce.has('{chart}')")


def search(browser: Any, text: str) -> None:
    from selenium.webdriver.common.keys import Keys

    box = browser.find_element("id", "search")
    box.clear()
    box.send_keys(text, Keys.ENTER)


def hover(browser: Any, chart: str, x: float, y: float) -> str:
    """Point at data coordinates of a chart; the text that appears."""
    from selenium.webdriver.common.action_chains import ActionChains

    at = browser.execute_script(
        """const g = document.getElementById(arguments[0]), l = g._fullLayout,
        box = g.getBoundingClientRect();
        return [l.xaxis.l2p(arguments[1]) + l.xaxis._offset - box.width / 2,
                l.yaxis.l2p(arguments[2]) + l.yaxis._offset - box.height / 2];""",
        chart,
        x,
        y,
    )
    target = browser.find_element("id", chart)
    ActionChains(browser).move_to_element_with_offset(target, 5, 5).perform()
    ActionChains(browser).move_to_element_with_offset(target, round(at[0]), round(at[1])).perform()
    wait(browser, "!document.getElementById('tip').hidden")
    return str(browser.find_element("id", "tip").text)


@pytest.mark.parametrize("model", ["inception", pytest.param("bert", marks=pytest.mark.slow)])
def test_a_real_models_report_is_usable(
    model: str, opened: Open, shots: Path, request: pytest.FixtureRequest
) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.actions.wheel_input import ScrollOrigin

    saved: Saved = request.getfixturevalue(model)
    browser = opened(saved)
    rows = report_rows(saved)
    show(browser, "candidates")
    browser.execute_script("scrollTo(0, 0)")
    browser.save_screenshot(str(shots / f"{model}-top.png"))
    show(browser, "graph")
    browser.save_screenshot(str(shots / f"{model}-graph.png"))

    # Search finds an op, and shows it with its costs.
    op = max(range(len(rows["ops"]["name"])), key=lambda i: rows["ops"]["weight"][i])
    name = rows["ops"]["name"][op]
    search(browser, name)
    wait(browser, f"picked === {op}")
    assert name in browser.find_element("id", "detail").text

    # Pointing at it shows the seconds of every device.
    tip = hover(browser, "graph", rows["ops"]["x"][op], rows["ops"]["y"][op])
    assert rows["ops"]["type"][op] in tip
    assert rows["ops"]["shapes"][op] in tip
    for label, seconds in zip(
        [d["label"] for d in rows["devices"]], rows["ops"]["seconds"][op], strict=True
    ):
        assert label in tip
        assert f"{float(f'{seconds * 1e3:.4g}'):.10g} ms" in tip
    browser.save_screenshot(str(shots / f"{model}-hover.png"))

    # The wheel zooms in.
    before = browser.execute_script("return graph.layout.xaxis.range.slice()")
    where = ScrollOrigin.from_element(browser.find_element("id", "graph"))
    ActionChains(browser).scroll_from_origin(where, 0, -300).perform()
    span = "graph.layout.xaxis.range[1] - graph.layout.xaxis.range[0]"
    wait(browser, f"{span} < {before[1] - before[0]} * 0.95")

    show(browser, "timeline")
    browser.save_screenshot(str(shots / f"{model}-timeline.png"))
    show(browser, "convergence")
    browser.execute_script("document.getElementById('theme').click()")
    browser.execute_script("document.getElementById('graph').scrollIntoView({block:'center'})")
    browser.execute_script("document.getElementById('fit').click()")
    wait(browser, "document.documentElement.dataset.theme === 'dark'")
    browser.save_screenshot(str(shots / f"{model}-dark.png"))
    assert errors(browser) == []


def test_the_drawn_timeline_is_the_schedule(inception: Saved, opened: Open) -> None:
    browser = opened(inception)
    show(browser, "timeline")
    found = timeline(inception.problem, inception.assignment)
    graph, d = inception.problem.graph, inception.problem.num_devices
    drawn = browser.execute_script(
        "return timeline.data.map(t => [t.x, (t.customdata || []).map(c => c[0])])"
    )
    spans = [
        [(ops[k], xs[k] / 1e3, xs[k + 2] / 1e3) for k in range(0, len(ops), 4)] for xs, ops in drawn
    ]
    ops = sorted(span for lane in spans[:d] for span in lane)
    expected = zip(range(graph.num_ops), found.start_s, found.end_s, strict=True)
    assert np.array(ops) == pytest.approx(np.array(list(expected)), rel=1e-6, abs=1e-12)
    moves = sorted((start, op, end) for lane in spans[d:] for op, start, end in lane)
    producers = graph.tensor_producer[found.tensor]
    wanted = zip(found.transfer_start_s, producers, found.transfer_end_s, strict=True)
    assert np.array(moves) == pytest.approx(np.array(sorted(wanted)), rel=1e-6, abs=1e-12)
    assert len(moves) == len(found.tensor) > 0


def test_groups_collapse(inception: Saved, opened: Open) -> None:
    together = np.arange(inception.problem.num_ops, dtype=np.int32) // 5
    device = inception.assignment[together * 5]
    problem = replace(
        inception.problem, limits=replace(inception.problem.limits, together=together)
    )
    placement = replace(inception.file.placement, assignment=device)
    browser = opened(Saved(replace(inception.file, placement=placement), problem))
    nodes = "graph.data[graph.data.length - 2].x.length"
    assert browser.execute_script(f"return {nodes}") == problem.num_ops
    browser.execute_script("document.getElementById('collapse').click()")
    assert browser.execute_script(f"return {nodes}") == problem.num_units
    search(browser, problem.graph.op_names[7])
    wait(browser, "picked === 7")
    assert "moves with 4 other ops" in browser.find_element("id", "detail").text
    assert errors(browser) == []


def test_names_are_shown_as_text(opened: Open, shots: Path) -> None:
    saved = saved_placement(chain(NASTY))
    browser = opened(saved)
    for chart in ("candidates", "timeline", "convergence", "graph"):
        show(browser, chart)
    rows = report_rows(saved)
    for op, name in enumerate(NASTY):
        browser.execute_script(f"pick({op}, true)")
        assert (
            browser.execute_script("return document.querySelector('#detail h3').textContent")
            == name
        )
        tip = hover(browser, "graph", rows["ops"]["x"][op], rows["ops"]["y"][op])
        assert "<u>Relu</u>" in tip
    browser.save_screenshot(str(shots / "names.png"))
    assert browser.title == "chain of <i>names</i> - Situs"
    assert browser.execute_script(
        "return document.querySelectorAll('img,i:empty,u').length"
    ) == len(rows["devices"])
    assert errors(browser) == []


@pytest.mark.parametrize("model", ["inception", pytest.param("bert", marks=pytest.mark.slow)])
def test_the_page_needs_no_network_and_is_small(model: str, request: pytest.FixtureRequest) -> None:
    page = report_html(request.getfixturevalue(model))
    assert len(page.encode()) < 8e6
    head = page[: page.index("<script>")]
    assert "http://" not in head
    assert "https://" not in head


@pytest.mark.parametrize("text", ["</script>", "<!--", "\u2028", "a&b", "\ud800"])
def test_embedded_json_cannot_end_its_element(text: str) -> None:
    import json

    made = embedded_json({"name": text})
    assert not set("<>&\u2028\u2029") & set(made)
    assert json.loads(made)["name"] in (text, "?")
