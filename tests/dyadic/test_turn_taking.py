"""Turn-taking on hand-built channels at each boundary, against a frame-by-frame oracle, and by its symmetries."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbeval.audio import RATE, Signal
from dsbeval.dyadic.segments import FRAME, speech_segments
from dsbeval.dyadic.turn_taking import Measures, Thresholds, measure, measure_both
from dsbeval.spans import Span, Timeline

MINUTE = Span(0, 60 * RATE)
SILENT = Timeline()


def speech(*seconds: tuple[float, float]) -> Timeline:
    return Timeline(Span.from_seconds(start, end, RATE) for start, end in seconds)


def against(model: Timeline, partner: Timeline, until: float = 60.0) -> Measures:
    return measure(model, partner, Span.from_seconds(0.0, until, RATE))


def counts(found: Measures) -> tuple[int, int, int, int]:
    """Return (won, lost, backchannels, undecided)."""
    return found.barge_ins_won, found.barge_ins_lost, found.backchannels, found.undecided


# Pauses


@pytest.mark.parametrize(("resumes", "pauses", "ends"), [(2.999, 1, 1), (3.0, 0, 2), (3.001, 0, 2)])
def test_a_silence_of_one_second_is_a_turn_end_and_a_shorter_one_a_pause(
    resumes: float, pauses: int, ends: int
) -> None:
    found = against(SILENT, speech((0.0, 2.0), (resumes, 5.0)))  # the silence after 5.0 is a turn end too
    assert (found.pauses, found.ends) == (pauses, ends)


@pytest.mark.parametrize(("until", "cut"), [(3.199, 0), (3.2, 1), (6.0, 1)])
def test_one_second_of_speech_cuts_into_a_pause(until: float, cut: int) -> None:
    found = against(speech((2.2, until)), speech((0.0, 2.0), (2.8, 5.0)))
    assert (found.pauses, found.pauses_cut) == (1, cut)


@pytest.mark.parametrize(
    ("start", "cut"),
    [(1.9, 0), (2.0, 1), (2.799, 1), (2.8, 0)],
    ids=["began before the pause", "with the partner's stop", "in the last sample", "with the partner's return"],
)
def test_a_cut_starts_inside_the_pause(start: float, cut: int) -> None:
    found = against(speech((start, start + 2)), speech((0.0, 2.0), (2.8, 5.0)))
    assert (found.pauses, found.pauses_cut, found.tor_pause) == (1, cut, float(cut))


def test_silence_before_the_first_word_is_no_silence_of_the_partner() -> None:
    found = against(speech((0.5, 3.0)), speech((4.0, 60.0)))
    assert (found.pauses, found.ends) == (0, 0)
    assert found.tor_pause is None
    assert found.tor_end is None


# Turn ends


@pytest.mark.parametrize(("start", "taken"), [(3.0, 1), (3.001, 0)])
def test_the_turn_is_taken_by_a_second_before_the_partner_resumes(start: float, taken: int) -> None:
    found = against(speech((start, 6.0)), speech((0.0, 2.0), (4.0, 60.0)))
    assert (found.ends, found.ends_taken) == (1, taken)


@pytest.mark.parametrize(("until", "taken"), [(2.999, 0), (3.0, 1)])
def test_an_early_start_counts_from_the_partners_end_on(until: float, taken: int) -> None:
    found = against(speech((1.5, until)), speech((0.0, 2.0), (4.0, 60.0)))
    assert (found.ends, found.ends_taken) == (1, taken)


def test_two_short_utterances_do_not_make_a_turn() -> None:
    found = against(speech((2.1, 2.8), (3.2, 3.9)), speech((0.0, 2.0), (5.0, 60.0)))
    assert (found.ends, found.ends_taken) == (1, 0)


@pytest.mark.parametrize(("stops", "ends"), [(9.001, 0), (9.0, 1), (10.0, 0), (11.0, 0)])
def test_a_silence_cut_off_by_the_window_is_a_turn_end_when_it_has_lasted(stops: float, ends: int) -> None:
    found = against(SILENT, speech((5.0, stops)), until=10.0)
    assert (found.pauses, found.ends) == (0, ends)


def test_the_turn_at_the_end_of_the_window_can_be_taken() -> None:
    found = against(speech((9.0, 12.0)), speech((5.0, 8.5)), until=10.0)
    assert (found.ends, found.ends_taken, found.tor_end) == (1, 1, 1.0)
    assert against(speech((9.001, 12.0)), speech((5.0, 8.5)), until=10.0).ends_taken == 0


# Backchannels and barge-ins


@pytest.mark.parametrize(("until", "expected"), [(2.999, (0, 0, 1, 0)), (3.0, (0, 1, 0, 0))])
def test_a_backchannel_is_under_one_second_and_a_longer_try_is_lost(
    until: float, expected: tuple[int, int, int, int]
) -> None:
    assert counts(against(speech((2.0, until)), speech((0.0, 10.0)))) == expected


@pytest.mark.parametrize(("partner_until", "expected"), [(2.899, (0, 0, 0, 1)), (2.9, (0, 0, 1, 0))])
def test_the_partner_of_a_backchannel_still_speaks_half_a_second_after_it(
    partner_until: float, expected: tuple[int, int, int, int]
) -> None:
    assert counts(against(speech((2.0, 2.4)), speech((0.0, partner_until)))) == expected


@pytest.mark.parametrize(("until", "expected"), [(3.499, (0, 0, 0, 1)), (3.5, (1, 0, 0, 0)), (9.0, (1, 0, 0, 0))])
def test_the_partner_yields_when_the_model_goes_on_for_half_a_second(
    until: float, expected: tuple[int, int, int, int]
) -> None:
    assert counts(against(speech((2.0, until)), speech((0.0, 3.0)))) == expected


@pytest.mark.parametrize(("partner_until", "expected"), [(4.499, (0, 0, 0, 1)), (4.5, (0, 1, 0, 0))])
def test_the_model_yields_when_the_partner_goes_on_for_half_a_second(
    partner_until: float, expected: tuple[int, int, int, int]
) -> None:
    found = against(speech((2.0, 4.0)), speech((0.0, partner_until)))
    assert counts(found) == expected
    assert found.barge_in == (0.0 if expected[1] else None)


def test_a_short_utterance_that_takes_the_floor_is_a_barge_in_and_no_backchannel() -> None:
    assert counts(against(speech((2.0, 2.8)), speech((0.0, 2.2)))) == (1, 0, 0, 0)
    assert counts(against(speech((2.0, 2.8)), speech((0.0, 2.2), (2.7, 9.0)))) == (1, 0, 0, 0)


def test_a_partner_that_is_back_within_the_hold_has_not_yielded() -> None:
    broken = speech((0.0, 3.0), (3.4, 6.0))
    assert counts(against(speech((2.0, 4.0)), broken)) == (0, 1, 0, 0)
    assert counts(against(speech((2.0, 9.0)), broken)) == (1, 0, 0, 0)  # it yields at 6.0
    assert counts(against(speech((2.0, 9.0)), speech((0.0, 3.0), (3.5, 6.0)))) == (1, 0, 0, 0)


def test_a_model_that_is_back_within_the_hold_has_not_yielded() -> None:
    found = against(speech((2.0, 4.0), (4.4, 6.0)), speech((0.0, 10.0)))
    assert counts(found) == (0, 1, 0, 1)  # the return at 4.4 is a start of its own, and that one is lost


def test_two_backchannels_close_to_each_other_are_two() -> None:
    assert counts(against(speech((2.0, 2.4), (2.8, 3.2)), speech((0.0, 10.0)))) == (0, 0, 2, 0)


def test_simultaneous_starts_are_starts_over_nobody() -> None:
    assert counts(against(speech((2.0, 2.5)), speech((2.0, 9.0)))) == (0, 0, 0, 0)
    one_sample_later = Timeline([Span(2 * RATE + 1, 2 * RATE + RATE // 2)])
    assert counts(against(one_sample_later, speech((2.0, 9.0)))) == (0, 0, 1, 0)
    assert counts(against(speech((9.0, 9.5)), speech((2.0, 9.0)))) == (0, 0, 0, 0)  # at the partner's end


def test_simultaneous_stops_are_undecided() -> None:
    found = measure_both(speech((2.0, 5.0)), speech((0.0, 5.0)), MINUTE)
    assert counts(found["a"]) == (0, 0, 0, 1)
    assert counts(found["b"]) == (0, 0, 0, 0)
    assert found["a"].barge_in is None


def test_speech_at_both_ends_of_the_window() -> None:
    window = Span.from_seconds(1.0, 11.0, RATE)
    through = speech((0.0, 20.0))
    # At the first sample both speak: neither has started over the other. At the last both go on: nothing is decided.
    found = measure(speech((0.5, 3.0), (10.0, 12.0)), through, window)
    assert counts(found) == (0, 0, 0, 1)
    assert (found.pauses, found.ends, found.segments) == (0, 0, 2)
    assert found.speech == 3 * RATE
    other = measure(through, speech((0.5, 3.0), (10.0, 12.0)), window)
    assert (other.pauses, other.ends, other.ends_taken) == (0, 1, 1)
    assert (found.occupancy, other.occupancy) == (0.0, 1.0)


def test_a_yield_needs_its_hold_inside_the_window() -> None:
    assert counts(against(speech((8.0, 12.0)), speech((5.0, 9.5)), until=10.0)) == (1, 0, 0, 0)
    assert counts(against(speech((8.0, 12.0)), speech((5.0, 9.501)), until=10.0)) == (0, 0, 0, 1)


# Occupancy


def test_occupancy_counts_exclusive_speech_only() -> None:
    found = measure_both(speech((0.0, 4.0)), speech((3.0, 5.0)), MINUTE)
    assert (found["a"].occupancy, found["b"].occupancy) == (0.75, 0.25)
    assert (found["a"].exclusive, found["b"].exclusive) == (3 * RATE, RATE)


@pytest.mark.parametrize("both", [SILENT, speech((0.0, 4.0))], ids=["silence", "unison"])
def test_where_nobody_speaks_alone_there_is_no_share(both: Timeline) -> None:
    found = measure_both(both, both, MINUTE)
    assert found["a"].occupancy is None
    assert found["b"].occupancy is None


def test_empty_channels_give_no_shares_and_no_counts() -> None:
    row = measure(SILENT, SILENT, MINUTE).as_row()
    assert {key: value for key, value in row.items() if value} == {}
    assert [row["tor_pause"], row["tor_end"], row["barge_in"], row["occupancy"]] == [None] * 4


def test_a_perfect_listener() -> None:
    partner = speech((0.0, 5.0), (5.5, 10.0), (15.0, 20.0))
    model = speech((2.0, 2.4), (10.2, 14.5), (17.0, 17.5), (20.2, 58.0))
    found = against(model, partner)
    assert (found.tor_pause, found.tor_end, found.backchannels, found.barge_in) == (0.0, 1.0, 2, None)
    assert found.starts_over == 2


# Thresholds


def test_thresholds_are_parameters() -> None:
    model, partner = speech((2.0, 2.8)), speech((0.0, 3.2))
    assert counts(measure(model, partner, MINUTE, Thresholds(hold_s=0.4))) == (0, 0, 1, 0)
    assert counts(measure(model, partner, MINUTE, Thresholds(hold_s=0.4, backchannel_s=0.8))) == (0, 1, 0, 0)
    assert measure(model, partner, MINUTE, Thresholds(turn_end_s=70)).ends == 0


@pytest.mark.parametrize("name", ["turn_end_s", "take_s", "backchannel_s", "hold_s"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_a_threshold_is_positive(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} must be positive"):
        Thresholds(**{name: value})


# From audio


def tone(*frames: tuple[int, int], total: int = 750) -> Signal:
    out = np.zeros(total * FRAME, np.float32)
    for start, end in frames:
        out[start * FRAME : end * FRAME] = 0.1 * np.sin(np.arange((end - start) * FRAME) * 0.3)
    return out


@pytest.mark.parametrize(
    ("gap", "pauses", "ends"), [(4, 0, 1), (5, 1, 1), (12, 1, 1), (13, 0, 2)], ids=["0.32", "0.40", "0.96", "1.04 s"]
)
def test_on_the_frame_grid_a_pause_is_five_to_twelve_frames(gap: int, pauses: int, ends: int) -> None:
    partner = speech_segments(tone((10, 50), (50 + gap, 100)))
    found = measure(SILENT, partner, MINUTE)
    assert (found.pauses, found.ends) == (pauses, ends)


@pytest.mark.parametrize(("frames", "expected"), [(12, (0, 0, 1, 0)), (13, (0, 1, 0, 0))])
def test_on_the_frame_grid_a_backchannel_is_at_most_twelve_frames(
    frames: int, expected: tuple[int, int, int, int]
) -> None:
    model, partner = speech_segments(tone((100, 100 + frames))), speech_segments(tone((50, 300)))
    assert counts(measure(model, partner, MINUTE)) == expected


# Properties

stretches = st.lists(st.tuples(st.integers(5, 40), st.integers(2, 40)), max_size=8)


def laid_out(found: list[tuple[int, int]]) -> Timeline:
    spans: list[Span] = []
    at = -10  # so that speech may run across the start of the window
    for gap, length in found:
        spans.append(Span((at + gap) * FRAME, (at + gap + length) * FRAME))
        at += gap + length
    return Timeline(spans)


channel = stretches.map(laid_out)
windows = st.integers(60, 200).map(lambda frames: Span(0, frames * FRAME))
properties = settings(deadline=None, max_examples=100)


@properties
@given(channel, channel, windows)
def test_occupancy_sums_to_one(a: Timeline, b: Timeline, window: Span) -> None:
    found = measure_both(a, b, window)
    one, other = found["a"].occupancy, found["b"].occupancy
    if one is None or other is None:
        assert one is other is None
        assert (a.clip(window)) == (b.clip(window))
    else:
        assert one + other == pytest.approx(1.0)


@properties
@given(channel, channel, windows)
def test_swapping_the_channels_swaps_the_measures(a: Timeline, b: Timeline, window: Span) -> None:
    found, swapped = measure_both(a, b, window), measure_both(b, a, window)
    assert (found["a"], found["b"]) == (swapped["b"], swapped["a"])


@properties
@given(channel, channel, windows, st.integers(-100_000, 100_000))
def test_the_same_offset_on_both_channels_changes_nothing(a: Timeline, b: Timeline, window: Span, by: int) -> None:
    assert measure_both(a.shift(by), b.shift(by), window.shift(by)) == measure_both(a, b, window)


@properties
@given(channel, channel, windows)
def test_every_start_over_the_partner_has_one_outcome(a: Timeline, b: Timeline, window: Span) -> None:
    found = measure(a, b, window)
    a, b = a.clip(window), b.clip(window)
    starts = sum(any(other.start < span.start < other.end for other in b) for span in a)
    assert found.starts_over == starts
    assert 0 <= found.pauses_cut <= found.pauses
    assert 0 <= found.ends_taken <= found.ends
    assert found.pauses + found.ends in (max(len(b) - 1, 0), len(b))


@properties
@given(channel, channel, windows)
def test_a_frame_by_frame_oracle_gives_the_same(a: Timeline, b: Timeline, window: Span) -> None:
    found = measure(a, b, window)
    total = window.end // FRAME
    assert counts(found) == oracle_outcomes(frames(a, total), frames(b, total))
    assert (found.pauses, found.pauses_cut, found.ends, found.ends_taken) == oracle_silences(
        frames(a, total), frames(b, total)
    )


def frames(speech: Timeline, total: int) -> list[bool]:
    return [any(span.start <= k * FRAME < span.end for span in speech) for k in range(total)]


def runs(mask: list[bool]) -> list[tuple[int, int]]:
    edges = [k for k, (x, y) in enumerate(pairwise([False, *mask, False])) if x != y]
    return list(zip(edges[::2], edges[1::2], strict=True))


def oracle_silences(a: list[bool], b: list[bool]) -> tuple[int, int, int, int]:
    """Count in frames: under a second is at most 12 of them, at least a second 13 or more."""
    pauses = cut = ends = taken = 0
    spoken = runs(b)
    for index, (_, stop) in enumerate(spoken):
        last = index + 1 == len(spoken)
        back = len(b) if last else spoken[index + 1][0]
        if back - stop >= 13:
            ends += 1
            taken += any(end - start >= 13 for start, end in runs(a[stop:back]))
        elif not last:
            pauses += 1
            cut += any(end - start >= 13 and stop <= start < back for start, end in runs(a))
    return pauses, cut, ends, taken


def oracle_outcomes(a: list[bool], b: list[bool]) -> tuple[int, int, int, int]:
    """Walk through each utterance: half a second is 6.25 frames, so the seventh frame must still be held in part."""
    won = lost = backchannels = undecided = 0

    def alone(one: list[bool], other: list[bool], at: int) -> bool:
        return at + 7 <= len(one) and all(one[at : at + 7]) and not any(other[at : at + 7])

    for start, end in runs(a):
        if start == 0 or not (b[start] and b[start - 1]):
            continue
        if any(b[k - 1] and not b[k] and alone(a, b, k) for k in range(start + 1, end)):
            won += 1
        elif end - start <= 12 and end + 7 <= len(b) and all(b[end : end + 7]):
            backchannels += 1
        elif alone(b, a, end):
            lost += 1
        else:
            undecided += 1
    return won, lost, backchannels, undecided
