"""The page of a recording in a real browser: it is heard, seen, and worked by keyboard."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from selenium.webdriver.common.keys import Keys

from reports.html.peaks import PEAKS_PER_S
from tests.reports.html.conftest import CASES, FEW, Made
from tests.reports.html.page import Page

Look = Callable[..., Page]
FAILING = FEW[1]
AUDIO = "document.querySelector('audio')"
CURSOR = "return parseFloat(document.querySelector('.cursor').style.left)"
FACTS = """
  return [...document.querySelectorAll("main [data-row]")].map((e) => [e.dataset.row, e.dataset.format, e.textContent])
"""
NOW = "return Number(document.querySelector('.wave').getAttribute('aria-valuenow'))"


def test_a_failing_case_is_heard_and_seen(look: Look, moved: Made) -> None:
    row = moved.rows[FAILING, "floor"]
    assert row["outcome"] == "failed"
    meta = _meta(moved, FAILING)
    page = look(moved.page).open("#/cases?outcome=failed")
    page.click(f"tr[data-id='{FAILING}'] a")
    page.until("document.querySelector('.wave')")
    assert page.text("h1") == f"✕ failed {row['message'].partition(' (window ')[0]}"

    # Nothing is loaded before it is asked for
    assert not [url for url in page.requests() if url.endswith(".opus")]
    assert page.js(f"return {AUDIO}.readyState") == 0
    before = page.js(CURSOR)
    page.click(".play")
    page.until(f"{AUDIO}.readyState >= 2 && {AUDIO}.currentTime > 0.3")
    assert abs(page.js(f"return {AUDIO}.duration") - meta["duration_s"]) < 0.05
    assert page.text(".play") == "❚❚ Pause"
    first = page.js(CURSOR)
    page.until(f"{AUDIO}.currentTime > 0.6")
    assert before < first < page.js(CURSOR)
    page.until("document.querySelector('.transcript .now')")
    page.click(".play")
    assert page.js(f"return {AUDIO}.paused")
    heard = page.js(f"return {AUDIO}.currentTime")
    page.wait(lambda: abs(page.js(NOW) - heard) < 0.05, "the cursor stands where the audio does")
    assert [url for url in page.requests() if url.endswith(f"audio/r0/{FAILING}.opus")]


def test_the_picture_is_of_the_recording(look: Look, turn_based: Made) -> None:
    meta, row = _meta(turn_based, FAILING), turn_based.rows[FAILING, "floor"]
    page = look(turn_based.page).open(f"#/case/{FAILING}")
    paths = page.js(
        "return [...document.querySelectorAll('.peaks path')].map((e) => e.getAttribute('d').split('L').length)"
    )
    assert len(paths) == 2
    assert all(points > 2 * 0.9 * min(1600 / 2, meta["duration_s"] * PEAKS_PER_S) for points in paths)
    spoken = sum(part["type"] == "speech" for part in meta["user"])
    assert len(page.texts(".channel-0 .speech")) == spoken
    assert len(page.texts(".channel-1 .speech")) == len(row["measurements"]["samples"]["speech"])
    assert _share(page, ".lanes > .window") == _percent(meta["window"]["start_s"], meta)
    assert _share(page, ".limit") == _percent(
        meta["window"]["start_s"] + row["thresholds"]["max_latency_ms"] / 1000, meta
    )
    assert _share(page, ".measured") == _percent(
        meta["window"]["start_s"] + row["measurements"]["first_offset_s"], meta
    )
    description = page.js("return document.querySelector('.wave').getAttribute('aria-label')")
    assert f"Scored window {meta['window']['start_s']:.2f} s to {meta['window']['end_s']:.2f} s." in description
    assert page.texts(".prompt") == [meta["prompt"]]
    said = [part["text"] for part in meta["user"] if part["type"] == "speech"]
    assert page.texts(".transcript .channel-0 .words") == said


def test_keys_do_what_buttons_do(look: Look, turn_based: Made) -> None:
    meta = _meta(turn_based, FAILING)
    page = look(turn_based.page).open(f"#/case/{FAILING}")
    page.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT)
    assert page.js(NOW) == 2.0
    page.press(Keys.END)
    assert page.js(NOW) == round(meta["duration_s"], 2)
    page.press(Keys.HOME)
    assert page.js(NOW) == 0.0
    page.press(" ")
    page.until(f"!{AUDIO}.paused && {AUDIO}.currentTime > 0.1")
    page.press(" ")
    page.until(f"{AUDIO}.paused")
    page.press("w")  # two seconds before the window, so that it is heard in its place
    start = meta["window"]["start_s"] - 2
    page.until(f"!{AUDIO}.paused && {AUDIO}.currentTime >= {start}")
    assert page.js(f"return {AUDIO}.currentTime") < meta["window"]["end_s"]
    page.press(" ", "z")
    assert 15 < _share(page, ".lanes > .window") < 45
    page.press("z")
    assert _share(page, ".lanes > .window") == _percent(meta["window"]["start_s"], meta)
    place = CASES.index(FAILING)
    page.press("]")
    page.until(f"document.querySelector('.about').textContent.includes('{CASES[place + 1]}')")
    page.press("[")
    page.until(f"location.hash === '#/case/{FAILING}'")


def test_everything_is_reached_by_the_tab_key(look: Look, turn_based: Made) -> None:
    page = look(turn_based.page).open(f"#/case/{FAILING}")
    reached = set()
    for _ in range(60):
        page.press(Keys.TAB)
        reached.add(page.js("const e = document.activeElement; return e.className || e.id || e.textContent"))
    assert {"skip", "quiet", "wave", "play", "when", "Cases"} <= reached


def test_a_click_on_the_picture_goes_there(look: Look, turn_based: Made) -> None:
    meta = _meta(turn_based, FAILING)
    page = look(turn_based.page).open(f"#/case/{FAILING}")
    page.click(".wave")  # in its middle
    assert abs(page.js(NOW) - meta["duration_s"] / 2) < 0.2
    page.click(".transcript .channel-0:last-child .when, .transcript .when")
    assert page.js(NOW) == round(meta["user"][0]["start_s"], 2)


def test_neighbours_are_at_hand(look: Look, turn_based: Made) -> None:
    page = look(turn_based.page).open("#/case/IFD-R1-C1-i1-L2")
    signs = {True: "✓passed", False: "✕failed"}
    others = {"L1": "IFD-R1-C1-i1-L1", "R2 L2": "IFD-R2-C1-i1-L2"}
    assert page.texts(".neighbours a") == [
        f"{signs[_passed(turn_based, case)]} {name}" for name, case in others.items()
    ]
    page.click(".neighbours a")
    page.until("location.hash === '#/case/IFD-R1-C1-i1-L1'")


def test_the_judge_says_why(look: Look, turn_based: Made) -> None:
    judged = turn_based.rows[FAILING, "persona"]
    page = look(turn_based.page).open(f"#/case/{FAILING}")
    told = "\n".join(page.texts(".judge"))
    assert judged["summary"] in told
    assert f"PAS {judged['pas']}" in told
    assert "register rationale" in told


def test_a_conversation_is_heard_and_seen(look: Look, conversations: Made) -> None:
    name = next(row["id"] for row in conversations.run.rows if row["task"] == "T4-2" and row["scores"]["a"]["score"])
    row = conversations.rows[name, "dyad"]
    page = look(conversations.page).open("#/conversations?task=T4-2")
    assert len(page.texts("tbody tr")) == 2
    page.go(f"#/dyad/{name}?task=T4-2")
    assert page.text("h1") == f"✓ passed {row['message']}"
    assert len(page.texts(".channel-0 .speech")) == len(row["speech"]["a"])
    assert _share(page, ".measured") == _percent(row["scores"]["a"]["leak_s"], _meta(conversations, name))
    page.click(".play")
    page.until(f"{AUDIO}.readyState >= 2 && {AUDIO}.currentTime > 0.2")
    assert len(page.texts(".prompt")) == 2
    facts = page.js(FACTS)
    assert len(facts) > 20
    from reports.html.shown import at, formatted

    for pointer, form, text in facts:
        assert text == formatted(at(row, pointer), form), pointer


def _meta(made: Made, name: str) -> dict[str, Any]:
    from reports.html.recorded import read_recorded

    return dict(read_recorded(made.folder.recordings, name).meta)


def _share(page: Page, selector: str) -> float:
    return round(float(page.js("return parseFloat(document.querySelector(arguments[0]).style.left)", selector)), 2)


def _percent(seconds: float, meta: dict[str, Any]) -> float:
    return round(100 * seconds / float(meta["duration_s"]), 2)


def _passed(made: Made, name: str) -> bool:
    return bool(made.rows[name, "floor"]["outcome"] == "passed")


def test_only_one_recording_plays_at_a_time(look: Look, turn_based: Made) -> None:
    page = look(turn_based.page).open(f"#/case/{FAILING}")
    page.click(".play")
    page.until(f"{AUDIO}.currentTime > 0.1")
    page.js(f"window.old = {AUDIO}")
    page.press("]")
    page.until(f"location.hash !== '#/case/{FAILING}' && document.querySelector('audio') !== window.old")
    time.sleep(0.05)
    assert page.js("return window.old.paused")
