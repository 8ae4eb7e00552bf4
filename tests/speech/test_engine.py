from __future__ import annotations

import numpy as np
import pytest

from dsbeval.audio import RATE, Signal
from dsbeval.errors import OptionError
from dsbeval.speech.engine import Engine, split_voice
from dsbeval.speech.engines import load_engine
from dsbeval.speech.phonemes import plain, spoken_words
from dsbeval.speech.trim import audible_extent

TEXT = "I walked to the harbor, um, and it was forty-one degrees. Nobody else was there."


def pitch(audio: Signal) -> float:
    """Return the median fundamental frequency of the voiced frames."""
    found = []
    for start in range(0, audio.size - 960, 480):
        frame = audio[start : start + 960].astype(np.float64)
        if np.sqrt((frame**2).mean()) < 0.02:
            continue
        lags = np.correlate(frame, frame, "full")[959:] / (frame**2).sum()
        low, high = RATE // 400, RATE // 65
        lag = low + int(lags[low:high].argmax())
        if lags[lag] > 0.5:
            found.append(RATE / lag)
    return float(np.median(found))


def test_equal_seeds_give_equal_samples_and_another_seed_does_not(hibari: Engine) -> None:
    first = hibari.synthesize(TEXT, "heart", 3)
    again = hibari.synthesize(TEXT, "heart", 3)
    other = hibari.synthesize(TEXT, "heart", 4)
    assert np.array_equal(first.audio, again.audio)
    assert first.words == again.words
    assert not np.array_equal(first.audio, other.audio)


def test_another_session_gives_the_same_samples(hibari: Engine) -> None:
    fresh = load_engine("hibari")
    assert fresh.version == hibari.version
    assert np.array_equal(fresh.synthesize(TEXT, "m2", 0).audio, hibari.synthesize(TEXT, "m2", 0).audio)


def test_every_word_of_the_text_has_its_time(hibari: Engine) -> None:
    spoken = hibari.synthesize(TEXT, "heart", 0)
    assert [word.word for word in spoken.words] == TEXT.split()
    edges = [edge for word in spoken.words for edge in (word.start, word.end)]
    assert edges == sorted(edges)
    assert all(word.start < word.end <= spoken.audio.size for word in spoken.words)


def test_words_are_where_sound_is(hibari: Engine) -> None:
    spoken = hibari.synthesize(TEXT, "heart", 0)
    extent = audible_extent(spoken.audio)
    assert abs(spoken.words[0].start - extent.start) < 0.1 * RATE
    stop = next(word for word in spoken.words if word.word == "degrees.")
    following = spoken.words[spoken.words.index(stop) + 1]
    # between the sentences is a pause; the model's durations let a word begin up to 0.1 s after its sound
    pause = spoken.audio[following.start - RATE // 5 : following.start - RATE // 8]
    assert np.abs(pause).max() < 0.01
    for word in spoken.words:
        inside = spoken.audio[word.start : word.end]
        assert np.abs(inside).max() > 0.02, word


def test_derived_voices_differ_in_pitch_as_their_names_say(hibari: Engine) -> None:
    found = {voice: pitch(hibari.synthesize(TEXT, voice, 0).audio) for voice in ("heart", "f2", "m1", "m2")}
    assert found["m1"] < found["m2"] < found["heart"] < found["f2"]
    assert found["m1"] < 0.8 * found["heart"]


def test_the_pace_after_at_slows_a_voice_down(hibari: Engine) -> None:
    usual = hibari.synthesize(TEXT, "heart", 0).audio.size
    slow = hibari.synthesize(TEXT, "heart@0.8", 0).audio.size
    assert 1.1 < slow / usual < 1.4


def test_a_pronunciation_is_spoken_and_the_word_stays(hibari: Engine) -> None:
    marked = "Take [losartan](/lOsˈɑɹtən/), please."
    assert plain(marked) == "Take losartan, please."
    words = spoken_words(marked)
    assert [word.text for word in words] == ["Take", "losartan,", "please."]
    assert words[1].phonemes == "lOsˈɑɹtən,"
    usual = hibari.synthesize(plain(marked), "heart", 0)
    assert not np.array_equal(usual.audio, hibari.synthesize(marked, "heart", 0).audio)


def test_british_rules_read_differently() -> None:
    american, british = spoken_words("Walter's bath"), spoken_words("Walter's bath", british=True)
    assert [word.text for word in american] == [word.text for word in british] == ["Walter's", "bath"]
    assert american[1].phonemes != british[1].phonemes


@pytest.mark.parametrize(
    ("voice", "message"),
    [
        ("hart", "voice 'hart' is not one of the engine's; did you mean heart?"),
        ("heart@fast", "voice 'heart@fast': the pace after @ must be a number from 0.5 to 2.0, as in heart@0.9"),
        ("heart@3", "voice 'heart@3': the pace after @ must be a number from 0.5 to 2.0, as in heart@0.9"),
    ],
)
def test_a_wrong_voice_is_one_clear_line(voice: str, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        split_voice(voice, ("heart", "f2"))
    assert str(caught.value) == message


def test_an_unknown_engine_names_the_near_one() -> None:
    with pytest.raises(OptionError, match=r"^engine 'kokoru' is not known; did you mean kokoro\?$"):
        load_engine("kokoru")
