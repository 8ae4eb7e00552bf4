"""Spans and timelines against two oracles: a boolean mask over samples, and the interval functions of mir_eval."""

from __future__ import annotations

import doctest
import math
import pickle
from fractions import Fraction

import mir_eval.util
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import ndimage

import dsbeval.spans
from dsbeval.spans import Span, Timeline, to_samples

Mask = NDArray[np.bool_]

LOW, HIGH = -40, 140  # the samples a mask covers: room around what the strategies draw

span_st = st.builds(lambda start, size: Span(start, start + size), st.integers(-20, 70), st.integers(1, 30))
spans_st = st.lists(span_st, max_size=8)
timeline_st = spans_st.map(Timeline)
properties = settings(deadline=None, max_examples=100)


def mask(spans: list[Span] | Timeline) -> Mask:
    out = np.zeros(HIGH - LOW, dtype=np.bool_)
    for span in spans:
        out[span.start - LOW : span.end - LOW] = True
    return out


def runs(covered: Mask) -> list[tuple[int, int]]:
    """Return the runs of True: where the mask steps up, and where it steps down."""
    step = np.diff(np.concatenate([[0], covered.astype(np.int8), [0]]))
    return [(int(a) + LOW, int(b) + LOW) for a, b in zip(*(np.flatnonzero(step == s) for s in (1, -1)), strict=True)]


def pairs(spans: Timeline | tuple[Span, ...]) -> list[tuple[int, int]]:
    return [(span.start, span.end) for span in spans]


# Spans


def test_docstring_examples_run() -> None:
    outcome = doctest.testmod(dsbeval.spans)
    assert outcome.failed == 0
    assert outcome.attempted >= 2


@pytest.mark.parametrize(("start", "end"), [(5, 5), (5, 4), (0, -1)])
def test_a_span_is_never_empty(start: int, end: int) -> None:
    with pytest.raises(ValueError, match=rf"must not be empty: \[{start}, {end}\)"):
        Span(start, end)


def test_a_span_in_seconds_is_refused() -> None:
    with pytest.raises(TypeError):
        Span(0.5, 1.5)  # type: ignore[arg-type]


def test_numpy_integers_are_plain_samples() -> None:
    span = Span(np.int64(3), np.int32(9))  # type: ignore[arg-type]
    assert type(span.start) is int
    assert type(span.end) is int
    assert span == Span(3, 9)
    assert np.int64(3) in span
    assert np.int64(9) not in span
    assert np.int32(4) in Timeline([span])
    assert Timeline([span]).starting_in(Span(0, 4)) == (span,)


def test_a_span_holds_its_first_sample_and_not_its_end() -> None:
    span = Span(10, 20)
    assert 10 in span
    assert 19 in span
    assert 20 not in span
    assert 9 not in span
    assert 12.0 not in span
    assert span.duration == 10


def test_touching_spans_share_no_sample() -> None:
    assert Span(0, 10) & Span(10, 20) is None
    assert not Span(0, 10).overlaps(Span(10, 20))
    assert Span(0, 11) & Span(10, 20) == Span(10, 11)


def test_spans_sort_by_start_then_end() -> None:
    assert sorted([Span(5, 9), Span(0, 9), Span(5, 6)]) == [Span(0, 9), Span(5, 6), Span(5, 9)]


@properties
@given(span_st, span_st, st.integers(-15, 15))
def test_span_operators_agree_with_the_mask(a: Span, b: Span, by: int) -> None:
    common = mask([a]) & mask([b])
    found = a & b
    assert ([] if found is None else pairs((found,))) == runs(common)
    assert a.overlaps(b) == b.overlaps(a) == bool(common.any())
    assert a.duration == int(mask([a]).sum())
    assert [sample in a for sample in range(LOW, HIGH)] == mask([a]).tolist()
    assert runs(np.roll(mask([a]), by)) == pairs((a.shift(by),))


# Seconds


@pytest.mark.parametrize(
    ("seconds", "rate", "sample"),
    [
        (1.2, 24_000, 28_800),
        (2.5, 24_000, 60_000),
        (11.0, 24_000, 264_000),
        (0.3, 24_000, 7_200),
        (0.29, 100, 29),  # 0.29 * 100 is 28.999999999999996
        (1.1, 24_000, 26_400),
        (0.00004, 24_000, 0),  # 0.96 of a sample
        (0.00005, 24_000, 1),
        (1.99999, 24_000, 47_999),
        (-0.00001, 24_000, -1),  # floor, not towards zero
        (0.0, 24_000, 0),
        (6_500.001, 24_000, 156_000_024),
    ],
)
def test_seconds_fall_on_the_sample_below(seconds: float, rate: int, sample: int) -> None:
    assert to_samples(seconds, rate) == sample


@properties
@given(st.integers(-10_000_000, 200_000_000), st.sampled_from([8_000, 16_000, 22_050, 24_000, 48_000]))
def test_a_time_that_names_a_sample_falls_on_it(sample: int, rate: int) -> None:
    assert to_samples(sample / rate, rate) == sample


@properties
@given(st.integers(0, 7_000_000), st.sampled_from([8_000, 16_000, 22_050, 24_000]))
def test_seconds_are_floored_exactly(milliseconds: int, rate: int) -> None:
    assert to_samples(milliseconds / 1000, rate) == math.floor(Fraction(milliseconds, 1000) * rate)


@properties
@given(st.integers(0, 10_000_000), st.integers(24, 1_000_000))
def test_seconds_go_out_in_whole_milliseconds(start: int, size: int) -> None:
    span = Span(start, start + size)
    out = span.seconds(24_000)
    for sample, second in zip((span.start, span.end), out, strict=True):
        assert abs(second - sample / 24_000) <= 0.0005 + 1e-9
        assert round(second, 3) == second
    assert abs(Span.from_seconds(*out, 24_000).start - start) <= 12


def test_from_seconds_takes_both_edges() -> None:
    assert Span.from_seconds(1.2, 2.5, 24_000) == Span(28_800, 60_000)


# Timelines


def test_nothing() -> None:
    empty, some = Timeline(), Timeline([Span(3, 5)])
    assert len(empty) == 0
    assert empty.duration == 0
    assert empty.extent is None
    assert empty.at(3) is None
    assert 3 not in empty
    assert empty | some == some | empty == some
    assert empty & some == some & empty == empty
    assert empty - some == empty
    assert some - empty == some
    assert empty.gaps(Span(0, 9)) == Timeline([Span(0, 9)])
    assert empty.merge(100) == empty.clip(Span(0, 9)) == empty.shift(4) == empty
    assert empty.overlap(some) == some.overlap(empty) == 0
    assert empty.touching(Span(0, 9)) == empty.starting_in(Span(0, 9)) == ()


def test_touching_and_overlapping_input_becomes_one_span() -> None:
    assert pairs(Timeline([Span(10, 20), Span(0, 10)])) == [(0, 20)]
    assert pairs(Timeline([Span(0, 30), Span(5, 6), Span(29, 31)])) == [(0, 31)]
    assert pairs(Timeline([Span(0, 10), Span(11, 20)])) == [(0, 10), (11, 20)]
    assert pairs(Timeline([Span(0, 5), Span(0, 5)])) == [(0, 5)]


def test_merge_joins_gaps_strictly_less_than_the_gap() -> None:
    timeline = Timeline([Span(0, 10), Span(17, 20)])
    assert pairs(timeline.merge(8)) == [(0, 20)]
    assert pairs(timeline.merge(7)) == [(0, 10), (17, 20)]
    assert timeline.merge(0) == timeline


def test_merge_joins_a_chain_by_its_gaps_not_its_length() -> None:
    timeline = Timeline([Span(0, 1), Span(4, 5), Span(8, 9), Span(13, 14)])
    assert pairs(timeline.merge(4)) == [(0, 9), (13, 14)]


def test_speech_under_way_touches_a_window_and_does_not_start_in_it() -> None:
    timeline = Timeline([Span(0, 12), Span(14, 16), Span(20, 30)])
    window = Span(10, 20)
    assert timeline.touching(window) == (Span(0, 12), Span(14, 16))
    assert timeline.starting_in(window) == (Span(14, 16),)
    assert timeline.starting_in(Span(0, 1)) == (Span(0, 12),)


def test_a_timeline_is_a_frozen_sequence() -> None:
    timeline = Timeline([Span(8, 9), Span(0, 3)])
    assert list(timeline) == [timeline[0], timeline[1]] == [Span(0, 3), Span(8, 9)]
    assert timeline[-1] == Span(8, 9)
    assert timeline[:1] == (Span(0, 3),)
    assert timeline.extent == Span(0, 9)
    with pytest.raises(AttributeError):
        timeline.spans = ()  # type: ignore[misc]
    with pytest.raises(AttributeError):
        timeline[0].start = 1  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(timeline)) == timeline


@properties
@given(spans_st)
def test_a_timeline_is_the_set_of_its_samples(spans: list[Span]) -> None:
    timeline, covered = Timeline(spans), mask(spans)
    assert pairs(timeline) == runs(covered)
    assert timeline.duration == int(covered.sum())
    assert [sample in timeline for sample in range(LOW, HIGH)] == covered.tolist()
    assert timeline == Timeline(reversed(spans))
    assert hash(timeline) == hash(Timeline(reversed(spans)))
    assert timeline == Timeline(Span(s, s + 1) for span in spans for s in range(span.start, span.end))
    inside = np.flatnonzero(covered)
    assert timeline.extent == (Span(int(inside[0]) + LOW, int(inside[-1]) + LOW + 1) if inside.size else None)


@properties
@given(timeline_st, timeline_st)
def test_set_operators_agree_with_the_mask(a: Timeline, b: Timeline) -> None:
    assert pairs(a | b) == runs(mask(a) | mask(b))
    assert pairs(a & b) == runs(mask(a) & mask(b))
    assert pairs(a - b) == runs(mask(a) & ~mask(b))
    assert a.overlap(b) == b.overlap(a) == int((mask(a) & mask(b)).sum())


@properties
@given(timeline_st, span_st)
def test_windows_agree_with_the_mask(timeline: Timeline, window: Span) -> None:
    covered, inside = mask(timeline), mask([window])
    assert pairs(timeline.gaps(window)) == runs(~covered & inside)
    assert pairs(timeline.clip(window)) == runs(covered & inside)
    pieces, count = ndimage.label(covered)
    whole = [runs(pieces == k)[0] for k in range(1, count + 1)]
    assert pairs(timeline.touching(window)) == [whole[k - 1] for k in np.unique(pieces[inside & covered])]
    onset = covered & ~np.roll(covered, 1)
    assert pairs(timeline.starting_in(window)) == [whole[k - 1] for k in pieces[onset & inside]]
    for sample in range(LOW, HIGH):
        at = timeline.at(sample)
        piece = int(pieces[sample - LOW])
        assert (at and (at.start, at.end)) == (whole[piece - 1] if piece else None)


@properties
@given(timeline_st, st.integers(-1, 30))
def test_merge_agrees_with_the_mask(timeline: Timeline, gap: int) -> None:
    covered = mask(timeline)
    holes = runs(~covered)[1:-1]  # the first and the last lie outside
    filled = covered.copy()
    for start, end in holes:
        if end - start < gap:
            filled[start - LOW : end - LOW] = True
    assert pairs(timeline.merge(gap)) == runs(filled)


@properties
@given(timeline_st, st.integers(-15, 15))
def test_shift_moves_every_sample(timeline: Timeline, by: int) -> None:
    assert pairs(timeline.shift(by)) == runs(np.roll(mask(timeline), by))
    assert timeline.shift(by).shift(-by) == timeline


# mir_eval


def labelled(timeline: Timeline, window: Span) -> tuple[NDArray[np.float64], list[bool]]:
    """Return the window cut at every edge, and whether each piece is covered, made by mir_eval alone."""
    edges = [float(edge) for pair in pairs(timeline) for edge in pair]
    if not edges or edges[-1] <= window.start or edges[0] >= window.end:
        # mir_eval wants something to be left inside the window
        return np.array([[window.start, window.end]], dtype=np.float64), [False]
    pieces = mir_eval.util.boundaries_to_intervals(edges)
    state = [k % 2 == 0 for k in range(len(pieces))]
    cut, labels = mir_eval.util.adjust_intervals(
        pieces, state, t_min=window.start, t_max=window.end, start_label=False, end_label=False
    )
    # It keeps a piece that only touches the window, with no length.
    real = [(piece, label) for piece, label in zip(cut, labels, strict=True) if piece[0] < piece[1]]
    return np.array([piece for piece, _ in real]), [label for _, label in real]


def chosen(intervals: NDArray[np.float64], keep: list[bool]) -> Timeline:
    return Timeline(Span(int(a), int(b)) for (a, b), kept in zip(intervals, keep, strict=True) if kept)


@properties
@given(timeline_st, span_st)
def test_clip_and_gaps_agree_with_mir_eval(timeline: Timeline, window: Span) -> None:
    timeline, window = timeline.shift(-LOW), window.shift(-LOW)  # mir_eval knows no time before zero
    intervals, covered = labelled(timeline, window)
    assert chosen(intervals, covered) == timeline.clip(window)
    assert chosen(intervals, [not c for c in covered]) == timeline.gaps(window)
    durations = mir_eval.util.intervals_to_durations(intervals)
    assert sum(durations[np.array(covered)]) == timeline.clip(window).duration


@properties
@given(timeline_st, timeline_st)
def test_set_operators_agree_with_mir_eval(a: Timeline, b: Timeline) -> None:
    whole = Span(LOW, HIGH)
    intervals, in_a, in_b = mir_eval.util.merge_labeled_intervals(*labelled(a, whole), *labelled(b, whole))
    both = list(zip(in_a, in_b, strict=True))
    assert chosen(intervals, [x or y for x, y in both]) == a | b
    assert chosen(intervals, [x and y for x, y in both]) == a & b
    assert chosen(intervals, [x and not y for x, y in both]) == a - b
