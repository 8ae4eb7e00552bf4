"""What an agent declares about itself stands in rows, summary and terminal."""

from __future__ import annotations

from typing import Any

import pytest

from dsbeval.audio import RATE
from dsbeval.caveats import caveats, lines, tally
from dsbeval.dyadic.summary import summarise as summarise_dyads
from dsbeval.ifeval.metrics import summarise
from reports.tables import sections
from tests.dyadic.dyads import dyad

FLOOR = {
    "item": "floor", "outcome": "passed", "passed": True, "exercised": True, "borderline": False, "matched": False,
    "role": "R1", "probe": "C1", "level": "L1", "action": "LISTEN",
}  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "seconds", "expected"),
    [
        ({}, 500, []),
        ({"prompt_taken": None}, 500, []),
        ({"prompt_taken": True, "capabilities": {"context_s": None}}, 500, []),
        ({"prompt_taken": False, "capabilities": {"context_s": 240.0}}, 240, ["prompt_not_taken"]),
        ({"prompt_taken": True, "capabilities": {"context_s": 240.0}}, 240.1, ["past_context"]),
        ({"prompt_taken": False, "capabilities": {"context_s": 4.0}}, 5, ["prompt_not_taken", "past_context"]),
    ],
)
def test_a_session_is_marked_by_what_was_declared(facts: dict[str, Any], seconds: float, expected: list[str]) -> None:
    assert caveats(facts, round(seconds * RATE)) == expected


def test_a_run_says_that_the_agent_took_no_prompt() -> None:
    rows = [
        {**FLOOR, "id": "a", "caveats": ["prompt_not_taken"]},
        {**FLOOR, "id": "b", "caveats": ["prompt_not_taken", "past_context"]},
        {**FLOOR, "id": "c", "outcome": "error", "message": "broke"},
    ]
    summary = summarise(rows, ["a", "b", "c"], {"agent": "moshi"})
    assert summary["caveats"] == {"moshi": {"past_context": {"n": 1, "of": 2}, "prompt_not_taken": {"n": 2, "of": 2}}}
    printed = "\n".join(dict(sections(summary))["DSB-IFEval"])
    assert (
        "agent moshi takes no system prompt: a persona-blind control, whose levels differ by chance alone (2 of 2)"
        in printed
    )
    assert "agent moshi was played for longer than it can look back on (1 of 2)" in printed


def test_a_run_without_caveats_has_no_word_of_them() -> None:
    summary = summarise([{**FLOOR, "id": "a"}], ["a"], {"agent": "cascade"})
    assert "caveats" not in summary
    assert "control" not in "\n".join(dict(sections(summary))["DSB-IFEval"])


def test_of_a_dyad_each_agent_has_its_own() -> None:
    rows = [
        dyad("T4-2", ("moshi", "echo"), {"a": 1.0}, caveats={"a": ["prompt_not_taken"]}),
        dyad("T4-2", ("echo", "moshi"), {"a": 0.0}, caveats={"b": ["prompt_not_taken"]}),
        dyad("T4-2", ("moshi", "moshi"), {"a": 1.0}, caveats={"a": ["prompt_not_taken"], "b": ["prompt_not_taken"]}),
        dyad("T4-2", ("echo", "echo"), {"a": 1.0}),
    ]
    told = tally(rows, "")
    assert told == {"moshi": {"prompt_not_taken": {"n": 3, "of": 3}}}
    assert lines(told) == [
        "agent moshi takes no system prompt: a persona-blind control, whose levels differ by chance alone (3 of 3)"
    ]
    assert summarise_dyads(rows)["conversations"] == 4
