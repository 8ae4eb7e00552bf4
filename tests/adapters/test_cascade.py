"""Short conversations with the agent: synthesised users, real recognition and speech, its turns measured on one clock."""

from __future__ import annotations

import difflib

import pytest

from adapters.cascade import Cascade
from adapters.cascade.hearing import Hearing
from adapters.cascade.recognise import Sphinx
from dsbeval.audio import RATE
from dsbeval.dyadic.protocol import Run, record_run
from dsbeval.dyadic.scenarios import load_scenarios
from dsbeval.dyadic.transcript import hear
from dsbeval.spans import Span
from tests.adapters.cascade_talk import HELLO, Talk, plain, silence, talk, user

VAD = 0.1  # what the VAD of the tests may be off by
LONG = "We planted the tall trees along the wall, and my brother carried the water up."


def onset_after(found: Talk, time: float) -> float:
    """Return how long after ``time`` the agent's next stretch of speech begins."""
    return next((start - time for start in found.starts if start >= time - VAD), float("inf"))


def test_a_plain_assistant_answers_after_its_gap_and_only_once() -> None:
    person = user(0.5, HELLO, 6.5, LONG, 5.0)
    found = talk("", person.audio)
    for _, end in person.said:
        assert onset_after(found, end) == pytest.approx(0.7, abs=0.2)
    assert len(found.starts) == 2
    assert found.flushes == ()


def test_it_listens_through_a_pause_shorter_than_its_gap() -> None:
    person = user(0.5, HELLO, 6.5, "We went down to the river,", 0.45, "and then we came back home.", 4.0)
    found = talk("", person.audio)
    (_, pause), (resumed, end) = person.said[1:]
    assert found.silent(person.said[1][0], resumed)
    assert onset_after(found, pause) == pytest.approx(end - pause + 0.7, abs=0.25)


def test_it_says_nothing_when_nobody_speaks() -> None:
    assert talk("Fill every silence at once.", silence(12.0)).words == ()


def test_it_speaks_first_only_when_told_so_and_only_once() -> None:
    found = talk("You begin this conversation.", silence(9.6))
    assert len(found.starts) == 1
    assert found.starts[0] == pytest.approx(0.4, abs=0.2)


def test_two_of_them_hold_a_conversation() -> None:
    agents = Cascade(), Cascade(voice="m2")
    run = Run("T4-2-01", "ab", "a", repeat=1, self_play=True)
    heard = hear(record_run(run, load_scenarios(), *agents, window_s=16))
    first = {side: [round(span.start / RATE, 1) for span in heard.speech[side]] for side in ("a", "b")}
    assert first["a"][0] == pytest.approx(0.4, abs=0.3)
    assert first["a"][0] < first["b"][0] < first["a"][-1]


@pytest.mark.parametrize(
    ("rule", "pause", "answers"),
    [
        ("Leave at least four seconds of silence before you answer.", 4.5, False),
        ("Leave at least four seconds of silence before you answer.", 8.0, True),
        ("Never let a silence last longer than 1.5 seconds.", 1.5, True),
        ("Leave every silence alone.", 8.0, False),
    ],
)
def test_a_stated_gap_is_kept(rule: str, pause: float, answers: bool) -> None:
    person = user(0.5, HELLO, 6.5, LONG, pause, "That was all.", 0.4)
    found = talk(rule, person.audio)
    end, resumed = person.said[1][1], person.said[2][0]
    assert onset_after(found, person.said[0][1]) < 1.3  # the first turn is answered whatever the gap
    assert found.silent(end + VAD, resumed) is not answers


def test_it_stops_within_a_third_of_a_second_when_the_user_comes_in() -> None:
    person = user(0.5, HELLO, 2.7, "Sorry, there is something else that I forgot.", 4.0)
    found = talk("", person.audio)
    came_in = person.said[1][0]
    stopped = found.speech.at(round(came_in * RATE))
    assert stopped is not None, "the agent must be speaking for this to be a test"
    assert stopped.end / RATE - came_in < 0.3 + VAD
    (flush,) = found.flushes
    assert flush - came_in < 0.3
    # What it did not get to say is not in its text: the words end where the voice does.
    assert found.words[-1][0] > flush
    assert all(time < flush for time, _ in found.words if time < person.said[1][1])
    whole = talk("", user(0.5, HELLO, 8.0).audio).text
    cut = "".join(word for time, word in found.words if time <= flush).strip()
    assert whole.startswith(cut)
    assert len(cut) < len(whole)


def test_it_finishes_its_sentence_or_its_turn_when_told_so() -> None:
    person = user(0.5, HELLO, 1.2, "Sorry, there is something else that I forgot.", 7.0)
    came_in = person.said[1][0]
    held = talk("If somebody talks over you, keep going to the end of your sentence.", person.audio)
    shared = talk("Welcome overlap.", person.audio)
    whole = talk("", user(0.5, HELLO, 8.0).audio).text
    for found in (held, shared):
        span = found.speech.at(round(came_in * RATE))
        assert span is not None, "the agent must be speaking for this to be a test"
        assert span.end / RATE - came_in > 0.6
        assert found.flushes == ()
    sentence = "".join(word for time, word in held.words if time < held.starts[1] - 3 * VAD).strip()
    assert sentence == whole.split(". ")[0] + "."
    assert shared.text.startswith(whole)


def test_it_reads_back_the_digits_that_it_recognised() -> None:
    person = user(0.5, HELLO, 6.5, "The number is five five five,", 0.6, "two zero four seven.", 7.0)
    found = talk("Read every number back.", person.audio)
    said = " ".join(plain(found.text))
    assert "five five five two zero four seven" in said
    assert "Is that right?" in found.text or "Have I got that right?" in found.text


def test_a_check_gets_one_short_sound_and_the_floor_stays_with_the_user() -> None:
    person = user(0.5, HELLO, 6.5, "We planted all of the trees along the wall, you know?", 1.4, LONG, 0.5)
    check, resumed = person.said[1][1], person.said[2][0]
    window = Span.from_seconds(check, resumed, RATE)
    found = talk("Give brief listening sounds. Wait at least two seconds before you answer.", person.audio)
    (sound,) = found.speech.starting_in(window)
    assert sound.duration / RATE < 0.7
    assert sound.end < window.end
    quiet = talk("Use no listening sounds. Wait at least two seconds before you answer.", person.audio)
    assert quiet.silent(check, resumed)


def test_it_comes_in_on_a_red_flag_and_only_when_told_so() -> None:
    before, after = (
        "So I carried the water up and then I passed out,",
        "but we sat in the shade for a while and looked at all the trees.",
    )
    person = user(0.5, HELLO, 6.5, before, 0.05, after, 3.0)
    flag, end = person.said[1][1], person.said[2][1]
    found = talk("Interrupt at once when the user mentions a warning sign.", person.audio)
    assert onset_after(found, flag) < 1.5
    assert flag + 1.5 < end
    assert talk("Never interrupt.", person.audio).silent(person.said[1][0], end)


@pytest.mark.parametrize(("prompt", "seed"), [("", 1), ("Give soft and gentle backchannels. Read everything back.", 0)])
def test_its_text_agrees_with_its_speech(prompt: str, seed: int) -> None:
    found = talk(prompt, user(0.5, HELLO, 6.5, "Two small pies and three large coffees.", 8.0).audio, seed)
    recognition = Sphinx()
    hearing = Hearing(recognition.lend())
    audio = found.audio[: found.audio.size // 1920 * 1920]
    for start in range(0, audio.size, 1920):
        hearing.push(audio[start : start + 1920])
    said, heard = plain(found.text), hearing.text(0).split()
    matcher = difflib.SequenceMatcher(a=said, b=heard, autojunk=False)
    common = sum(block.size for block in matcher.get_matching_blocks())
    assert len(said) > 20
    assert common / len(said) >= 0.75
    # The times too: in order, and no word outside the agent's own speech.
    assert list(found.words) == sorted(found.words, key=lambda word: word[0])
    for time, word in found.words:
        assert not found.silent(time - 2 * VAD, time + 3 * VAD), (time, word)


def test_a_persona_moves_the_floor_as_far_as_its_words_go() -> None:
    person = user(0.5, HELLO, 6.5, LONG, 2.6, "That was all.", 0.4)
    end, resumed = person.said[1][1], person.said[2][0]
    assert not talk("", person.audio).silent(end + VAD, resumed)
    assert talk("You sit in a quiet and unhurried room by a garden.", person.audio).silent(end + VAD, resumed)
