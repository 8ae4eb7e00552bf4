from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbeval.audio import RATE
from dsbeval.errors import AudioError
from dsbeval.speech.engine import Engine, Utterance, WordTime
from dsbeval.speech.trim import audible_extent, trim
from tests.speech.conftest import silence, voice_like

MS = RATE // 1000


@settings(deadline=None, max_examples=80)
@given(
    before=st.integers(0, RATE),
    after=st.integers(0, RATE),
    samples=st.integers(30 * MS, RATE),
    hum=st.floats(0, 3e-4),
    seed=st.integers(0, 2**32 - 1),
)
def test_speech_begins_and_ends_within_30_ms_of_the_ends(
    before: int, after: int, samples: int, hum: float, seed: int
) -> None:
    whole = np.concatenate([np.zeros(before), voice_like(samples, seed), np.zeros(after)])
    noise = hum * np.random.default_rng(seed).standard_normal(whole.size)
    word = WordTime("hm", before, before + samples + after // 2)
    trimmed = trim(Utterance((whole + noise).astype(np.float32), (word,)))
    start = before - (
        whole.size - after - samples - before
    )  # the burst's place in the whole is [before, before + samples)
    assert start == before
    kept = trimmed.audio.size
    assert samples - 10 * MS <= kept <= samples + 2 * 30 * MS
    loud = np.flatnonzero(np.abs(trimmed.audio) > 0.02)
    assert loud[0] <= 30 * MS
    assert kept - loud[-1] <= 30 * MS
    assert trimmed.words == (WordTime("hm", 0, kept),)


def test_the_ends_do_not_click(hibari: Engine) -> None:
    trimmed = trim(hibari.synthesize("Oh, is that so?", "heart", 0)).audio
    assert trimmed[0] == trimmed[-1] == 0
    steps = np.abs(np.diff(trimmed))
    assert max(steps[: 5 * MS].max(), steps[-5 * MS :].max()) < 0.01


@pytest.mark.parametrize("text", ["Right.", "Is this off?", "Six small fish, half a sheath,", "Um, I mean,"])
@pytest.mark.parametrize("voice", ["heart", "f2", "m1", "m3"])
def test_synthesised_speech_keeps_its_sound_and_loses_its_silence(hibari: Engine, voice: str, text: str) -> None:
    spoken = hibari.synthesize(text, voice, 0)
    trimmed = trim(spoken)
    assert spoken.audio.size - trimmed.audio.size > 0.3 * RATE
    # what was cut away is inaudible beside what was kept
    energy = [float((audio.astype(np.float64) ** 2).sum()) for audio in (spoken.audio, trimmed.audio)]
    assert energy[1] > 0.999 * energy[0]
    extent = audible_extent(trimmed.audio)
    assert extent.start <= 30 * MS
    assert trimmed.audio.size - extent.end <= 30 * MS


def test_word_times_move_with_the_audio(hibari: Engine) -> None:
    spoken = hibari.synthesize("One by one, they went home.", "heart", 0)
    trimmed = trim(spoken)
    cut = spoken.words[1].start - trimmed.words[1].start
    assert np.array_equal(spoken.audio[cut + RATE // 10 : cut + RATE // 5], trimmed.audio[RATE // 10 : RATE // 5])
    assert trimmed.words[0].start == 0
    assert trimmed.words[-1].end == trimmed.audio.size
    assert [word.end - word.start for word in trimmed.words[1:-1]] == [w.end - w.start for w in spoken.words[1:-1]]


@pytest.mark.parametrize("audio", [silence(0.5), silence(0.5) + np.float32(1e-5), np.zeros(0, np.float32)])
def test_silence_is_an_error(audio: np.ndarray) -> None:
    with pytest.raises(AudioError, match="the utterance is silent"):
        trim(Utterance(audio, ()))


def test_a_single_click_is_not_speech() -> None:
    audio = np.concatenate([silence(0.5), voice_like(RATE // 2), silence(0.5)])
    audio[100] = 0.4
    assert trim(Utterance(audio, ())).audio.size < 0.57 * RATE
