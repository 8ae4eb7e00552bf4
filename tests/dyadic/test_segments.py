"""Energy segmentation at its limits, text on segments, and the transcript the judge sees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbeval.audio import RATE, Signal
from dsbeval.dyadic.segments import FRAME, EnergySettings, Segment, attach, owner, speech_segments, transcript
from dsbeval.errors import AudioError
from dsbeval.judge.dyadic import read_transcript
from dsbeval.recording import TimedText
from dsbeval.spans import Span, Timeline
from dsbeval.vad import energy_spans

LOUD, BETWEEN, QUIET = 0.05, 0.007, 0.001
properties = settings(deadline=None, max_examples=100)


def levels(*found: float) -> Signal:
    """Return a square wave whose frames have these RMS values exactly."""
    wave = np.where(np.arange(FRAME) % 2, 1.0, -1.0)
    return np.concatenate([(level * wave).astype(np.float32) for level in found]) if found else np.zeros(0, np.float32)


def in_frames(speech: Timeline) -> list[tuple[float, float]]:
    return [(span.start / FRAME, span.end / FRAME) for span in speech]


def test_no_audio_and_silence_have_no_speech() -> None:
    assert not speech_segments(np.zeros(0, np.float32))
    assert not speech_segments(np.zeros(RATE, np.float32))


def test_hysteresis_opens_above_and_closes_below() -> None:
    audio = levels(BETWEEN, LOUD, BETWEEN, BETWEEN, QUIET, BETWEEN, QUIET)
    assert in_frames(speech_segments(audio)) == [(1, 4)]


@pytest.mark.parametrize(("level", "opens"), [(0.0099, False), (0.0101, True)])
def test_a_segment_opens_above_one_hundredth(level: float, opens: bool) -> None:
    assert bool(speech_segments(levels(0, level, level, 0))) is opens


@pytest.mark.parametrize(("level", "end"), [(0.0041, 4), (0.0039, 3)])
def test_a_segment_closes_below_four_thousandths(level: float, end: int) -> None:
    assert in_frames(speech_segments(levels(0, LOUD, LOUD, level, 0))) == [(1, end)]


@pytest.mark.parametrize(("frames", "kept"), [(1, False), (2, True)], ids=["0.08 s", "0.16 s"])
def test_a_segment_of_at_least_two_frames_stays(frames: int, kept: bool) -> None:
    assert bool(speech_segments(levels(0, *[LOUD] * frames, 0))) is kept


@pytest.mark.parametrize(("frames", "segments"), [(4, 1), (5, 2)], ids=["0.32 s", "0.40 s"])
def test_a_gap_of_at_most_four_frames_is_joined(frames: int, segments: int) -> None:
    assert len(speech_segments(levels(LOUD, LOUD, *[0] * frames, LOUD, LOUD))) == segments


def test_a_click_does_not_bridge_two_utterances() -> None:
    audio = levels(LOUD, LOUD, 0, 0, 0, 0, LOUD, 0, 0, 0, 0, LOUD, LOUD)
    assert in_frames(speech_segments(audio)) == [(0, 2), (11, 13)]


def test_parameters_are_parameters() -> None:
    audio = levels(0, LOUD, 0, 0, LOUD, LOUD)
    assert in_frames(speech_segments(audio, EnergySettings(min_speech_s=0.08, max_gap_s=0.08))) == [(1, 2), (4, 6)]
    assert not speech_segments(audio, EnergySettings(opens=0.2))
    halves = speech_segments(audio, EnergySettings(frame=FRAME // 2, max_gap_s=0.0))
    assert in_frames(halves) == [(4, 6)]  # a frame of 0.04 s leaves 0.08 s of speech too short


@pytest.mark.parametrize(
    "wrong", [{"frame": 0}, {"opens": 0.001}, {"closes": -0.1}, {"min_speech_s": -1.0}, {"max_gap_s": -1.0}]
)
def test_impossible_parameters_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        EnergySettings(**wrong)  # type: ignore[arg-type]


def test_speech_to_the_end_of_an_uneven_channel_ends_on_the_grid() -> None:
    audio = levels(0, LOUD, LOUD, LOUD)[:-100]
    assert in_frames(speech_segments(audio)) == [(1, 4)]


@properties
@given(st.lists(st.sampled_from([LOUD, BETWEEN, QUIET, 0.0]), max_size=80), st.integers(0, FRAME - 1))
def test_segments_lie_on_the_grid_and_are_long_and_far_apart(found: list[float], short: int) -> None:
    audio = levels(*found)
    audio = audio[: max(audio.size - short, 0)]
    speech = speech_segments(audio)
    for span in speech:
        assert span.start % FRAME == span.end % FRAME == 0
        assert span.duration >= 2 * FRAME
    assert all(gap.duration > 4 * FRAME for gap in speech.gaps(speech.extent or Span(0, 1)) if speech)
    # Every frame that is loud for two frames or more is covered, and nothing outside what the detector found.
    detected = energy_spans(audio, FRAME)
    for span in detected:
        if span.duration > 2 * FRAME:
            assert speech.overlap(Timeline([span])) == span.duration


def test_a_frame_must_be_positive_in_the_detector() -> None:
    with pytest.raises(AudioError, match="frame must be positive"):
        energy_spans(levels(LOUD), 0)


# Text

TWO = Timeline([Span(10 * RATE, 12 * RATE), Span(13 * RATE, 15 * RATE)])


@pytest.mark.parametrize(
    ("seconds", "index"),
    [
        (9.399, None),
        (9.4, 0),
        (10.0, 0),
        (11.999, 0),
        (12.3, 0),
        (12.31, None),
        (12.399, None),
        (12.4, 1),
        (13.0, 1),
        (15.3, 1),
        (15.301, None),
    ],
)
def test_text_belongs_from_before_the_start_to_after_the_end(seconds: float, index: int | None) -> None:
    assert owner(TWO, round(seconds * RATE)) == index


def test_between_two_segments_the_nearer_edge_owns_and_a_tie_goes_on() -> None:
    close = Timeline([Span(0, RATE), Span(RATE + 12_000, 2 * RATE)])  # a gap of 0.5 s
    assert owner(close, RATE + 5_999) == 0
    assert owner(close, RATE + 6_000) == 1
    assert owner(close, RATE + 6_001) == 1


def test_text_limits_are_parameters() -> None:
    assert owner(TWO, 9 * RATE, lead_s=1.0) == 0
    assert owner(TWO, round(12.1 * RATE), lag_s=0.0) is None


def test_text_is_attached_in_order_and_unvoiced_text_left_out() -> None:
    text = [
        TimedText(round(13.1 * RATE), " again"),
        TimedText(round(9.5 * RATE), "Good"),
        TimedText(round(9.6 * RATE), " morn"),
        TimedText(round(10.5 * RATE), "ing,\n  all."),
        TimedText(round(20.0 * RATE), " Unheard"),
    ]
    segments, voiced = attach(TWO, text)
    assert segments == (Segment(TWO[0], "Good morning, all."), Segment(TWO[1], "again"))
    assert [piece.text for piece in voiced] == ["Good", " morn", "ing,\n  all.", " again"]


def test_no_segments_voice_nothing_and_a_segment_may_be_without_text() -> None:
    assert attach(Timeline(), [TimedText(0, "Hello")]) == ((), ())
    assert [segment.text for segment in attach(TWO, [])[0]] == ["", ""]


@properties
@given(st.lists(st.integers(0, 20 * RATE), max_size=20), st.integers(0, RATE))
def test_each_piece_has_one_owner_within_reach(samples: list[int], by: int) -> None:
    pieces = [TimedText(sample, f" w{number}") for number, sample in enumerate(samples)]
    segments, voiced = attach(TWO, pieces)
    assert sorted(word for segment in segments for word in segment.text.split()) == sorted(p.text[1:] for p in voiced)
    for piece in voiced:
        assert any(s.span.start - 14_400 <= piece.sample <= s.span.end + 7_200 for s in segments)
    moved, _ = attach(TWO.shift(by), [TimedText(piece.sample + by, piece.text) for piece in pieces])
    assert [segment.text for segment in moved] == [segment.text for segment in segments]


# The transcript


def segment(start: float, text: str) -> Segment:
    return Segment(Span.from_seconds(start, start + 1, RATE), text)


def test_a_transcript_is_anonymous_and_ordered_by_onset() -> None:
    text, speakers = transcript([segment(4.0, "Fine."), segment(9.96, "Bye")], [segment(1.6, "How are you?")])
    assert text == "[1.6] Speaker A: How are you?\n[4.0] Speaker B: Fine.\n[10.0] Speaker B: Bye"
    assert speakers == {"b": "Speaker A", "a": "Speaker B"}
    assert [line.text for line in read_transcript(text)] == ["How are you?", "Fine.", "Bye"]


def test_a_segment_without_text_has_no_line_and_names_no_speaker() -> None:
    text, speakers = transcript([segment(0.0, "")], [segment(2.0, "Anybody there?")])
    assert (text, speakers) == ("[2.0] Speaker A: Anybody there?", {"b": "Speaker A"})
    assert transcript([], []) == ("", {})
