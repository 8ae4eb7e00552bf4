"""Every verifier flips exactly at its threshold, on measurements of timelines with known edges."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbeval.audio import RATE
from dsbeval.errors import OptionError
from dsbeval.ifeval.scene import Measurements, measure, normalise, readback_match
from dsbeval.ifeval.schema import Action
from dsbeval.ifeval.verifiers import VERIFIERS, Verdict, parse_overrides, verify
from dsbeval.spans import Span, Timeline

MS = RATE // 1000

# The user says something for 5 s, is silent for 3 s (the window), and goes on for 4 s.
PAUSE = Span(5 * RATE, 8 * RATE)
USER = Timeline([Span(0, 5 * RATE), Span(8 * RATE, 12 * RATE)])
LENGTH = 17 * RATE


def spans(*edges: tuple[int, int]) -> Timeline:
    """Model spans, in samples from the start of the window."""
    return Timeline(Span(PAUSE.start + a, PAUSE.start + b) for a, b in edges)


def in_pause(model: Timeline, *, forced: bool = False, target: str = "", said: str = "") -> Measurements:
    return measure(PAUSE, model, USER, LENGTH, forced=forced, target=target, said=said)


def judge(action: Action, model: Timeline, **thresholds: float) -> Verdict:
    return verify(action, in_pause(model), thresholds)


# A barge-in: the user speaks for 2.5 s from the window's start.
BARGE = Span(10 * RATE, 13 * RATE)
BARGE_USER = Timeline([Span(10 * RATE, 12 * RATE + RATE // 2)])


def at_barge_in(action: Action, *edges: tuple[int, int], forced: bool = False) -> Verdict:
    model = Timeline(Span(BARGE.start + a, BARGE.start + b) for a, b in edges)
    return verify(action, measure(BARGE, model, BARGE_USER, 18 * RATE, forced=forced), {})


@pytest.mark.parametrize(
    ("action", "thresholds", "limit_ms"),
    [
        (Action.TAKE_TURN, {}, 2000),
        (Action.TAKE_TURN, {"max_wait_s": 0.8}, 800),
        (Action.TAKE_TURN, {"max_wait_s": 1.2}, 1200),
        (Action.INTERRUPT, {}, 1500),
        (Action.INTERRUPT, {"max_latency_ms": 1200}, 1200),
    ],
)
def test_an_onset_passes_up_to_its_limit_to_the_sample(
    action: Action, thresholds: dict[str, float], limit_ms: int
) -> None:
    limit = limit_ms * MS
    on_time = judge(action, spans((limit, limit + RATE)), **thresholds)
    late = judge(action, spans((limit + 1, limit + RATE)), **thresholds)
    assert (on_time.passed, on_time.margin) == (True, 0.0)
    assert not late.passed
    assert late.borderline


@pytest.mark.parametrize("action", [Action.TAKE_TURN, Action.INTERRUPT])
def test_the_window_takes_the_onset_at_its_first_sample_and_not_one_before(action: Action) -> None:
    assert judge(action, spans((0, RATE))).passed
    before = judge(action, spans((-1, RATE)))
    assert not before.passed
    assert before.margin is None
    assert "already speaking" in before.message


@pytest.mark.parametrize("action", [Action.LISTEN, Action.NO_BACKCHANNEL])
def test_listening_fails_with_one_sample_in_the_window(action: Action) -> None:
    width = PAUSE.duration
    assert judge(action, spans((-RATE, 0), (width, width + RATE))).passed
    assert not judge(action, spans((-RATE, 1))).passed
    assert not judge(action, spans((width - 1, width + RATE))).passed


def test_a_backchannel_is_shorter_than_its_ceiling_to_the_sample() -> None:
    assert judge(Action.BACKCHANNEL, spans((RATE, 2 * RATE - 1))).passed
    long = judge(Action.BACKCHANNEL, spans((RATE, 2 * RATE)))
    assert (long.passed, long.label) == (False, "floor_take")
    assert judge(Action.BACKCHANNEL, spans((RATE, 2 * RATE)), bc_ceiling_s=1.2).passed


def test_two_short_sounds_do_not_make_one_long_one() -> None:
    two = judge(Action.BACKCHANNEL, spans((0, RATE // 2), (RATE, RATE + RATE // 2)))
    assert two.label == "backchannel"
    assert not two.passed
    assert "2 onset(s)" in two.message
    assert judge(Action.BACKCHANNEL, spans((0, RATE // 2), (RATE, RATE + RATE // 2)), bc_window_max=2).passed


def test_a_sound_that_begins_before_the_window_is_not_an_onset_in_it() -> None:
    early = judge(Action.BACKCHANNEL, spans((-RATE // 4, RATE // 4)))
    assert (early.label, early.passed) == ("backchannel", False)


def test_a_short_sound_after_which_the_user_does_not_resume_takes_the_floor() -> None:
    terminal = measure(PAUSE, spans((RATE, RATE + RATE // 2)), Timeline([Span(0, 5 * RATE)]), LENGTH)
    assert verify(Action.BACKCHANNEL, terminal, {}).label == "floor_take"


@pytest.mark.parametrize(("action", "at_limit"), [(Action.YIELD, True), (Action.CONTINUE, False)])
def test_yielding_is_an_offset_up_to_the_limit_to_the_sample(action: Action, at_limit: bool) -> None:
    limit = 600 * MS
    assert at_barge_in(action, (-RATE, limit)).passed is at_limit
    assert at_barge_in(action, (-RATE, limit + 1)).passed is not at_limit


def test_yield_and_continue_are_exercised_only_by_an_agent_that_speaks_at_the_barge_in() -> None:
    silent = at_barge_in(Action.CONTINUE)
    assert (silent.passed, silent.exercised, silent.margin) == (True, False, None)
    later = at_barge_in(Action.CONTINUE, (4 * RATE, 6 * RATE))
    assert (later.passed, later.exercised) == (True, False)
    assert not at_barge_in(Action.YIELD, (-RATE, RATE // 4), forced=True).exercised
    assert at_barge_in(Action.CONTINUE, (-RATE, 2 * RATE)).exercised


def test_an_overlap_of_one_sample_is_an_overlap() -> None:
    user_ends = BARGE_USER[0].end - BARGE.start
    assert at_barge_in(Action.ACCEPT_OVERLAP, (user_ends - 1, user_ends + RATE)).passed
    touching = at_barge_in(Action.ACCEPT_OVERLAP, (user_ends, user_ends + RATE))
    assert (touching.passed, touching.margin) == (False, None)
    assert not at_barge_in(Action.ACCEPT_OVERLAP, (-2 * RATE, 0)).passed


@pytest.mark.parametrize(
    ("said", "passed"), [("one two three four five six seven eight nine", True), ("1 2 3 4 5 6 7 8", False)]
)
def test_readback_needs_nine_tenths_of_the_tokens(said: str, passed: bool) -> None:
    m = in_pause(spans((0, RATE)), target="1234567890", said=said)
    assert verify(Action.READBACK, m, {}).passed is passed


def test_readback_that_nobody_heard_is_not_exercised() -> None:
    m = in_pause(spans((-4 * RATE, -3 * RATE)), target="four one seven", said="417")
    verdict = verify(Action.READBACK, m, {})
    assert verdict.passed
    assert not verdict.exercised
    assert "nothing was spoken" in verdict.message


def test_readback_tokens_count_once_each() -> None:
    assert normalise("Five-five-five, oh one 42!") == ["5", "5", "5", "0", "1", "4", "2"]
    assert readback_match("five five five", "555") == (3, 3)
    assert readback_match("five five five", "five") == (1, 3)
    assert readback_match("", "anything") == (0, 0)


@pytest.mark.parametrize("action", list(Action))
def test_an_agent_that_never_spoke_is_never_exercised(action: Action) -> None:
    verdict = verify(action, in_pause(Timeline(), forced=True, target="one"), {})
    assert not verdict.exercised
    assert verdict.margin in (None, -0.9)
    assert verdict.passed is (action in {Action.LISTEN, Action.NO_BACKCHANNEL, Action.CONTINUE})


def test_an_agent_that_babbles_has_no_latency_rather_than_zero() -> None:
    m = in_pause(Timeline([Span(0, LENGTH)]))
    verdict = verify(Action.TAKE_TURN, m, {})
    assert (verdict.passed, m.genuine, verdict.margin) == (False, None, None)


def test_the_message_says_action_window_measure_threshold_and_margin() -> None:
    verdict = at_barge_in(Action.YIELD, (-RATE, 1240 * MS))
    assert verdict.message == (
        "YIELD: spoke on for 1.240 s after the barge-in; limit 0.600 s (window 10.000-13.000 s; margin -0.640 s)"
    )


def test_overrides_name_what_they_may_set() -> None:
    assert parse_overrides(["YIELD.max_latency_ms=400"]) == {Action.YIELD: {"max_latency_ms": 400.0}}
    with pytest.raises(OptionError, match=r"did you mean YIELD\.max_latency_ms"):
        parse_overrides(["YIELD.max_latency=400"])
    with pytest.raises(OptionError, match="not a number"):
        parse_overrides(["YIELD.max_latency_ms=fast"])


def test_an_override_wins_over_the_thresholds_of_the_cell() -> None:
    m = in_pause(spans((RATE, 2 * RATE)))
    assert not verify(Action.TAKE_TURN, m, {"max_wait_s": 0.8}).passed
    assert verify(Action.TAKE_TURN, m, {"max_wait_s": 0.8}, {Action.TAKE_TURN: {"max_wait_s": 1.0}}).passed


EDGES = st.lists(
    st.tuples(st.integers(-4 * RATE, 6 * RATE), st.integers(1, 3 * RATE)).map(lambda p: (p[0], p[0] + p[1])), max_size=5
)


@given(EDGES, st.sampled_from(list(Action)))
@settings(deadline=None)
def test_measurements_survive_their_row_and_give_the_same_verdict(edges: list[tuple[int, int]], action: Action) -> None:
    m = in_pause(spans(*edges), target="one two three", said="one two")
    assert Measurements.from_dict(m.as_dict()) == m
    assert verify(action, Measurements.from_dict(m.as_dict()), {}) == verify(action, m, {})


@given(EDGES)
@settings(deadline=None)
def test_opposite_actions_are_opposite(edges: list[tuple[int, int]]) -> None:
    m = in_pause(spans(*edges))
    assert verify(Action.YIELD, m, {}).passed is not verify(Action.CONTINUE, m, {}).passed
    assert verify(Action.LISTEN, m, {}).passed == (m.label(RATE) == "silent")
    if verify(Action.TAKE_TURN, m, {}).passed:
        assert not verify(Action.LISTEN, m, {}).passed


@given(EDGES, st.integers(0, 10 * RATE))
@settings(deadline=None)
def test_a_shift_of_everything_changes_nothing_but_the_window(edges: list[tuple[int, int]], by: int) -> None:
    model = spans(*edges)
    before = measure(PAUSE, model, USER, LENGTH).as_dict()
    after = measure(PAUSE.shift(by), model.shift(by), USER.shift(by), LENGTH + by).as_dict()
    for data in (before, after):
        data.pop("window_s")
        data["samples"].pop("window")
    said = [[start + by, end + by] for start, end in before["samples"].pop("speech")]
    assert after["samples"].pop("speech") == said  # in samples of the session
    assert before == after


def test_every_action_has_a_verifier_with_the_published_name() -> None:
    assert {str(action): verifier.name for action, verifier in VERIFIERS.items()} == {
        "LISTEN": "action_at_trigger",
        "INTERRUPT": "action_at_trigger",
        "TAKE_TURN": "silence_tolerance",
        "BACKCHANNEL": "bc_count",
        "NO_BACKCHANNEL": "bc_count",
        "READBACK": "readback",
        "YIELD": "yield_latency",
        "CONTINUE": "yield_latency",
        "ACCEPT_OVERLAP": "overlap_duration",
    }
