"""Hooks that this plugin calls; another plugin may implement them."""

from __future__ import annotations

import pytest

from dsbeval.results import Row


@pytest.hookspec
def pytest_dsbeval_row(item: pytest.Item, row: Row) -> None:
    """Take note of the result row of an item, just after it was written and while the item is still open."""


@pytest.hookspec
def pytest_dsbeval_crash(config: pytest.Config, nodeid: str, row: Row) -> None:
    """Take note, in xdist's controller, of the error row of an item whose worker died."""
