"""Several runs side by side: what has changed is counted, tested and heard in both."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbeval.cli import main
from dsbeval.results import RunFolder
from reports.html.comparison import compare_runs, difference
from reports.html.shown import at, formatted
from reports.html.site import Run, write_report
from tests.reports.html.conftest import CASES, FEW, Made
from tests.reports.html.page import Page
from tests.reports.html.runs import ifeval_run
from tests.reports.html.test_pages import LOOSE, NAMES, NUMBERS

Look = Callable[..., Page]
OTHER = FEW[1:]
"""A barge-in: a turn-based agent fails, an oracle does not."""


@pytest.fixture(scope="module")
def both(turn_based: Made, tmp_path_factory: pytest.TempPathFactory) -> tuple[Made, Path]:
    """Return the report of the turn-based run beside one of an oracle, of which only some cases are there."""
    folder = ifeval_run(tmp_path_factory.mktemp("runs") / "oracle", "oracle", OTHER)
    runs = [Run.read(turn_based.folder, "before"), Run.read(folder, "after")]
    comparison = compare_runs([(run.name, run.folder, run.summary) for run in runs])
    page = write_report(runs, folder.report / "against", audio="portable", comparison=comparison)
    return Made(folder, runs[1], page), page.parent


def test_what_flipped_is_listed_and_heard_in_both(look: Look, turn_based: Made, both: tuple[Made, Path]) -> None:
    made, out = both
    flipped = [
        name for name in OTHER if turn_based.rows[name, "floor"]["outcome"] != made.rows[name, "floor"]["outcome"]
    ]
    assert flipped
    page = look(made.page).open()
    page.go("#/changes")
    assert f"{len(OTHER)} pairs are compared" in page.text()
    assert "differs in agent: turn_based, oracle" in page.text()
    assert page.texts("#s-flips-1 tbody th a") == flipped
    page.go("#/cases?change=gained")
    assert page.texts("tbody th") == flipped
    assert page.texts(f"tr[data-id='{flipped[0]}'] .badge") == ["✕ failed", "✓ passed"]
    page.go(f"#/case/{flipped[0]}?change=gained")
    assert page.texts(".take > h2") == ["before", "after"]
    for k in (0, 1):
        assert (out / "audio" / f"r{k}" / f"{flipped[0]}.opus").exists()
        page.driver.find_elements("css selector", ".play")[k].click()
        page.until(f"document.querySelectorAll('audio')[{k}].currentTime > 0.1")
    assert page.js("return document.querySelectorAll('audio')[0].paused")  # one at a time
    assert {clip.stem for clip in out.glob("audio/r0/*.opus")} == {clip.stem for clip in out.glob("audio/r1/*.opus")}
    assert CASES[0] not in {clip.stem for clip in out.glob("audio/r0/*.opus")}


def test_every_number_side_by_side_is_in_a_document(look: Look, turn_based: Made, both: tuple[Made, Path]) -> None:
    made, out = both
    comparison = json.loads((out / "comparison.json").read_text())
    documents = [turn_based.summary, made.summary, comparison]
    page = look(made.page).open()
    for name in ("changes", "overview", "published"):
        page.go(f"#/{name}")
        numbers = page.js(NUMBERS)
        assert len(numbers) > 20
        for pointer, form, doc, text in numbers:
            assert text == formatted(at(documents[int(doc)], pointer), form), (doc, pointer)
        assert [text for text in page.js(LOOSE) if re.search(r"\d", NAMES.sub("", text))] == []


def test_a_change_is_the_difference_of_what_stands_beside_it(turn_based: Made, both: tuple[Made, Path]) -> None:
    made, out = both
    changes = json.loads((out / "comparison.json").read_text())["changes"]
    assert changes[0] is None
    for cells in ("all", "reactive", "exercised"):
        one, other = (run.summary["ifeval"]["ias"][cells]["overall"]["rate"] for run in (turn_based, made))
        assert changes[1]["ifeval"]["ias"][cells]["overall"]["rate"] == other - one
    assert "fingerprint" not in changes[1]


leaf = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-1, 1) | st.text(max_size=3)
tree = st.recursive(
    leaf, lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inside, max_size=3)
)


@settings(deadline=None, max_examples=60)
@given(tree)
def test_a_run_does_not_differ_from_itself(value: object) -> None:
    def numbers(found: object) -> list[float]:
        if isinstance(found, dict):
            return [n for inside in found.values() for n in numbers(inside)]
        if isinstance(found, list):
            return [n for inside in found for n in numbers(inside)]
        return [found] if isinstance(found, (int, float)) else []

    assert set(numbers(difference(value, value))) <= {0}


def test_matrices_of_other_models_have_no_difference() -> None:
    one, other = ({"models": names, "values": [[1.0]]} for names in (["a"], ["b"]))
    assert difference(one, other) is None
    assert difference(one, one) == {"models": [None], "values": [[0.0]]}


def test_unlike_runs_are_refused_by_name(turn_based: Made, tmp_path: Path) -> None:
    other = RunFolder.create(tmp_path / "other", turn_based.folder.fingerprint() | {"pack": "0" * 64}, [CASES[0]])
    arguments = ["report", str(turn_based.folder.root), str(other.root), "--audio=none"]
    refused = CliRunner().invoke(main, arguments)
    assert refused.exit_code == 2
    assert "cannot be compared: they differ in pack: " in refused.output
    done = CliRunner().invoke(main, [*arguments, "--allow-unlike"])
    assert done.exit_code == 0, done.output
    page = other.root / "report" / f"against-{turn_based.folder.root.name}" / "index.html"
    assert done.output.strip() == f"report: {page}"
    assert page.exists()
