"""The browser of the report tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.reports.browser import open_browser

if TYPE_CHECKING:
    from selenium.webdriver import Chrome


@pytest.fixture(scope="session")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """Yield the browser, started once a worker."""
    with open_browser(tmp_path_factory.mktemp("profile")) as driver:
        yield driver
