"""Size of a report, time to write it, and time until it can be used in headless Chromium.

Each report is opened in fresh browser processes that have come to rest and never saw it before;
the page says itself when its graph is drawn and its controls work (time since navigation began).
Costs are modelled; no latency is claimed.
Prints a table and writes ``results/report.json``.
"""

from __future__ import annotations

import json
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from import_scale import residual_blocks
from situs.core import Dataflow, Problem, place
from situs.core.placement_file import PlacementFile
from situs.costs import roofline
from situs.hardware import catalogue
from situs.importers import load_model
from situs.profiling.environment import environment
from situs.report.html import report_html
from situs.report.saved import Saved

SIZES = (1_000, 5_000)
REPEATS = 5
SETTLE_S = 2.0
RESULTS = Path(__file__).parent / "results" / "report.json"


def saved(ops: int, folder: Path) -> Saved:
    """A graph of two-branch blocks, in six stretches on two devices in turn."""
    graph = load_model(residual_blocks(ops, folder / f"{ops}.xml")).graph
    cluster = catalogue("i9-flex170")
    problem = Problem(graph, cluster, roofline(graph, cluster), Dataflow())
    two = np.array([cluster.index("CPU"), cluster.index("GPU.1")], dtype=np.int32)
    assignment = two[problem.units // max(problem.num_units // 6, 1) % 2]
    return Saved(PlacementFile(place(problem, assignment), cluster.devices), problem)


def opened_s(page: Path) -> float:
    """Seconds from navigation until the page is ready, in a new browser."""
    from selenium import webdriver
    from selenium.webdriver.support.ui import WebDriverWait

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    for flag in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "window-size=1440,1000"):
        options.add_argument(f"--{flag}")
    service = webdriver.ChromeService(shutil.which("chromedriver") or "chromedriver")
    browser = webdriver.Chrome(options=options, service=service)
    try:
        browser.get("about:blank")
        time.sleep(SETTLE_S)  # A browser that is still starting would be measured, not the page.
        browser.get(page.as_uri())
        ready = WebDriverWait(browser, 120).until(
            lambda b: b.execute_script("return document.documentElement.dataset.ready")
        )
    finally:
        browser.quit()
    return float(ready) / 1e3


def main() -> None:
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for size in SIZES:
            value = saved(size, folder)
            begun = time.perf_counter()
            text = report_html(value)
            written_s = time.perf_counter() - begun
            page = folder / f"{size}.html"
            page.write_text(text, encoding="utf-8")
            samples = [opened_s(page) for _ in range(REPEATS)]
            rows.append(
                {
                    "ops": value.problem.num_ops,
                    "bytes": page.stat().st_size,
                    "written_s": written_s,
                    "ready_s": statistics.median(samples),
                    "ready_samples_s": samples,
                }
            )
    print(f"{'ops':>6} {'MB':>6} {'written s':>10} {'ready s, median (least)':>24}")
    for row in rows:
        print(
            f"{row['ops']:>6} {row['bytes'] / 1e6:>6.2f} {row['written_s']:>10.2f} "
            f"{row['ready_s']:>15.2f} ({min(row['ready_samples_s']):.2f})"
        )
    RESULTS.write_text(json.dumps({"rows": rows, "environment": environment()}, indent=1) + "\n")


if __name__ == "__main__":
    main()
