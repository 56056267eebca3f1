"""Headless Chromium for the tests of HTML pages.

Without Chromium and its driver these tests are skipped. With LLPBENCH_REQUIRE_BROWSER=1 they fail instead.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

BROWSERS = ("chromium", "chromium-browser", "google-chrome")

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1400,1000",
)


@pytest.fixture(scope="session", name="chrome")
def chrome_fixture() -> Iterator[Chrome]:
    """One browser with a new profile for all tests."""
    driver, binary = shutil.which("chromedriver"), next(filter(None, map(shutil.which, BROWSERS)), None)
    if driver is None or binary is None:
        _lacking("Chromium and chromedriver are not on the PATH")
    try:
        import selenium  # noqa: F401
    except ImportError:
        _lacking("selenium is not installed")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = launch(str(driver), str(binary), profile)
        yield browser
        browser.quit()


def launch(driver: str, binary: str, profile: str) -> Chrome:
    """Start the browser. Both programs are named, so selenium does not search for others."""
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    options = ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = Chrome(options=options, service=ChromeService(driver))
    browser.set_script_timeout(30)
    browser.get("about:blank")  # the first page makes many requests
    return browser


def requested(browser: Chrome) -> list[str]:
    """Return the addresses that the browser has requested since the last call."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]


def complaints(browser: Chrome) -> list[str]:
    """Return warnings and errors of the console since the last call."""
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] in ("WARNING", "SEVERE")]


def open_page(browser: Chrome, page: str, folder: Path, fragment: str = "", *, scripts: bool = True) -> None:
    """Show a page and wait for its scripts."""
    browser.get("about:blank")
    requested(browser), complaints(browser)
    file = folder / "page.html"
    file.write_text(page, encoding="utf-8")
    browser.get(f"{file.as_uri()}{fragment}")
    if scripts:
        wait_for_page(browser)


def wait_for_page(browser: Chrome) -> None:
    """Wait until the script of a page has loaded its data and shown what the address names."""
    end = time.monotonic() + 20
    ready = "return !document.getElementById('data') || document.documentElement.dataset.ready === ''"
    while not browser.execute_script(ready):
        assert time.monotonic() < end, f"the page was not ready in time: {complaints(browser)}"
        time.sleep(0.01)


def resize(browser: Chrome, width: int, height: int = 800) -> None:
    """Set the visible size of the page."""
    command = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", command)


def prefer(browser: Chrome, scheme: str) -> None:
    """Prefer a light or dark colour scheme, and no animations, which would move elements during a click."""
    values = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
    features = [{"name": name, "value": value} for name, value in values.items()]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def _lacking(what: str) -> None:
    if os.environ.get("LLPBENCH_REQUIRE_BROWSER") == "1":
        pytest.fail(f"{what}, but LLPBENCH_REQUIRE_BROWSER=1 asks for it")
    pytest.skip(what)
