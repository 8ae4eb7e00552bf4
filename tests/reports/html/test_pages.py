"""The report in a real browser: what it shows is what the run says, and nothing else."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbeval.results import RunFolder
from reports.html.shown import FORMATS, at, formatted
from tests.reports.browser import served
from tests.reports.html.conftest import BROKEN, CASES, CUT, Made, make
from tests.reports.html.page import Page
from tests.reports.html.runs import fingerprint

Look = Callable[..., Page]

NAMES = re.compile(
    r"\bL[0-4][ab]?\b|\bR[1-8]\b|\bC[1-4]\b|\bT[1-4](?:-[1-4])?\b|\bp\d\d\b|\b95 %|(?:IFD|DYA)-\S+"
)  # what has a digit in it and is no number
PAGES = ("overview", "published", "about")

NUMBERS = """
  const all = [...document.querySelectorAll("main [data-key]")];
  return all.map((e) => [e.dataset.key, e.dataset.format, e.dataset.doc, e.textContent]);
"""
LOOSE = """
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const at = walker.currentNode.parentElement;
    if (/[0-9]/.test(walker.currentNode.data) && !at.closest(".num, .label, .run, svg")) found.push(walker.currentNode.data);
  }
  return found;
"""


def test_counts_agree_with_the_summary(look: Look, turn_based: Made) -> None:
    counts = turn_based.summary["counts"]
    assert counts["cases"] == len(CASES) + 2
    assert counts["error"] == counts["missing"] == 1
    page = look(turn_based.page).open("#/overview")
    told = {name: int(number) for number, name in (text.split(" ") for text in page.texts(".tally li"))}
    assert told == {k: v for k, v in counts.items() if k != "cases"}
    assert page.texts(".tally .total") == [f"{counts['cases']} cases"]
    for outcome in ("passed", "failed", "error", "missing"):
        page.go(f"#/cases?outcome={outcome}")
        assert len(page.texts("tbody tr")) == counts[outcome]
        assert page.js("return document.querySelector('.count').dataset.shown") == str(counts[outcome])


def test_every_number_of_every_page_is_in_the_summary(look: Look, turn_based: Made) -> None:
    page = look(turn_based.page).open()
    summary = json.loads((turn_based.page.parent / "summary.json").read_text())
    for name in PAGES:
        page.go(f"#/{name}")
        numbers = page.js(NUMBERS)
        assert len(numbers) > {"overview": 100, "published": 100, "about": 0}[name]
        for pointer, form, doc, text in numbers:
            assert (doc, text) == ("0", formatted(at(summary, pointer), form)), pointer
        assert [text for text in page.js(LOOSE) if re.search(r"\d", NAMES.sub("", text))] == []


def test_every_number_of_a_conversations_page_is_in_the_summary(look: Look, conversations: Made) -> None:
    page = look(conversations.page).open("#/dyads")
    numbers = page.js(NUMBERS)
    assert len(numbers) > 150
    for pointer, form, doc, text in numbers:
        assert (doc, text) == ("0", formatted(at(conversations.summary, pointer), form)), pointer
    assert [text for text in page.js(LOOSE) if re.search(r"\d", NAMES.sub("", text))] == []


def test_every_number_of_a_case_is_in_its_row(look: Look, turn_based: Made) -> None:
    page = look(turn_based.page).open("#/cases")
    found = list(_facts(page))
    for name in CASES:
        page.go(f"#/case/{name}")
        own = list(_facts(page))
        assert len(own) > 8
        found += own
    for pointer, form, name, item, text in found:
        assert text == formatted(at(turn_based.rows[name, item], pointer), form), (name, pointer)


def _facts(page: Page) -> Iterator[tuple[str, ...]]:
    for fields in page.js(
        "return [...document.querySelectorAll('main [data-row]')].map("
        "(e) => [e.dataset.row, e.dataset.format, e.dataset.id, e.dataset.item, e.textContent])"
    ):
        yield tuple(fields)


@settings(deadline=None, max_examples=20)
@given(
    st.lists(
        st.floats(-1e6, 1e6) | st.sampled_from([0.3125, -0.0625, 0.125, 2.5, 1.005, -0.0004, 0.0, 1.0]), min_size=20
    )
)
def test_a_number_is_rounded_as_in_the_terminal(chrome: Any, turn_based: Made, values: list[float]) -> None:
    if not chrome.current_url.startswith(turn_based.page.as_uri()):
        chrome.get(turn_based.page.as_uri())
    forms = [form for form in FORMATS if form not in ("raw", "+int", "int")]
    told = chrome.execute_script(
        "return arguments[0].map((form) => arguments[1].map((value) => dsb.format(form, value)))", forms, values
    )
    assert told == [[formatted(value, form) for value in values] for form in forms]


# Filters


def test_filters_live_in_the_address_and_go_along(look: Look, turn_based: Made) -> None:
    page = look(turn_based.page).open("#/cases")
    page.choose("role", "R1")
    mine = [name for name in CASES if name.startswith("IFD-R1-")]
    assert page.texts("tbody th") == mine
    page.choose("level", "L2")
    mine = [name for name in mine if name.endswith("-L2")]
    assert page.texts("tbody th") == mine
    assert page.js("return location.hash") == "#/cases?role=R1&level=L2"
    page.click("tbody th a")
    page.until("document.querySelector('.verdict')")
    assert page.text(".where") == f"1 of {len(mine)}"
    page.press("]")
    page.until(f"location.hash.includes('{mine[1]}')")
    assert page.js("return location.hash").endswith("?role=R1&level=L2")
    page.until(f"document.querySelector('.where').textContent === '2 of {len(mine)}'")
    page.open("#/cases?role=R1&level=L2")  # a link that somebody else was sent
    assert page.texts("tbody th") == mine
    assert page.js("return document.getElementById('f-role').value") == "R1"


def test_cases_are_sorted_and_cut_by_margin(look: Look, turn_based: Made) -> None:
    margins = {name: turn_based.rows[name, "floor"]["margin"] for name in CASES}
    known = sorted((name for name in CASES if margins[name] is not None), key=lambda name: margins[name])
    assert 2 < len(known) < len(CASES)
    page = look(turn_based.page).open("#/cases?sort=margin")
    assert page.texts("tbody th")[: len(known)] == known
    page.choose("max", "0")
    assert page.texts("tbody th") == [name for name in known if margins[name] <= 0]
    page.choose("max", "")
    page.choose("q", "barge-in")
    assert sorted(page.texts("tbody th")) == [name for name in sorted(CASES) if "-C3-" in name]
    page.choose("q", "no such words")
    assert "No cases match the filters" in page.text()


def test_what_was_begun_again_is_said(look: Look, turn_based: Made, tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run", fingerprint("turn_based"), CASES[:2])
    for name, again in zip(CASES, (2, 1), strict=False):
        folder.append(dict(turn_based.rows[name, "floor"]) | {"restarts": again})
    page = look(make(folder).page).open()
    assert "begun again because a session was lost: 2 (3 times in all)" in page.text()
    assert "restarts" not in turn_based.summary


# Safe text

NASTY = "<script>window.hit = 1</script><img src=x onerror='window.hit = 2'> \"quoted\" & 'so' 😀"
HEBREW = "שלום, מה שלומך היום"


def test_text_is_shown_as_text(look: Look, turn_based: Made, tmp_path: Path) -> None:
    name = CASES[0]
    folder = RunFolder(tmp_path / "run")
    shutil.copytree(turn_based.folder.root, folder.root)
    path = folder.recordings / f"{name}.rec.json"
    meta = json.loads(path.read_text())
    meta["prompt"] = NASTY
    meta["tokens"] = [{"t": 14.0, "sample": 336000, "text": NASTY}, {"t": 17.0, "sample": 408000, "text": HEBREW}]
    path.write_text(json.dumps(meta))
    row = dict(turn_based.rows[name, "floor"]) | {"message": NASTY}
    folder.append(row)
    run = json.loads((folder.root / "run.json").read_text())
    run["fingerprint"]["agent"] = NASTY
    (folder.root / "run.json").write_text(json.dumps(run))

    page = look(make(folder).page).open(f"#/case/{name}")
    assert NASTY in page.text("h1")
    assert page.texts(".prompt") == [NASTY]
    assert page.texts(".transcript .channel-1 .words") == [NASTY, HEBREW]
    assert page.texts(".said.channel-1 .phrase")[0] == NASTY
    directions = page.js(
        "return [...document.querySelectorAll('.transcript .channel-1 .words')].map((e) => getComputedStyle(e).direction)"
    )
    assert directions == ["ltr", "rtl"]
    assert page.text("#whose") != ""
    for to in ("#/overview", "#/about", "#/cases?q=quoted"):
        page.go(to)
        assert NASTY in page.text()
    assert page.js("return window.hit ?? null") is None
    assert page.js("return document.querySelectorAll('main img, main script').length") == 0


# Runs that have little to say


def test_an_empty_run_says_so(look: Look, tmp_path: Path) -> None:
    made = make(RunFolder.create(tmp_path / "run", fingerprint("cascade"), []))
    page = look(made.page).open()
    assert "The run is empty: it holds no case." in page.text()


def test_a_run_of_errors_only_says_so(look: Look, tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run", fingerprint("broken"), [BROKEN])
    folder.append({
        "id": BROKEN, "item": "floor", "role": "R3", "probe": "C2", "level": "L2", "instance": 1, "action": "READBACK",
        "scored_as": "READBACK", "matched": False, "outcome": "error", "message": "agent broken: cannot be opened",
    })  # fmt: skip
    page = look(make(folder).page).open()
    assert "Errors only: no case has a verdict. 1 of 1 cases broke." in page.text()
    assert page.texts("table") == []
    page.go("#/cases")
    assert "agent broken: cannot be opened" in page.text()
    page.go(f"#/case/{BROKEN}")
    assert page.text("h1") == "! error agent broken: cannot be opened"
    assert "There is no recording." in page.text()


def test_a_cut_run_and_its_error_say_so(look: Look, turn_based: Made) -> None:
    page = look(turn_based.page).open()
    assert f"The run was cut: 1 of {len(CASES) + 2} cases have no result." in page.text()
    assert f"1 of {len(CASES) + 2} cases ended in an error; they are in no rate." in page.text()
    page.go(f"#/case/{CUT}")
    assert page.text("h1").startswith("∅ missing")
    page.go(f"#/case/{BROKEN}")
    assert "RuntimeError: broke" in page.text("pre")


def test_a_run_without_a_judge_says_so(look: Look, turn_based: Made, tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run", fingerprint("turn_based"), [CASES[0]])
    folder.append(turn_based.rows[CASES[0], "floor"])
    page = look(make(folder).page).open()
    assert "No judge: persona adherence was not judged" in page.text()
    assert "Persona adherence" not in page.text(".contents")
    page.go(f"#/case/{CASES[0]}")  # a verdict whose recording is gone
    assert "There is no recording." in page.text()


def test_a_damaged_recording_leaves_the_rest(look: Look, turn_based: Made, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    shutil.copytree(turn_based.folder.root, folder.root)
    (folder.recordings / f"{CASES[0]}.rec.json").write_text("{ torn")
    (folder.recordings / f"{CASES[1]}.rec.json").write_text('{"schema": 1, "audio": "x.wav"}')
    (folder.recordings / f"{CASES[2]}.stereo.wav").unlink()
    page = look(make(folder, "linked").page).open(f"#/case/{CASES[0]}")
    assert "the recording cannot be shown" in page.text()
    page.go(f"#/case/{CASES[1]}")
    assert "the recording cannot be shown" in page.text()
    page.go(f"#/case/{CASES[2]}")
    assert "the audio of this recording is gone" in page.text()
    assert page.texts(".transcript .words") != []
    page.go(f"#/case/{CASES[3]}")
    assert page.js("return document.querySelector('audio').getAttribute('src')").startswith("audio/r0/")


def test_a_piece_of_data_that_is_missing_is_named(look: Look, turn_based: Made, tmp_path: Path, chrome: Any) -> None:
    there = tmp_path / "report"
    shutil.copytree(turn_based.page.parent, there)
    (there / "data" / "r0-case-0.js").unlink()
    page = look(there / "index.html").open("#/cases")
    page.go(f"#/case/{CASES[0]}")
    assert "data/r0-case-0.js is missing" in page.text()
    chrome.get_log("browser")  # the browser has complained of it, and rightly


# Width, theme, hosts


@pytest.mark.parametrize("to", ["#/overview", "#/cases", f"#/case/{CASES[3]}", "#/published"])
def test_nothing_is_wider_than_a_phone(look: Look, turn_based: Made, to: str) -> None:
    page = look(turn_based.page)
    page.width(390)
    page.open(to)
    assert page.js("return document.documentElement.scrollWidth") <= 390


def test_light_and_dark(look: Look, turn_based: Made) -> None:
    page = look(turn_based.page).open()
    colours = []
    for _ in range(3):
        page.click("#theme")
        colours.append(page.js("return getComputedStyle(document.body).backgroundColor"))
    assert colours[0] != colours[1]
    assert page.js("return document.documentElement.dataset.theme") == "auto"


def test_a_static_host_serves_it(moved: Made, chrome: Any) -> None:
    with served(moved.page.parent) as host:
        page = Page(chrome, f"{host}/", f"{host}/").open("#/cases")
        page.click("tbody th a")
        page.until("document.querySelector('.wave')")
        page.click(".play")
        page.until("document.querySelector('audio').currentTime > 0.1")
        page.check()
        chrome.get("about:blank")
