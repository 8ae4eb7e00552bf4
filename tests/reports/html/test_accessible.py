"""axe-core finds nothing on any page, in light and in dark."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.reports.browser import node_tool
from tests.reports.html.conftest import BROKEN, CASES, Made
from tests.reports.html.page import Page

Look = Callable[..., Page]
RUN = """
  const done = arguments[arguments.length - 1];
  const where = (node) => `${node.html.slice(0, 160)} ${node.failureSummary}`;
  const told = (one) => `${one.id}: ${one.nodes.slice(0, 3).map(where).join(" | ")}`;
  const only = arguments[0] ? { runOnly: arguments[0] } : {};
  axe.run(document, { resultTypes: ["violations"], preload: false, ...only }).then(
    (found) => done(found.violations.map(told)),
    (error) => done([String(error)])
  );
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(look: Look, turn_based: Made, theme: str) -> None:
    checker = node_tool("axe-core/axe.min.js").read_text(encoding="utf-8")
    page = look(turn_based.page)
    for to in ("#/overview", "#/cases", f"#/case/{CASES[3]}", f"#/case/{BROKEN}", "#/published", "#/about"):
        _check(page, to, theme, checker)


def test_axe_finds_nothing_among_conversations(look: Look, conversations: Made) -> None:
    checker = node_tool("axe-core/axe.min.js").read_text(encoding="utf-8")
    page = look(conversations.page)
    for to in ("#/dyads", "#/conversations", f"#/dyad/{conversations.run.rows[0]['id']}"):
        _check(page, to, "light", checker)


def _check(page: Page, to: str, theme: str, checker: str) -> None:
    page.open(to)
    page.js("document.documentElement.dataset.theme = arguments[0]", theme)
    page.js(checker)
    found = page.driver.execute_async_script(
        RUN, ["color-contrast"] if theme == "dark" else None
    )  # else as in the light
    assert found == [], (to, theme)
