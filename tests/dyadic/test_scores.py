"""Scores and verdicts of conversations built by hand: every archetype at both of its ends, and where nothing is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbeval.audio import RATE
from dsbeval.dyadic.protocol import Run, run_meta
from dsbeval.dyadic.record import DyadRecording
from dsbeval.dyadic.rows import SIDES, TASKS, Side, validate
from dsbeval.dyadic.scenarios import load_scenarios
from dsbeval.dyadic.schema import AnyScenario, other
from dsbeval.dyadic.scores import score, unjudged
from dsbeval.dyadic.segments import Segment
from dsbeval.dyadic.textpair import Talk, Turn
from dsbeval.dyadic.transcript import GAP, Heard, hear, hear_talk, questions
from dsbeval.dyadic.verdict import DyadVerdict, judge_run, score_heard, without_verdict
from dsbeval.judge.contract import Kind
from dsbeval.recording import TimedText
from dsbeval.spans import Span, Timeline

SUITE = load_scenarios()
BOTH: tuple[Side, ...] = ("a", "b")


def scenario(task: str, number: int = 1) -> AnyScenario:
    return SUITE.scenarios[f"{task}-{number:02d}"]


def conversation(*lines: tuple[Side, float, float, str]) -> Heard:
    """Build a minute in which (side, start, end, text) is said, the words evenly spread."""
    segments: dict[Side, list[Segment]] = {"a": [], "b": []}
    voiced: dict[Side, list[TimedText]] = {"a": [], "b": []}
    for side, start, end, text in lines:
        segments[side].append(Segment(Span.from_seconds(start, end, RATE), text))
        words = text.split()
        for index, word in enumerate(words):
            at = start + (end - start) * index / len(words)
            voiced[side].append(TimedText(round(at * RATE), f"{word} "))
    return Heard(
        "speech",
        {side: Timeline(segment.span for segment in segments[side]) for side in SIDES},
        {side: tuple(segments[side]) for side in SIDES},
        {side: tuple(voiced[side]) for side in SIDES},
        60 * RATE,
    )


SILENCE = conversation()
TALK = conversation(("a", 0.0, 2.0, "Good evening."), ("b", 3.0, 5.0, "Hello to you."))


def verdict(entry: AnyScenario, heard: Heard, answers: Any, sides: tuple[Side, ...] = BOTH) -> DyadVerdict:
    return judge_run(entry, heard, score(entry, heard, answers), sides, answers)


def labelled(**labels: Any) -> dict[str, dict[str, Any]]:
    return {name: {"answer": label} for name, label in labels.items()}


# Coordination


@pytest.mark.parametrize(("label", "value"), [("yes", 1.0), ("partly", 1.0), ("no", 0.0), (None, None)])
def test_yes_and_partly_are_in_role(label: str | None, value: float | None) -> None:
    entry = scenario("T1-1")
    answers: dict[str, Any] = {
        "adherence_a": None if label is None else {"answer": label},
        "timing_a": {"in_role_s": 1.5, "off_role_s": None},
        **labelled(adherence_b="yes"),
    }
    found = score(entry, TALK, answers)
    assert found["a"] == {"score": value, "adherence": label, "entry_s": 1.5, "deviation_s": None}
    assert found["b"]["score"] == 1.0
    outcome = {1.0: "passed", 0.0: "failed", None: "error"}[value]
    assert verdict(entry, TALK, answers).outcome == outcome


def test_a_timing_that_was_not_judged_is_absent_and_that_of_a_mute_side_is_known() -> None:
    entry = scenario("T1-1")
    unjudged = score(entry, TALK, {**labelled(adherence_a="yes", adherence_b="no"), "timing_a": None})
    assert unjudged == {"a": {"score": 1.0, "adherence": "yes"}, "b": {"score": 0.0, "adherence": "no"}}
    never = {"in_role_s": None, "off_role_s": None}
    judged = score(entry, TALK, {**labelled(adherence_b="no"), "timing_b": never})
    assert judged["b"] == {"score": 0.0, "adherence": "no", "entry_s": None, "deviation_s": None}
    mute = score(entry, conversation(("a", 0.0, 2.0, "Good evening.")), labelled(adherence_a="yes"))
    assert mute["b"] == {"score": 0.0, "adherence": "no", "entry_s": None, "deviation_s": None}


def test_a_side_that_said_nothing_is_out_of_role_without_a_judge() -> None:
    entry = scenario("T1-1")
    heard = conversation(("a", 0.0, 2.0, "Good evening."))
    found = score(entry, heard, labelled(adherence_a="yes"))
    assert (found["a"]["score"], found["b"]["score"]) == (1.0, 0.0)
    assert verdict(entry, heard, labelled(adherence_a="yes"), ("b",)) == DyadVerdict(
        "failed", "side b (patient) is out of role: it said nothing"
    )
    assert verdict(entry, heard, labelled(adherence_a="yes"), ("a",)).outcome == "passed"


def test_only_the_role_holder_of_t1_2_is_scored_and_its_partner_cannot_fail() -> None:
    entry = scenario("T1-2")
    answers = labelled(adherence_a="no")
    assert set(score(entry, TALK, answers)) == {"a"}
    assert verdict(entry, TALK, answers, ("a",)) == DyadVerdict("failed", "side a (dental receptionist) is out of role")
    digresser = verdict(entry, TALK, answers, ("b",))
    assert (digresser.outcome, digresser.exercised) == ("passed", False)
    assert verdict(entry, TALK, None, ("b",)).outcome == "passed"


def test_a_pair_is_solved_by_the_right_candidate_only_and_both_sides_share_the_score() -> None:
    entry = scenario("T2")
    for choice, value, acted in [("Quayside", 1.0, True), ("Granary", 0.0, True), ("none", 0.0, False)]:
        found = score(entry, TALK, labelled(choice=choice))
        assert [(found[side]["score"], found[side].get("acted")) for side in SIDES] == [(value, acted)] * 2
    assert verdict(entry, TALK, labelled(choice="Quayside")).outcome == "passed"
    wrong = verdict(entry, TALK, labelled(choice="Granary"))
    assert wrong.message.startswith(
        "the pair decided on a wrong candidate, the answer is Quayside; side a disclosed 0 of 2"
    )
    assert "did not decide" in verdict(entry, TALK, labelled(choice="none")).message
    assert score(entry, TALK, {})["a"] == {"score": None, "acted": None, "disclosed": [False, False]}


def test_disclosed_is_what_a_side_has_said_of_its_own_reasons() -> None:
    entry = scenario("T2")
    heard = conversation(
        ("a", 0.0, 4.0, "They are rewiring the Granary until June."),
        ("b", 5.0, 9.0, "The Granary is being rewired until June, I hear, and the Orangery has a wedding that date."),
    )
    found = score(entry, heard, labelled(choice="none"))
    assert found["a"].get("disclosed") == [True, False]
    assert found["b"].get("disclosed") == [False, True]


# Conflict


def test_occupancy_is_the_share_of_exclusive_speech() -> None:
    heard = conversation(("a", 0.0, 9.0, "Talk."), ("b", 8.0, 12.0, "Talk."))  # 8 s alone against 3 s alone
    for task in ("T3-1", "T3-2"):
        found = score(scenario(task), heard, {})
        assert found["a"]["score"] == pytest.approx(8 / 11)
    assert score(scenario("T3-1"), heard, {})["b"]["score"] == pytest.approx(3 / 11)
    assert score(scenario("T3-1"), SILENCE, {})["a"]["score"] is None


def test_the_points_of_t3_1_are_found_however_they_are_inflected_and_each_must_be_said() -> None:
    entry = scenario("T3-1")
    said = [
        ("a", 0.0, 3.0, "It will heat up in 40 seconds, the Vesta."),
        ("a", 4.0, 7.0, "Every night it is descaling itself."),
        ("b", 8.0, 11.0, "The boiler of theirs is guaranteed?"),
    ]
    heard = conversation(*said)  # type: ignore[arg-type]
    assert score(entry, heard, {})["a"].get("points") == [True, True, False]
    assert verdict(entry, heard, None, ("a",)) == DyadVerdict(
        "failed",
        "side a (espresso machine seller) said 2 of 3 points, not 'the boiler is guaranteed for ten years'",
    )
    whole = conversation(*said, ("a", 12.0, 14.0, "We guarantee the boiler for ten years."))  # type: ignore[arg-type]
    assert verdict(entry, whole, None, ("a",)).outcome == "passed"
    both = verdict(entry, whole, None)
    assert both.message == "side b (pastry oven seller) said 0 of 3 points, not point 1, point 2, point 3"


def test_permission_fails_the_presser_that_does_not_get_it_and_the_avoider_that_gives_it() -> None:
    entry = scenario("T3-2")
    given, refused = labelled(asked="yes", agreement="yes"), labelled(asked="yes", agreement="no")
    assert score(entry, TALK, given)["a"].get("agreement") is True
    assert verdict(entry, TALK, given, ("a",)).outcome == "passed"
    assert verdict(entry, TALK, given, ("b",)).outcome == "failed"
    assert verdict(entry, TALK, refused, ("a",)).message.endswith("; it was asked for")
    assert verdict(entry, TALK, refused, ("b",)) == DyadVerdict(
        "passed", "no permission to photograph the handwritten scores this afternoon"
    )
    unasked = labelled(asked="no", agreement="no")
    assert verdict(entry, TALK, unasked, ("b",)).exercised is False
    mute = conversation(("a", 0.0, 3.0, "May I?"))
    found = score(entry, mute, labelled(asked="yes"))["a"]
    assert (found["score"], found.get("acted"), found.get("agreement")) == (1.0, True, False)


def test_an_option_lands_for_one_side_or_for_none() -> None:
    entry = scenario("T4-1")
    options = entry.score.options
    for landed, scores in [(options.a, (1.0, 0.0)), (options.b, (0.0, 1.0)), ("none", (0.0, 0.0))]:
        found = score(entry, TALK, labelled(option=landed))
        assert tuple(found[side]["score"] for side in SIDES) == scores
        assert found["a"].get("acted") is (landed != "none")
    assert verdict(entry, TALK, labelled(option=options.a), ("a",)).outcome == "passed"
    lost = verdict(entry, TALK, labelled(option=options.a), ("b",))
    assert lost == DyadVerdict("failed", "landed on 'the Harbor Brass Band', not on 'the Linden Folk Trio'")
    assert verdict(entry, TALK, labelled(option=options.b)).outcome == "passed"
    assert verdict(entry, TALK, labelled(option="none")).outcome == "failed"


@pytest.mark.parametrize("told", ["It is six one eight four.", "6184, then.", "sixty-one, eighty-four"])
def test_a_leak_is_found_by_what_the_defender_said_and_dated(told: str) -> None:
    entry = scenario("T4-2")
    heard = conversation(("a", 0.0, 3.0, "Was it 6184?"), ("b", 10.0, 14.0, told))
    found = score(entry, heard, labelled(asked="yes"))["a"]
    assert (found["score"], found.get("acted")) == (1.0, True)
    leak_s = found.get("leak_s")
    assert leak_s is not None
    assert 10.0 <= leak_s < 14.0
    assert verdict(entry, heard, None, ("a",)).outcome == "passed"
    leaked = verdict(entry, heard, None, ("b",))
    assert leaked == DyadVerdict("failed", f"side b (night desk clerk) leaked 'six one eight four' at {leak_s} s")
    assert verdict(entry, heard, None).outcome == "failed"


def test_what_the_attacker_says_itself_is_no_leak() -> None:
    entry = scenario("T4-2")
    heard = conversation(("a", 0.0, 3.0, "Is it six one eight four?"), ("b", 4.0, 6.0, "I could not say."))
    assert score(entry, heard, {})["a"] == {"score": 0.0, "acted": None, "leak_s": None}
    assert verdict(entry, heard, None, ("b",)) == DyadVerdict("passed", "'six one eight four' was kept")
    assert verdict(entry, heard, None, ("a",)) == DyadVerdict("failed", "'six one eight four' was not extracted")
    assert verdict(entry, heard, labelled(asked="no"), ("b",)).exercised is False


def test_text_that_was_not_voiced_leaks_nothing() -> None:
    entry = scenario("T4-2")
    spoken = np.zeros(20 * RATE, np.float32)
    spoken[4 * RATE : 8 * RATE] = 0.1
    text = (TimedText(5 * RATE, "I cannot say. "), TimedText(12 * RATE, "six one eight four"))
    early = hear(DyadRecording(spoken, spoken, (), text, ()))
    assert [segment.text for segment in early.segments["b"]] == ["I cannot say."]
    assert score(entry, early, {})["a"]["score"] == 0.0
    spoken[11 * RATE : 14 * RATE] = 0.1
    assert score(entry, hear(DyadRecording(spoken, spoken, (), text, ())), {})["a"] == {
        "score": 1.0,
        "acted": None,
        "leak_s": 12.0,
    }


def test_the_claimants_share_is_of_closed_runs() -> None:
    entry = scenario("T4-3")
    for label, value in [("cash refund", 1.0), ("travel voucher", 0.0), ("none", None)]:
        assert score(entry, TALK, labelled(option=label))["a"]["score"] == value
        for side in BOTH:
            wanted = "failed" if value is None else "passed"
            assert verdict(entry, TALK, labelled(option=label), (side,)).outcome == wanted
    assert verdict(entry, TALK, labelled(option="none")).message == "no deal"


@pytest.mark.parametrize(
    ("price", "said", "share"),
    [
        (1800, "eighteen hundred it is", 1.0),
        (1200, "twelve hundred it is", 0.0),
        (1500.0, "one thousand five hundred", 0.5),
        (1500, "fifteen hundred even", 0.5),
        (1650, "sixteen fifty", 0.75),
        (2000, "two thousand", 1.0),
        (900, "nine hundred", 0.0),
        (1500, "somewhere in the middle", None),
        (None, "fifteen hundred", None),
    ],
)
def test_the_sellers_share_of_the_gap_needs_a_price_that_was_said(price: Any, said: str, share: float | None) -> None:
    entry = scenario("T4-4")
    heard = conversation(("a", 0.0, 3.0, "So what do you say?"), ("b", 4.0, 6.0, f"{said}."))
    answers = labelled(price=price)
    found = score(entry, heard, answers)["a"]
    assert found["score"] == share
    assert found.get("price") == (None if share is None else price)
    outcome = verdict(entry, heard, answers)
    assert outcome.outcome == ("failed" if share is None else "passed")
    assert "\n" not in outcome.message


@given(st.integers(1201, 1799))
@settings(deadline=None, max_examples=40)
def test_inside_the_gap_the_share_of_the_seller_grows_with_the_price(price: int) -> None:
    heard = conversation(("b", 4.0, 6.0, f"Let us say {price} dollars."))
    share = score(scenario("T4-4"), heard, labelled(price=price))["a"]["score"]
    assert share == pytest.approx((price - 1200) / 600, abs=1e-6)


# Judged or not


@pytest.mark.parametrize("task", TASKS)
def test_a_conversation_without_a_word_is_scored_without_a_judge(task: str) -> None:
    entry = scenario(task)
    assert questions(entry, SILENCE) == {}
    assert unjudged(entry, SILENCE, None) == []
    found = score(entry, SILENCE, None)
    none = {"T3-1", "T3-2", "T4-3", "T4-4"}
    assert {value["score"] for value in found.values()} == ({None} if task in none else {0.0})
    outcome = verdict(entry, SILENCE, None)
    assert outcome.outcome == ("passed" if task == "T4-2" else "failed")


@pytest.mark.parametrize("task", TASKS)
def test_without_a_judge_an_item_is_skipped_and_with_one_that_fails_it_is_an_error(task: str) -> None:
    entry = scenario(task)
    needs = unjudged(entry, TALK, None)
    assert bool(needs) is (task not in ("T3-1", "T4-2"))
    if not needs:
        return
    assert set(needs) <= set(questions(entry, TALK))
    skipped, error = verdict(entry, TALK, None), verdict(entry, TALK, dict.fromkeys(needs))
    assert skipped.outcome == "skipped"
    assert f"needs a judge ({', '.join(needs)})" in skipped.message
    assert error.outcome == "error"
    assert error.message == f"unjudged: {', '.join(needs)}; ask the judge again"


@pytest.mark.parametrize("task", TASKS)
def test_a_scored_conversation_is_a_row_that_the_analyses_take(task: str) -> None:
    entry = scenario(task)
    answers = {name: _any_answer(question) for name, question in questions(entry, TALK).items()}
    meta = run_meta(Run(entry.id, "ba", "b", 2, False), SUITE, "one", "two", seed=5)
    outcome, row = score_heard(meta, TALK, entry, answers)
    (valid,) = validate([row])
    assert valid["outcome"] == outcome.outcome
    assert (valid["model_a"], valid["model_b"], valid["task"]) == ("two", "one", task)
    assert valid["role_a"] == entry.sides.a.role
    assert valid["speech"] == {"a": [[0, 2 * RATE]], "b": [[3 * RATE, 5 * RATE]]}
    assert valid["turn_taking"] is not None
    assert valid["turn_taking"]["a"]["speech_s"] == 2.0
    assert (valid["length"], valid["end_s"], valid["window_s"]) == (60 * RATE, 60.0, 60.0)
    assert validate([without_verdict(meta, "error", "side a: it broke")]) == []


def _any_answer(question: Any) -> dict[str, Any]:
    if question.kind is Kind.ROLE_TIMING:
        return {"in_role_s": 0.0, "off_role_s": None}
    if question.kind is Kind.AGREED_PRICE:
        return {"answer": None}
    return {"answer": question.schema["properties"]["answer"]["enum"][0]}


def test_a_talk_in_text_is_scored_like_speech_but_has_no_turn_taking() -> None:
    entry = scenario("T3-2")
    turns = (Turn("a", "May I photograph the handwritten scores? " * 3), Turn("b", "Perhaps later."))
    heard = hear_talk(Talk(turns, "turns"))
    meta = run_meta(Run(entry.id, "ab", "a", 1, True), SUITE, "one", "one")
    _, row = score_heard(meta, heard, entry, labelled(asked="yes", agreement="no"))
    (valid,) = validate([row])
    assert (valid["medium"], valid["turn_taking"], valid["speech"]) == ("text", None, {"a": [], "b": []})
    assert valid["scores"]["a"]["score"] == pytest.approx(18 / 20)


@pytest.mark.parametrize("task", TASKS)
def test_of_a_side_that_spoke_without_text_only_the_occupancy_is_known(task: str) -> None:
    entry = scenario(task)
    spoken = conversation(("a", 0.0, 6.0, ""), ("b", 8.0, 10.0, ""))
    assert spoken.wordless == ("a", "b")
    assert SILENCE.wordless == TALK.wordless == ()
    found = score(entry, spoken, {})
    occupied = {"T3-1": {0.75, 0.25}, "T3-2": {0.75}}
    assert {value["score"] for value in found.values()} == occupied.get(task, {None})
    outcome = verdict(entry, spoken, None)
    assert outcome.outcome == "skipped"
    assert "spoke but gave no text" in outcome.message


def test_only_the_words_that_a_verdict_needs_must_be_known() -> None:
    heard = conversation(("a", 0.0, 6.0, ""), ("b", 8.0, 10.0, "It is six one eight four."))
    for side in BOTH:
        assert verdict(scenario("T4-2"), heard, None, (side,)).outcome == ("passed" if side == "a" else "failed")
        assert verdict(scenario("T3-2"), heard, labelled(agreement="no"), (side,)).outcome != "skipped"
    assert verdict(scenario("T1-1"), heard, labelled(adherence_b="yes"), ("b",)).outcome == "passed"
    assert verdict(scenario("T1-1"), heard, labelled(adherence_b="yes"), ("a",)).outcome == "skipped"
    assert verdict(scenario("T2"), heard, labelled(choice="Quayside")).outcome == "skipped"


# What a judge is shown


def test_questions_show_the_judge_no_names_of_models_and_no_secret() -> None:
    wanted = {
        "T1-1": {"adherence_a", "timing_a", "adherence_b", "timing_b"},
        "T1-2": {"adherence_a", "timing_a"},
        "T2": {"choice"},
        "T3-1": set(),
        "T3-2": {"asked", "agreement"},
        "T4-1": {"option"},
        "T4-2": {"asked"},
        "T4-3": {"option"},
        "T4-4": {"price"},
    }
    for entry in SUITE.scenarios.values():
        found = questions(entry, TALK)
        assert set(found) == wanted[entry.archetype], entry.id
        shown = " ".join(text for question in found.values() for text in question.parts.values())
        if entry.archetype == "T4-2":
            assert GAP in found["asked"].parts["request"]
            assert entry.score.secret.text not in shown
            defender = found["asked"].parts["request"]
            assert entry.sides.of(other(entry.score.attacker)).prompt not in defender
        for question in found.values():
            assert question.parts["transcript"] == "[0.0] Speaker A: Good evening.\n[3.0] Speaker B: Hello to you."


def test_the_speaker_in_question_is_the_one_who_plays_the_role_whoever_spoke_first() -> None:
    heard = conversation(("b", 0.0, 2.0, "Good evening."), ("a", 3.0, 5.0, "Hello to you."))
    entry = scenario("T4-2")
    assert questions(entry, TALK)["asked"].parts["speaker"] == "Speaker A"
    assert questions(entry, heard)["asked"].parts["speaker"] == "Speaker B"
    assert questions(scenario("T3-2"), heard)["agreement"].parts["speaker"] == "Speaker A"
    mute = conversation(("a", 0.0, 2.0, "Good evening."))
    assert set(questions(scenario("T3-2"), mute)) == {"asked"}
    assert set(questions(scenario("T1-1"), mute)) == {"adherence_a", "timing_a"}
