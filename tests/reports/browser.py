"""A headless browser for the tests of the reports: one for a whole session; skipped by name where there is none."""

from __future__ import annotations

import functools
import http.server
import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

TOOLS = Path(__file__).resolve().parents[2] / ".tools" / "node_modules"
ARGUMENTS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--window-size=1400,1000", "--mute-audio",
    "--autoplay-policy=no-user-gesture-required",
)  # fmt: skip


def node_tool(path: str) -> Path:
    """Return a file of ``.tools/node_modules``; skip the test where ``.ci/run`` has not put it there."""
    found = TOOLS / path
    if not found.exists():
        pytest.skip(f"{path} is not in .tools; npm install --prefix .tools allure@3 axe-core@4")
    return found


@contextmanager
def open_browser(profile: Path) -> Iterator[Chrome]:
    """Yield Chromium with a fresh profile; its console and its requests are kept."""
    driver, browser = shutil.which("chromedriver"), shutil.which("chromium")
    if driver is None or browser is None:
        pytest.skip("there is no chromium with chromedriver; apt-get install chromium chromium-driver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in (*ARGUMENTS, f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        yield chrome
    finally:
        chrome.quit()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on the loopback; yield its address."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Keep quiet."""

    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def console_errors(chrome: Chrome) -> list[str]:
    """Return the errors of the console since the last call."""
    return [str(entry["message"]) for entry in chrome.get_log("browser") if entry["level"] == "SEVERE"]


def requested(chrome: Chrome) -> list[str]:
    """Return the addresses that were asked for since the last call."""
    messages: list[dict[str, Any]] = [
        json.loads(entry["message"])["message"] for entry in chrome.get_log("performance")
    ]
    return [str(m["params"]["request"]["url"]) for m in messages if m["method"] == "Network.requestWillBeSent"]
