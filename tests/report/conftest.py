"""A headless browser, and saved placements of real models with modelled costs."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from saved import saved_placement
from situs.report.html import report_html
from situs.report.saved import Saved


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium through Selenium; the tests are skipped where there is none.

    The gate sets SITUS_BROWSER=required: there a missing browser is a failure.
    """
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        reason = "no chromium and chromedriver; Debian: apt install chromium chromium-driver"
        if os.environ.get("SITUS_BROWSER") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "window-size=1440,1000"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driven = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield driven
    driven.quit()


@pytest.fixture(scope="session")
def shots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder for screenshots; SITUS_SHOTS names one that is kept."""
    named = os.environ.get("SITUS_SHOTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("shots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def inception() -> Saved:
    from situs import api
    from situs.testing.models import light_models

    return saved_placement(api.load(light_models()["light_inception_v2"]).graph)


@pytest.fixture(scope="session")
def bert() -> Saved:
    """BERT-base as the benchmarks build it."""
    pytest.importorskip("transformers", reason="transformers is not installed")
    path = Path(__file__).parents[2] / "benchmarks" / "models.py"
    spec = spec_from_file_location("benchmark_models", path)
    assert spec is not None
    assert spec.loader is not None
    models = module_from_spec(spec)
    # Dataclasses and annotations look their module up by name.
    sys.modules[spec.name] = models
    spec.loader.exec_module(models)
    return saved_placement(models.load_model(models.bert_base()).graph)


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Callable[[Saved], Any]:
    """Open the report of a saved placement and wait until it can be used."""
    from selenium.webdriver.support.ui import WebDriverWait

    def open_report(saved: Saved) -> Any:
        path = tmp_path / "report.html"
        path.write_text(report_html(saved), encoding="utf-8")
        browser.get_log("browser")
        browser.get(path.as_uri())
        WebDriverWait(browser, 60).until(
            lambda b: b.execute_script("return document.documentElement.dataset.ready")
        )
        return browser

    return open_report
