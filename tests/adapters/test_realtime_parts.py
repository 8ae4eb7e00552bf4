"""Parts of the realtime client that need no wire: where text is due, what was heard, what a session confirms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.gpt_realtime.address import asked_wait
from adapters.gpt_realtime.meter import tokens_of
from adapters.gpt_realtime.playback import Playhead, Utterance, spoken
from adapters.gpt_realtime.shape import check_session, session_of
from dsbeval.audio import RATE
from dsbeval.errors import AgentError
from dsbeval.recording import AgentSide

ASKED = session_of("alloy", 0.5, 800, 300)

bursts = st.lists(st.tuples(st.floats(0, 3), st.integers(1, 2 * RATE)), min_size=1, max_size=8)


def played(pieces: list[tuple[float, int]], words: list[str]) -> tuple[Utterance, Playhead]:
    utterance, head = Utterance("item"), Playhead()
    at = 0.0
    for wait, samples in pieces:
        at += wait
        utterance.samples += samples
        utterance.pieces.append((head.play(samples, at), samples))
    utterance.words = words
    utterance.complete = True
    return utterance, head


@given(bursts, st.lists(st.text("abc ", min_size=1, max_size=9), min_size=1, max_size=9))
@settings(deadline=None, max_examples=50)
def test_text_is_due_in_order_while_its_audio_plays_and_is_all_given_out(
    pieces: list[tuple[float, int]], words: list[str]
) -> None:
    utterance, head = played(pieces, words)
    due = [text for now in np.arange(0, head.ends + 1, 0.5) for text in utterance.due(float(now))]
    assert "".join(word for _, word in due) == "".join(words)
    assert all(len(word.split()) <= 1 for _, word in due)
    times = [at for at, _ in due]
    assert times == sorted(times)
    assert utterance.pieces[0][0] <= times[0]
    assert times[-1] <= head.ends
    assert utterance.due(math.inf) == []


@given(bursts, st.floats(0, 30))
@settings(deadline=None, max_examples=50)
def test_what_was_heard_grows_to_what_was_received_and_stops_at_a_cut(
    pieces: list[tuple[float, int]], cut: float
) -> None:
    utterance, head = played(pieces, ["word"] * 40)
    assert utterance.heard(head.ends + 1e-3) == utterance.samples
    before = utterance.heard(cut)
    utterance.cut = cut
    assert utterance.heard(math.inf) == before
    assert all(at < cut for at, _ in utterance.due(math.inf))


def test_text_lands_in_the_recording_where_it_was_heard() -> None:
    """Two seconds arrive at once at 1 s; the second of two words is heard a second later, whatever is queued behind it."""
    side = AgentSide(RATE)
    utterance, head = Utterance("item"), Playhead()
    for samples in (2 * RATE, RATE):
        start = head.play(samples, 1.0)
        side.channel.place(np.ones(samples, np.float32), RATE)
        if not utterance.pieces:
            utterance.samples = samples
            utterance.pieces.append((start, samples))
    utterance.words, utterance.complete = ["one ", "two."], True
    emission = spoken(utterance.due(10.0), head)
    assert emission.arrived is not None
    side.accept(emission, round(emission.arrived * RATE))
    assert [(token.sample / RATE, token.text) for token in side.text] == [(1.0, "one "), (2.0, "two.")]


def test_words_stay_in_order_when_the_estimate_of_their_times_changes() -> None:
    """Fast speech: while its text is unfinished the words are placed later than they turn out to be."""
    utterance = Utterance("item", samples=RATE, pieces=[(0.0, RATE)], words=["one two three four "])
    early = utterance.due(0.9)
    utterance.words.append("five six seven eight nine ten")
    utterance.complete = True
    late = utterance.due(10.0)
    assert "".join(word for _, word in early + late) == "".join(utterance.words)
    times = [at for at, _ in early + late]
    assert times == sorted(times)
    assert len(early) == 3


def test_a_word_that_may_still_grow_is_kept_back() -> None:
    utterance = Utterance("item", samples=RATE, pieces=[(0.0, RATE)], words=["Won", "der", "ful is", " it"])
    assert [word for _, word in utterance.due(10.0)] == ["Wonderful ", "is "]
    utterance.words.append("self.")
    utterance.complete = True
    assert [word for _, word in utterance.due(10.0)] == ["itself."]


def test_words_of_one_time_stay_in_their_order() -> None:
    emission = spoken([(1.0, "which "), (1.0, "goes "), (0.5, "on ")], Playhead())
    assert [token.text for token in emission.text] == ["on ", "which ", "goes "]
    assert emission.arrived == 0.5


def test_half_a_sample_is_kept_for_the_next_delta() -> None:
    utterance = Utterance("item_1")
    first, second = utterance.decode(b"\x00\x40\x00"), utterance.decode(b"\xc0")
    assert (first.tolist(), second.tolist()) == ([0.5], [-0.5])
    utterance.finish()
    utterance.decode(b"\x00")
    with pytest.raises(AgentError, match="audio of item_1 ends in the middle of a sample"):
        utterance.finish()


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "session.type was asked for as 'realtime', but the service has None"),
        ({"type": "realtime", "audio": None}, "session.output_modalities"),
        ({**ASKED, "audio": {**ASKED["audio"], "output": {}}}, "session.audio.output.format.type"),
        ({**ASKED, "output_modalities": ["audio", "text"]}, "session.output_modalities"),
    ],
)
def test_the_first_field_that_was_not_confirmed_is_named(given: dict[str, object], field: str) -> None:
    with pytest.raises(AgentError, match="unverified=") as caught:
        check_session(ASKED, given, (), "host/v1")
    assert field in str(caught.value)


def test_a_session_with_more_in_it_is_confirmed_and_groups_may_go_unverified() -> None:
    more = {**ASKED, "id": "sess_1", "tools": [], "instructions": None}
    check_session({**ASKED, "instructions": ""}, more, (), "host")
    check_session(ASKED, {"type": "realtime"}, ("audio", "output_modalities"), "host")


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (None, {}),
        ({"input_tokens": 3, "output_tokens": 4}, {"input_tokens": 3, "output_tokens": 4}),
        (
            {"input_token_details": {"text_tokens": 5, "audio_tokens": 7, "cached_tokens": 4}},
            {},  # which of them were cached is not said
        ),
        (
            {"input_token_details": {"text_tokens": 5, "audio_tokens": 7, "cached_tokens": 0}},
            {"text_in": 5, "text_cached": 0, "audio_in": 7, "audio_cached": 0},
        ),
    ],
)
def test_only_what_a_service_states_is_counted(usage: dict[str, object] | None, tokens: dict[str, int]) -> None:
    assert tokens_of(usage) == tokens


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Rate limit reached. Please try again in 1.5s. Visit us.", 1.5),
        ("Please try again in 6ms.", 0.006),
        ("try again in 1m2.5s", 62.5),
        ("Try again in 20 seconds", 20.0),
        ("try again in 2 minutes", 120.0),
        ("Try again later.", None),
        ("try again in a while", None),
    ],
)
def test_a_message_may_say_when_to_try_again(message: str, seconds: float | None) -> None:
    assert asked_wait(message) == seconds
