"""Conversations in writing, with scripted chats: the report shows them without sound, and Allure their text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from dsbeval.dyadic.textpair import Message
from reports.allure.evidence import pieces
from reports.csv_tables import tables
from reports.html.shown import at, formatted
from tests.reports.html.conftest import Made, make
from tests.reports.html.page import Page
from tests.reports.html.runs import written_run

SHUT = "I would rather not say <b>anything</b> about that."
Look = Callable[..., Page]


def tells(messages: Sequence[Message]) -> str:
    return str(messages[0]["content"])[:2000]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Made:
    root = tmp_path_factory.mktemp("runs") / "written"
    return make(written_run(root, ["T4-2-01"], {"tells": lambda _: tells, "shut": lambda _: lambda _: SHUT}))


def test_scores_in_writing_are_a_section_of_the_overview(look: Look, written: Made) -> None:
    page = look(written.page).open("#/dyads")
    matrix = written.summary["dyadic"]["text"]["matrices"]["T4-2"]
    assert sorted(value for row in matrix["values"] for value in row if value is not None) == [0, 1]
    assert "T4-2" in page.text("#s-writing")
    numbers = page.js(
        "return [...document.querySelectorAll('main [data-key]')].map((e) => [e.dataset.key, e.dataset.format, e.textContent])"
    )
    assert any(key.startswith("/dyadic/text/matrices/T4-2/values") for key, *_ in numbers)
    for key, form, text in numbers:
        assert text == formatted(at(written.summary, key), form), key


def test_tables_say_that_a_score_is_of_writing(written: Made) -> None:
    head, rows = tables(written.summary)["dyad_scores"]
    told = [dict(zip(head, row, strict=True)) for row in rows]
    assert {(row["medium"], row["task"], row["value"]) for row in told} == {("text", "T4-2", 0), ("text", "T4-2", 1)}


def test_a_conversation_in_writing_is_read(look: Look, written: Made) -> None:
    name = written.folder.cases()[0]
    page = look(written.page).open(f"#/dyad/{name}")
    assert "nothing to hear" in page.text()
    assert "cannot be shown" not in page.text()
    assert SHUT in page.texts(".written .words")
    assert page.js("return document.querySelector('audio')") is None
    assert "Prompt" in page.texts(".card h2")


def test_allure_gets_the_transcript(written: Made) -> None:
    name = written.folder.cases()[0]
    for row in (written.rows[name, "dyad"], {"id": name, "item": "dyad", "outcome": "error"}):
        found = {piece.name: piece.body for piece in pieces(written.folder, row)}
        assert list(found) == ["result row", "transcript"]
        assert SHUT in found["transcript"]
