"""The parts of the agent: endpointing, recognised words, triggers and cues, the voice, the policy's corners."""

from __future__ import annotations

import random

import numpy as np
import pytest

from adapters.cascade.cues import asks_presence, is_check, is_dictation, is_hanging, is_question
from adapters.cascade.floor import Floor, Tone, Trigger
from adapters.cascade.hearing import KEPT_WORDS, Heard, Hearing
from adapters.cascade.recognise import Recogniser, Sphinx, plain_words
from adapters.cascade.triggers import find_triggers
from adapters.cascade.voice import LONGEST_SENTENCE, Mouth, Speech, Voice, split_sentences
from adapters.cascade.words import Kind, Moment, RuleWriter
from dsbeval.audio import RATE, Signal
from dsbeval.errors import AgentError
from dsbeval.speech.engine import WordTime
from tests.adapters.cascade_talk import engine, user

FRAME = 1920
SMOOTH = "We planted all of the trees along the garden wall."


class Deaf:
    """A recogniser that counts what it is given: the tests of endpointing need no words."""

    def __init__(self, words: str = "word") -> None:
        self.words = words
        self.heard: list[int] = []

    def begin(self) -> None:
        self.heard.append(0)

    def push(self, audio: Signal) -> None:
        self.heard[-1] += audio.size

    def partial(self) -> str:
        return ""

    def end(self) -> str:
        return self.words


def hear(audio: Signal, recogniser: Recogniser) -> tuple[Hearing, list[Heard]]:
    hearing = Hearing(recogniser)
    audio = np.pad(audio, (0, -audio.size % FRAME))
    return hearing, [hearing.push(frame) for frame in audio.reshape(-1, FRAME)]


# Hearing ------------------------------------------------------------------------------------------------------------


def test_a_stretch_of_speech_is_where_it_was_put() -> None:
    person = user(1.0, SMOOTH, 1.5, "That is all.", 1.0)
    _, found = hear(person.audio, Deaf())
    for start, end in person.said:
        while_said = [heard for heard in found if start + 0.3 < heard.now < end - 0.1]
        after = [heard for heard in found if end + 0.4 < heard.now < end + 0.9]
        assert all(heard.talking for heard in while_said)
        assert all(heard.onset_s == pytest.approx(start, abs=0.1) for heard in while_said)
        assert all(not heard.talking and heard.settled for heard in after)
        assert all(heard.end_s == pytest.approx(end, abs=0.12) for heard in after)
        known = next(heard.now for heard in found if heard.talking and heard.onset_s > start - 0.2)
        assert known - start < 0.3


def test_nothing_is_heard_in_silence_and_faint_noise() -> None:
    noise = (np.random.default_rng(1).standard_normal(5 * RATE) * 0.001).astype(np.float32)
    for audio in (np.zeros(5 * RATE, np.float32), noise):
        recogniser = Deaf()
        _, found = hear(audio, recogniser)
        assert not any(heard.talking for heard in found)
        assert recogniser.heard == []


def test_an_utterance_holds_its_short_pauses_and_all_of_its_sound() -> None:
    recogniser = Deaf()
    person = user(1.0, SMOOTH, 0.15, SMOOTH, 1.0, SMOOTH, 1.0)
    hear(person.audio, recogniser)
    assert len(recogniser.heard) == 2
    first = person.said[1][1] - person.said[0][0]
    assert first < recogniser.heard[0] / 16_000 < first + 1.0


def test_words_are_numbered_and_old_ones_dropped() -> None:
    recogniser = Deaf(" ".join(["so"] * 30))
    hearing, found = hear(np.tile(user(0.3, "That is all.", 0.6).audio, 8), recogniser)
    assert found[-1].words == 240
    assert len(hearing.text(0).split()) == KEPT_WORDS
    assert len(hearing.text(230).split()) == 10


@pytest.mark.parametrize("level", [0.03, 1.0, 2.0])
def test_the_level_of_the_talker_matters_little(level: float) -> None:
    audio = user(0.5, "I left the house at nine and then the rain began.", 1.0).audio * np.float32(level)
    hearing, _ = hear(audio, Sphinx().lend())
    assert len(set("i left the house at nine and then the rain began".split()) & set(hearing.text(0).split())) >= 8  # noqa: SIM905


def test_a_lent_recogniser_comes_back_as_new() -> None:
    recognition = Sphinx()
    audio = user(0.5, "The number is two zero four seven.", 1.0).audio
    first = recognition.lend()
    words = hear(audio, first)[0].text(0)
    first.begin()
    first.push(np.ones(1600, np.float32))  # left open in the middle of an utterance
    recognition.give_back(first)
    again = recognition.lend()
    assert again is first
    assert hear(audio, again)[0].text(0) == words
    assert recognition.lend() is not again


@pytest.mark.parametrize(
    ("heard", "words"),
    [
        ("Two, O; four!", "two oh four"),
        ("nine one for seven", "nine one four seven"),
        ("to oh three", "two oh three"),
        ("the number is for one seven", "the number is four one seven"),
        ("I waited for one day", "i waited for one day"),
        ("he went to two schools", "he went to two schools"),
        ("It’s  mine", "it's mine"),
        ("", ""),
    ],
)
def test_recognised_words_are_plain_and_digits_put_right(heard: str, words: str) -> None:
    assert plain_words(heard) == words


# Triggers and cues -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "trigger"),
    [
        ("and then my chest felt tight on the stairs", Trigger.RED_FLAG),
        ("her whole left side went numb", Trigger.RED_FLAG),
        ("he could not breathe", Trigger.RED_FLAG),
        ("i took another one an hour later", Trigger.DOSE),
        ("so i doubled the dose", Trigger.DOSE),
        ("number forty no wait forty two", Trigger.CORRECTION),
        ("on monday i mean tuesday", Trigger.CORRECTION),
        ("the blue one or maybe the green one", Trigger.AMBIGUITY),
        ("seven times eight is fifty four", Trigger.REASONING),
        ("twenty minus five equals twenty five", Trigger.REASONING),
    ],
)
def test_a_trigger_is_found_and_no_other(text: str, trigger: Trigger) -> None:
    assert {found.trigger for found in find_triggers(text, frozenset(Trigger))} == {trigger}
    assert not list(find_triggers(text, frozenset(Trigger) - {trigger}))


@pytest.mark.parametrize(
    "text",
    [
        "we went to the garden and looked at the roses",
        "i take one tablet every morning with water",
        "seven times eight is fifty six and we go on",
        "he is sorry about the weather",
        "twenty divided by zero is five",
        "",
    ],
)
def test_ordinary_words_are_no_trigger(text: str) -> None:
    assert not list(find_triggers(text, frozenset(Trigger)))


def test_a_trigger_ends_at_its_last_word() -> None:
    (found,) = find_triggers("well my chest feels tight and so on", frozenset({Trigger.RED_FLAG}))
    assert found.words == 5


@pytest.mark.parametrize(
    ("text", "check", "presence"),
    [
        ("we lost the whole crop you know", True, False),
        ("does that make sense", True, False),
        ("are you still there", True, True),
        ("can you hear me", True, True),
        ("so we turned left at the corner okay", True, False),
        ("okay", False, False),
        ("i know", False, False),
        ("are you coming tomorrow", False, False),
    ],
)
def test_checks_of_attention(text: str, check: bool, presence: bool) -> None:
    assert is_check(text) is check
    assert asks_presence(text) is presence


def test_questions_open_ends_and_dictation() -> None:
    assert is_question("how long does it take")
    assert is_question("well can we stop for a minute")
    assert not is_question("it took a long time")
    assert not is_question("are you still there")
    assert is_hanging("and then he went to the")
    assert not is_hanging("and then he went home")
    assert is_dictation("five five five two zero")
    assert is_dictation("two large coffees and a small tea")
    assert not is_dictation("we had two dogs")


# Voice -------------------------------------------------------------------------------------------------------------------


def test_long_texts_are_cut_into_sentences_that_can_be_spoken() -> None:
    pieces = split_sentences("One [two](/x/) three. *** " + "word " * 40 + "... Really?")
    assert pieces[0] == "One two /x/ three."
    assert all(0 < len(piece.split()) <= LONGEST_SENTENCE for piece in pieces)
    assert split_sentences(" ... !? ") == ()


@pytest.fixture(scope="module")
def voice() -> Voice:
    return Voice(engine(), "heart")


def test_a_turn_is_one_stretch_and_not_longer_than_asked(voice: Voice) -> None:
    whole = voice.speak("This is one. And this is another one. Here is the last of them.", 0)
    short = voice.speak("This is one. And this is another one. Here is the last of them.", 0, 3.0)
    assert short.seconds <= 3.0 < whole.seconds
    assert len(whole.ends) == 3
    np.testing.assert_array_equal(short.audio, whole.audio[: short.audio.size])
    assert voice.speak("This is one.", 0, 0.1).seconds > 0.1  # one sentence is always said
    with pytest.raises(AgentError, match="nothing to say"):
        voice.speak("...", 0)
    with pytest.raises(AgentError, match="it is one of heart"):
        Voice(engine(), "nobody")


def ramp() -> Speech:
    audio = np.full(10_000, 0.5, np.float32)
    return Speech(
        audio, (WordTime("one", 0, 4000), WordTime("two.", 4500, 6000), WordTime("three", 6500, 9000)), (6000, 10_000)
    )


def test_a_mouth_says_all_and_then_nothing() -> None:
    mouth = Mouth()
    mouth.start(ramp())
    frames = [mouth.frame(4000) for _ in range(4)]
    assert [frame.size for frame, _ in frames] == [4000] * 4
    assert np.concatenate([frame for frame, _ in frames]).nonzero()[0].size == 10_000
    tokens = [(i, t.text, t.offset_s) for i, (_, words) in enumerate(frames) for t in words]
    assert tokens == [(0, "one ", 0.0), (1, "two. ", 500 / RATE), (1, "three ", 2500 / RATE)]
    assert not mouth.speaking


def test_a_mouth_stops_softly_at_once_or_at_the_end_of_its_sentence() -> None:
    mouth = Mouth()
    mouth.start(ramp())
    mouth.frame(1000)
    mouth.stop()
    frame, words = mouth.frame(4000)
    assert np.count_nonzero(frame) <= RATE // 100
    assert (np.diff(frame) <= 0).all()
    assert words == ()
    assert not mouth.speaking
    mouth.start(ramp())
    mouth.frame(1000)
    mouth.finish_sentence()
    out = [mouth.frame(4000) for _ in range(3)]
    assert sum(np.count_nonzero(frame) for frame, _ in out) == 5000
    assert [t.text for _, said in out for t in said] == ["two. "]
    mouth.stop()
    mouth.finish_sentence()
    assert not mouth.frame(100)[0].any()


# Words -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tone", list(Tone))
@pytest.mark.parametrize("kind", list(Kind))
def test_there_are_words_for_every_moment(kind: Kind, tone: Tone) -> None:
    for heard in ("", "two zero four seven"):
        for trigger in Trigger:
            text = RuleWriter().write(Moment(kind, heard, Floor(tone=tone), trigger=trigger), random.Random(0))
            assert split_sentences(text)


def test_what_is_read_back_is_what_was_recognised() -> None:
    moment = Moment(Kind.READBACK, "um two zero i think four seven", Floor())
    assert "Two zero I think four seven." in RuleWriter().write(moment, random.Random(0))


def test_listening_sounds_are_short(voice: Voice) -> None:
    for tone in Tone:
        for seed in range(6):
            text = RuleWriter().write(Moment(Kind.BACKCHANNEL, "", Floor(tone=tone)), random.Random(seed))
            assert voice.speak(text, 0).seconds < 0.6, text
