"""Kaplan-Meier curves against lifelines, by hand, and of rows."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbeval.dyadic.survival import Event, deviation, entry, kaplan_meier, leak
from tests.dyadic.dyads import dyad

properties = settings(deadline=None, max_examples=40)


def lifelines(found: list[Event]) -> Any:
    from lifelines import KaplanMeierFitter  # type: ignore[import-untyped]

    times = [end if time is None else time for time, end in found]
    return KaplanMeierFitter().fit(times, [time is not None for time, _ in found])


def events(draw_end: float = 60.0) -> st.SearchStrategy[list[Event]]:
    # Times on a coarse grid, so that ties of events and of censorings happen.
    time = st.integers(0, 20).map(lambda k: k * 2.5)
    observed = st.tuples(time, st.integers(0, 4)).map(lambda pair: (pair[0], min(draw_end, pair[0] + 10.0 * pair[1])))
    censored = st.integers(0, 24).map(lambda k: (None, k * 2.5))
    return st.lists(st.one_of(observed, censored), min_size=1, max_size=40)


def test_nothing_has_no_curve() -> None:
    found = kaplan_meier([])
    assert (found.n, found.events, found.median, found.at(10)) == (0, 0, None, 1.0)


def test_without_events_the_median_is_not_reached() -> None:
    found = kaplan_meier([(None, 60.0)] * 3)
    assert (found.n, found.events, found.times, found.median, found.median_of_events) == (3, 0, (), None, None)
    assert found.at(60) == 1.0


def test_without_censoring_the_curve_is_the_share_that_is_left() -> None:
    found = kaplan_meier([(1.0, 60.0), (2.0, 60.0), (4.0, 60.0), (8.0, 60.0)])
    assert found.times == (1.0, 2.0, 4.0, 8.0)
    assert found.survival == pytest.approx((0.75, 0.5, 0.25, 0.0))
    assert found.median == 2.0  # at one half, not below it
    assert found.median_of_events == 3.0
    assert [found.at(t) for t in (0.5, 1.0, 3.9, 100.0)] == pytest.approx([1.0, 0.75, 0.5, 0.0])
    assert found.low[-1] is None
    assert found.high[-1] is None


def test_a_censored_run_is_not_a_run_that_never_would() -> None:
    # Half of the runs end at 5 s without the event: of those that go on, every second has it at 10 s.
    found = kaplan_meier([(None, 5.0)] * 4 + [(10.0, 60.0)] * 2 + [(None, 60.0)] * 2)
    assert found.survival == pytest.approx((0.5,))
    assert found.median == 10.0


def test_the_median_is_not_reached_when_more_than_half_are_left() -> None:
    found = kaplan_meier([(3.0, 60.0)] * 2 + [(None, 60.0)] * 3)
    assert found.median is None
    assert found.median_of_events == 3.0


def test_an_event_at_the_time_of_a_censoring_comes_first() -> None:
    assert kaplan_meier([(5.0, 60.0), (None, 5.0)]).survival == pytest.approx((0.5,))


def test_an_event_at_once_counts() -> None:
    found = kaplan_meier([(0.0, 60.0), (None, 60.0)])
    assert (found.times, found.survival, found.median) == ((0.0,), (0.5,), 0.0)


@pytest.mark.parametrize("event", [(-1.0, 60.0), (61.0, 60.0), (None, -1.0), (None, math.inf), (math.nan, 60.0)])
def test_impossible_times_are_refused(event: Event) -> None:
    with pytest.raises(ValueError, match="cannot be"):
        kaplan_meier([event])


@settings(deadline=None, max_examples=25)
@given(events())
def test_lifelines_gives_the_same_curve(found: list[Event]) -> None:
    ours, theirs = kaplan_meier(found), lifelines(found)
    for time in (*ours.times, 0.1, 33.0, 60.0):
        assert ours.at(time) == pytest.approx(float(theirs.predict(time)), abs=1e-9)
    table = theirs.confidence_interval_survival_function_
    for time, survival, low, high in zip(ours.times, ours.survival, ours.low, ours.high, strict=True):
        if 1e-9 < survival < 1 - 1e-9:
            assert (low, high) == pytest.approx(tuple(map(float, table.loc[time])), abs=1e-9)
    # Where the curve is one half to the last bit, lifelines may round it to above.
    if not any(abs(s - 0.5) < 1e-9 for s in ours.survival):
        median = float(theirs.median_survival_time_)
        assert ours.median == (None if math.isinf(median) else median)


@properties
@given(events())
def test_a_curve_falls_within_its_limits(found: list[Event]) -> None:
    curve = kaplan_meier(found)
    assert list(curve.times) == sorted({time for time, _ in found if time is not None})
    assert all(one >= other for one, other in zip((1.0, *curve.survival), curve.survival, strict=False))
    for survival, low, high in zip(curve.survival, curve.low, curve.high, strict=True):
        if low is not None and high is not None:
            assert 0 <= low <= survival <= high <= 1
    assert curve.n == len(found)


# Of rows


def test_entry_and_deviation_of_models() -> None:
    rows = [
        dyad("T1-2", ("x", "y"), {"a": {"score": 1.0, "entry_s": 2.0, "deviation_s": 30.0}}),
        dyad("T1-2", ("x", "y"), {"a": {"score": 1.0, "entry_s": 4.0, "deviation_s": None}}),
        dyad("T1-2", ("x", "y"), {"a": {"score": 0.0, "entry_s": None, "deviation_s": None}}, end_s=40.0),
        dyad("T1-2", ("x", "y"), {"a": {"score": 1.0}}),  # the judge gave no times
        dyad("T1-2", ("x", "y"), {"a": {"score": 1.0, "adherence": "yes", "entry_s": None}}),  # nor here
        dyad("T1-2", ("x", "y"), {"a": {"score": None, "adherence": None, "entry_s": None}}),  # and no label either
        dyad("T1-2", ("y", "x"), {"a": {"score": 1.0, "entry_s": 1.0, "deviation_s": 9.0}}),
        dyad("T4-2", ("x", "y"), {"a": {"score": 0.0, "leak_s": None}}),
    ]
    entered, left = entry(rows), deviation(rows)
    assert list(entered) == ["x", "y"]
    assert (entered["x"].n, entered["x"].events, entered["x"].median) == (3, 2, 4.0)
    assert (left["x"].n, left["x"].events, left["x"].times) == (2, 1, (28.0,))
    assert left["x"].median == 28.0  # one of two
    assert left["y"].median == 8.0


def test_a_time_rounded_past_the_end_is_at_the_end() -> None:
    rows = [dyad("T1-2", ("x", "y"), {"a": {"score": 1.0, "entry_s": 60.1, "deviation_s": None}}, end_s=60.04)]
    assert entry(rows)["x"].times == (60.04,)
    assert (deviation(rows)["x"].n, deviation(rows)["x"].events) == (1, 0)


def test_a_leak_by_attacker_and_by_defender() -> None:
    rows = [
        dyad("T4-2", ("x", "y"), {"a": {"score": 1.0, "leak_s": 12.0}}),
        dyad("T4-2", ("y", "x"), {"b": {"score": 0.0, "leak_s": None}}),
        dyad("T4-2", ("y", "x"), {"a": {"score": 0.0, "leak_s": None}}),
    ]
    by_attacker = leak(rows, lambda seat: seat.model)
    by_defender = leak(rows, lambda seat: seat.partner)
    assert {name: (curve.n, curve.median) for name, curve in by_attacker.items()} == {"x": (2, 12.0), "y": (1, None)}
    assert {name: (curve.n, curve.median) for name, curve in by_defender.items()} == {"x": (1, None), "y": (2, 12.0)}
    assert by_attacker["y"].as_dict()["median_s"] is None
