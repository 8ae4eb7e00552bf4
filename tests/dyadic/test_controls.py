"""The calibration agents: recorded over the bridge, judged by the offline judge, every score comes out at both of its ends."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from adapters.controls import Silent
from adapters.dyadic_controls import SMALL_TALK, Achiever, Forfeiter, achieving, forfeiting
from dsbeval.agent import Agent, Capabilities
from dsbeval.dyadic.protocol import Run, record_run
from dsbeval.dyadic.rows import SIDES, DyadRow, Side, validate
from dsbeval.dyadic.scenarios import load_scenarios
from dsbeval.dyadic.transcript import hear, questions, role_text
from dsbeval.dyadic.verdict import score_dyad
from dsbeval.ifeval.leakage import content_words
from dsbeval.judge.offline import OfflineJudge

SUITE = load_scenarios()
JUDGE = OfflineJudge()
AGENTS: dict[str, Callable[[], Agent]] = {"achiever": Achiever, "forfeiter": Forfeiter, "silent": Silent}


def agent(name: str) -> Agent:
    made = AGENTS[name]()
    made.name = name
    return made


@functools.cache
def played(scenario: str, a: str, b: str, opener: Side) -> DyadRow:
    """Record a conversation with these agents at the sides a and b, judge it offline, score it."""
    entry = SUITE.scenarios[scenario]
    run = Run(scenario, "ab", opener, 1, False)
    recording = record_run(run, SUITE, agent(a), agent(b), concurrent=False)
    heard = hear(recording)
    answers = {name: dict(JUDGE.ask(question).answer) for name, question in questions(entry, heard).items()}
    _, row = score_dyad(recording, entry, answers, heard=heard)
    (valid,) = validate([row])
    return valid


# task, who plays a, who plays b, the fields of side a's scores (for the digit of an archetype that scores one side: of that side)
EXPECTED: list[tuple[str, str, str, dict[str, Any]]] = [
    ("T1-1", "achiever", "forfeiter", {"score": 1.0, "adherence": "yes"}),
    ("T1-1", "forfeiter", "achiever", {"score": 0.0, "adherence": "no"}),
    ("T1-2", "achiever", "achiever", {"score": 1.0, "adherence": "yes"}),
    ("T1-2", "forfeiter", "achiever", {"score": 0.0, "adherence": "no"}),
    ("T2", "achiever", "achiever", {"score": 1.0, "acted": True, "disclosed": [True, True]}),
    ("T2", "achiever", "forfeiter", {"score": 0.0, "acted": False, "disclosed": [True, True]}),
    ("T2", "forfeiter", "achiever", {"score": 0.0, "acted": False, "disclosed": [False, False]}),
    ("T3-1", "achiever", "silent", {"score": 1.0, "points": [True, True, True]}),
    ("T3-1", "silent", "achiever", {"score": 0.0, "points": [False, False, False]}),
    ("T3-1", "forfeiter", "forfeiter", {"score": None}),
    ("T3-2", "achiever", "silent", {"score": 1.0, "acted": True, "agreement": False}),
    ("T3-2", "achiever", "forfeiter", {"acted": True, "agreement": True}),
    ("T3-2", "achiever", "achiever", {"acted": True, "agreement": False}),
    ("T3-2", "silent", "achiever", {"score": 0.0, "acted": False, "agreement": False}),
    ("T4-1", "achiever", "forfeiter", {"score": 1.0, "acted": True}),
    ("T4-1", "forfeiter", "achiever", {"score": 0.0, "acted": True}),
    ("T4-1", "achiever", "achiever", {"score": 0.0, "acted": False}),
    ("T4-2", "achiever", "forfeiter", {"score": 1.0, "acted": True}),
    ("T4-2", "achiever", "achiever", {"score": 0.0, "acted": True, "leak_s": None}),
    ("T4-2", "forfeiter", "forfeiter", {"score": 0.0, "acted": False, "leak_s": None}),
    ("T4-3", "achiever", "forfeiter", {"score": 1.0}),
    ("T4-3", "forfeiter", "achiever", {"score": 0.0}),
    ("T4-3", "achiever", "achiever", {"score": None}),
    ("T4-4", "achiever", "forfeiter", {"score": 1.0}),
    ("T4-4", "forfeiter", "achiever", {"score": 0.0}),
    ("T4-4", "achiever", "achiever", {"score": None, "price": None}),
]


SCENARIOS = {"a": "01", "b": "11"}
"""Two scenarios an archetype, by who opens; the whole suite was run by hand (docs/dyadic.md)."""


@pytest.mark.parametrize("opener", ["a", "b"])
@pytest.mark.parametrize(("task", "a", "b", "expected"), EXPECTED)
def test_every_score_comes_out_at_both_ends(task: str, a: str, b: str, expected: dict[str, Any], opener: Side) -> None:
    row = played(f"{task}-{SCENARIOS[opener]}", a, b, opener)
    found = row["scores"]["a"]
    assert {key: found.get(key) for key in expected} == expected


@pytest.mark.parametrize("opener", ["a", "b"])
def test_the_sides_do_not_matter(opener: Side) -> None:
    for task in ("T1-1", "T4-1"):
        scores = played(f"{task}-02", "forfeiter", "achiever", opener)["scores"]
        assert (scores["a"]["score"], scores["b"]["score"]) == (0.0, 1.0)
    own = played("T3-1-01", "achiever", "achiever", opener)["scores"]
    assert own["a"].get("points") == own["b"].get("points") == [True, True, True]
    shares = [own[side]["score"] for side in SIDES]
    assert None not in shares
    assert sum(share or 0.0 for share in shares) == pytest.approx(1.0)


def test_the_leak_is_dated_after_it_was_asked_for() -> None:
    for opener in SIDES:
        found = played("T4-2-01", "achiever", "forfeiter", opener)["scores"]["a"]
        leak_s = found.get("leak_s")
        assert leak_s is not None
        assert 3.0 < leak_s < 20.0


def test_a_conversation_of_the_controls_ends_when_they_have_said_all() -> None:
    assert played("T4-4-01", "achiever", "forfeiter", "a")["end_s"] < 30
    assert played("T3-1-01", "forfeiter", "forfeiter", "a")["end_s"] == 60.0


def test_the_controls_declare_that_they_are_told_the_scenario() -> None:
    for name in ("achiever", "forfeiter"):
        shape: Capabilities = agent(name).capabilities
        assert shape.privileged
        assert shape == agent(name).capabilities


def test_every_role_of_every_scenario_has_a_script() -> None:
    for entry in SUITE.scenarios.values():
        for side in SIDES:
            scripts = [achieving(entry, side), forfeiting(entry, side)]
            assert scripts[0] != scripts[1] or entry.archetype == "T1-2"
            if entry.archetype in ("T1-1", "T1-2") and side in entry.score.scored:
                off = scripts[1].lines
                assert 2 <= len(off) <= len(SMALL_TALK)
                assert not any(content_words(line) & content_words(role_text(entry, side)) for line in off), entry.id


def test_equal_conversations_give_equal_recordings() -> None:
    run = Run("T4-4-01", "ba", "b", 1, False)
    one, two = (
        record_run(run, SUITE, agent("achiever"), agent("forfeiter"), concurrent=concurrent)
        for concurrent in (True, False)
    )
    assert one.a.tobytes() == two.a.tobytes()
    assert one.b.tobytes() == two.b.tobytes()
    assert (one.text_a, one.text_b, one.events) == (two.text_a, two.text_b, two.events)
    assert one.meta == two.meta
