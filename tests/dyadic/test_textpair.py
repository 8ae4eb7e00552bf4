"""Two text models in the place of two voices: the budget, and what each is sent."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbeval.audio import RATE
from dsbeval.dyadic.leaks import find_leak
from dsbeval.dyadic.rows import SIDES
from dsbeval.dyadic.segments import transcript
from dsbeval.dyadic.textpair import MANNER, SILENCE, converse
from tests.dyadic.talks import OPENER, Scripted, talk


def test_the_sides_take_turns_and_each_sees_the_other_as_the_user() -> None:
    a, b = Scripted("Hello there.", "Good."), Scripted("Hi.", "Bye.")
    found = talk(a, b, turns=4)
    assert [(turn.side, turn.text) for turn in found.turns] == [
        ("a", "Hello there."),
        ("b", "Hi."),
        ("a", "Good."),
        ("b", "Bye."),
    ]
    assert found.ended == "turns"
    assert a.sent[1] == [
        {"role": "system", "content": f"You are Ada.\n\n{OPENER}\n\n{MANNER}"},
        {"role": "user", "content": OPENER},
        {"role": "assistant", "content": "Hello there."},
        {"role": "user", "content": "Hi."},
    ]
    assert b.sent[1] == [
        {"role": "system", "content": f"You are Bo.\n\n{MANNER}"},
        {"role": "user", "content": "Hello there."},
        {"role": "assistant", "content": "Hi."},
        {"role": "user", "content": "Good."},
    ]


def test_neither_side_is_sent_the_others_prompt() -> None:
    a, b = Scripted(), Scripted()
    talk(a, b)
    assert "Bo" not in str(a.sent)
    assert "Ada" not in str(b.sent)
    assert OPENER not in str(b.sent)


def test_the_opener_moves_with_its_instruction() -> None:
    a, b = Scripted(), Scripted("First.")
    assert talk(a, b, opener="b", turns=2).turns[0].side == "b"
    assert b.sent[0][1] == {"role": "user", "content": OPENER}
    with pytest.raises(ValueError, match=r"the opener \(b\) does not end with"):
        converse({"a": a, "b": b}, {"a": f"You are Ada. {OPENER}", "b": "You are Bo."}, "b", OPENER)


def test_there_are_at_most_twenty_turns() -> None:
    found = talk(Scripted(), Scripted())
    assert (len(found.turns), found.ended, found.words) == (20, "turns", 60)


def test_the_budget_ends_the_conversation_in_the_middle_of_a_turn() -> None:
    found = talk(Scripted("one " * 100), Scripted("two " * 150))
    assert found.ended == "words"
    assert [(len(turn.text.split()), turn.cut) for turn in found.turns] == [(100, False), (140, True)]
    exact = talk(Scripted("one " * 100), Scripted("two " * 140))
    assert [turn.cut for turn in exact.turns] == [False, False]
    assert (exact.ended, exact.length) == ("words", 60 * RATE)


def test_a_silent_answer_is_a_turn_and_two_end_the_conversation() -> None:
    a, b = Scripted("Hello?", "", "never said"), Scripted("  \n", "never said")
    found = talk(a, b)
    assert [turn.text for turn in found.turns] == ["Hello?", "", ""]
    assert found.ended == "silence"
    assert a.sent[1][-1] == {"role": "user", "content": SILENCE}


def test_two_mutes_end_at_once() -> None:
    found = talk(Scripted("", ""), Scripted(""))
    assert (found.ended, found.words, len(found.turns)) == ("silence", 0, 2)
    assert found.segments("a") == ()


@pytest.mark.parametrize(("words", "turns"), [(0, 20), (240, 0)])
def test_a_conversation_needs_a_budget(words: int, turns: int) -> None:
    with pytest.raises(ValueError, match="needs a word and a turn"):
        talk(Scripted(), Scripted(), words=words, turns=turns)


def test_it_has_the_shape_of_a_dyad() -> None:
    found = talk(Scripted("What is the name?", "Thanks."), Scripted("It is velvet otter."), turns=3)
    text, speakers = transcript(found.segments("a"), found.segments("b"))
    assert text == "[0.0] Speaker A: What is the name?\n[1.0] Speaker B: It is velvet otter.\n[2.0] Speaker A: Thanks."
    assert speakers == {"a": "Speaker A", "b": "Speaker B"}
    leak = find_leak(found.text("b"), ["velvet otter"])
    assert leak is not None
    assert leak.sample == 7 * RATE // 4  # the eighth word
    assert find_leak(found.text("a"), ["velvet otter"]) is None


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 40), max_size=20), st.integers(1, 120), st.integers(1, 12))
def test_the_budget_is_never_passed_and_time_goes_on(lengths: list[int], words: int, turns: int) -> None:
    lines = ["word " * length for length in lengths]
    found = talk(Scripted(*lines[::2]), Scripted(*lines[1::2]), words=words, turns=turns)
    assert found.words <= words
    assert 1 <= len(found.turns) <= turns
    assert (found.ended == "words") == (found.words == words)
    spans = sorted(segment.span for side in SIDES for segment in found.segments(side))
    assert all(one.end == other.start for one, other in pairwise(spans))
    assert sum(span.duration for span in spans) == found.length
    assert sum(len(found.text(side)) for side in SIDES) == found.words
