"""What the tests of the report ask of a page in the browser."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.reports.browser import requested

WAIT_S = 20.0


class Page:
    """The page of one report. ``check`` is called at the end of a test: no console error, and no request left ``home``."""

    def __init__(self, driver: Any, address: str, home: str) -> None:
        self.driver = driver
        self.address = address
        self.home = home
        driver.get_log("browser")
        driver.get_log("performance")

    def open(self, to: str = "#/overview") -> Page:
        """Load the page at an address inside the report, from nothing."""
        self.driver.get("about:blank")
        self.driver.get(self.address + to)
        self.until("document.getElementById('main').dataset.ready")
        return self

    def go(self, to: str) -> Page:
        """Follow an address inside the report."""
        before, here = self.js("return [document.getElementById('main').dataset.ready, location.hash]")
        if here == to:
            return self
        self.js("location.hash = arguments[0]", to)
        self.until(f"document.getElementById('main').dataset.ready > {before}")
        return self

    def js(self, script: str, *arguments: Any) -> Any:
        """Run a script and return its value."""
        return self.driver.execute_script(script, *arguments)

    def until(self, expression: str) -> Any:
        """Wait until an expression is true, and return it."""
        return self.wait(lambda: self.js(f"return {expression}"), expression)

    def wait(self, ready: Callable[[], Any], what: str) -> Any:
        """Wait until something is true, and return it."""
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            if found := ready():
                return found
            time.sleep(0.02)
        raise AssertionError(f"never came true: {what}")

    def text(self, selector: str = "main") -> str:
        """Return the text of an element, as it is seen."""
        return str(self.driver.find_element("css selector", selector).text)

    def texts(self, selector: str) -> list[str]:
        """Return the text content of each element."""
        found: list[str] = self.js(
            "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector
        )
        return found

    def click(self, selector: str) -> None:
        """Click an element as a user does."""
        self.driver.find_element("css selector", selector).click()

    def choose(self, field: str, value: str) -> None:
        """Choose a value of a filter."""
        before = self.js("return document.getElementById('main').dataset.ready")
        self.js(
            "const e = document.getElementById(arguments[0]); e.value = arguments[1]; e.dispatchEvent(new Event('change'))",
            f"f-{field}",
            value,
        )
        self.until(f"document.getElementById('main').dataset.ready > {before}")

    def press(self, *keys: str) -> None:
        """Press keys wherever the focus is."""
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def width(self, pixels: int, height: int = 900) -> None:
        """Set the width of the page."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": pixels, "height": height, "deviceScaleFactor": 1, "mobile": pixels < 600},
        )

    def requests(self) -> list[str]:
        """Return the addresses that were asked for since the last call."""
        return requested(self.driver)

    def check(self) -> None:
        """Assert that the console is clean and that every request stayed at home."""
        complaints = [
            entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")
        ]
        assert not complaints, complaints
        own = (self.home, "data:", "about:", "chrome")  # chrome: what the browser loads for itself, in its first tab
        away = [url for url in self.requests() if not url.startswith(own)]
        assert not away, away
