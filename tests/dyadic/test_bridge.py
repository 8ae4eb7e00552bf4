"""The bridge, with scripted agents at its two ends: who hears what when, and what is left of it on disk."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbeval.agent import Agent, Capabilities, Emission, Interaction, Session, TextToken
from dsbeval.audio import RATE, Signal
from dsbeval.clock import WallClock
from dsbeval.dyadic.bridge import run_dyad
from dsbeval.dyadic.ear import TICK, lateness
from dsbeval.dyadic.participant import PrivilegedDyadAgent, SideError
from dsbeval.dyadic.record import DyadRecording, read_dyad, write_dyad
from dsbeval.errors import AgentError, DsbevalError, OptionError, RunError
from dsbeval.recording import TimedText, read_recording
from dsbeval.speech.bank import load_bank
from dsbeval.turns import Endpointed

Script = Callable[[int, Signal], Emission]
FRAME_80 = Capabilities(Interaction.FRAME_SYNCHRONOUS, frame=TICK)
SYNCHRONOUS = Interaction.FRAME_SYNCHRONOUS


def echo(_: int, heard: Signal) -> Emission:
    return Emission(heard)


def nothing(_: int, heard: Signal) -> Emission:
    return Emission()


@dataclass
class Scripted(Agent):
    """An agent whose step is a function of the frame's index and samples; it keeps what it was given."""

    script: Script = nothing
    shape: Capabilities = FRAME_80
    name: str = "scripted"
    heard: list[Signal] = field(default_factory=list)
    opened: list[tuple[str, int]] = field(default_factory=list)
    threads: set[int] = field(default_factory=set)
    closed: int = 0

    @property
    def capabilities(self) -> Capabilities:
        return self.shape

    def open(self, prompt: str, seed: int) -> Session:
        self.opened.append((prompt, seed))
        self.threads.add(threading.get_ident())
        return _ScriptedSession(self)


class _ScriptedSession(Session):
    def __init__(self, agent: Scripted) -> None:
        self.agent = agent
        self.index = -1

    def step(self, heard: Signal) -> Emission:
        self.index += 1
        self.agent.heard.append(heard)
        self.agent.threads.add(threading.get_ident())
        return self.agent.script(self.index, heard)

    def finish(self) -> Emission:
        raise AssertionError("nobody could hear the answer")

    def close(self) -> None:
        self.agent.closed += 1


def starting(first: Emission, then: Script = echo) -> Script:
    return lambda index, heard: first if index == 0 else then(index, heard)


def at(index: int, emission: Emission) -> Script:
    return lambda i, heard: emission if i == index else Emission()


def impulse(size: int = TICK) -> Emission:
    audio = np.zeros(size, np.float32)
    audio[100] = 0.5
    return Emission(audio)


def dyad(a: Agent, b: Agent, **options: Any) -> DyadRecording:
    options = {"window_s": 4.0, "lead_in_s": 0.0, **options}
    return run_dyad(a, b, ("prompt a", "prompt b"), (11, 22), **options)


def sounding(audio: Signal) -> list[int]:
    return [int(sample) for sample in np.flatnonzero(np.abs(audio) > 0.1)]


def events(recording: DyadRecording, name: str) -> list[dict[str, Any]]:
    return [entry for entry in recording.events if entry["event"] == name]


def speech(name: str = "reply") -> Signal:
    return load_bank()[name].audio


# One tick of delay


def test_an_impulse_goes_to_and_fro_between_two_echoes_with_exactly_a_tick_each_way() -> None:
    recording = dyad(Scripted(starting(impulse())), Scripted(echo), window_s=0.8)
    ticks = np.arange(10) * TICK + 100
    assert sounding(recording.a) == list(ticks[1::2])
    assert sounding(recording.b) == list(ticks[2::2])


@pytest.mark.parametrize("frame", [240, 480, 640, 960, 1920, 3840, 7680])
def test_a_frame_that_fits_the_tick_is_answered_a_tick_or_a_frame_later(frame: int) -> None:
    shape = replace(FRAME_80, frame=frame)
    delay = max(frame, TICK)
    recording = dyad(Scripted(starting(Emission(speech()), nothing)), Scripted(echo, shape))
    said, answered = recording.a, recording.b
    assert np.array_equal(answered[delay:], said[:-delay])
    assert not answered[:delay].any()


@given(st.integers(1, 400))
@settings(deadline=None, max_examples=25)
def test_a_frame_that_does_not_fit_the_tick_is_answered_without_holes_after_a_constant_delay(units: int) -> None:
    frame = units * 24
    delay = frame + TICK - int(np.gcd(frame, TICK))
    recording = dyad(Scripted(starting(Emission(speech()), nothing)), Scripted(echo, replace(FRAME_80, frame=frame)))
    assert np.array_equal(recording.b[delay:], recording.a[:-delay])
    assert recording.meta["sides"]["b"]["answered_after"] == delay


def test_a_declared_output_delay_is_kept_and_one_below_a_tick_is_a_tick() -> None:
    for declared, delay in [(0, TICK), (TICK, TICK), (2 * TICK + 7, 2 * TICK + 7)]:
        shape = replace(FRAME_80, output_delay=declared)
        recording = dyad(Scripted(starting(impulse(), nothing)), Scripted(echo, shape))
        assert sounding(recording.b) == [TICK + 100 + delay]


def test_a_burst_plays_out_in_real_time_and_the_partner_hears_it_tick_by_tick() -> None:
    listener = Scripted()
    recording = dyad(Scripted(at(0, Emission(speech()))), listener)
    size = speech().size
    assert np.allclose(recording.a[TICK : TICK + size], speech(), atol=1e-4)
    assert np.array_equal(np.concatenate(listener.heard)[TICK : TICK + size], speech())


def test_a_flush_drops_what_has_not_been_heard_and_nothing_else() -> None:
    script: Script = lambda i, _: Emission(speech()) if i == 0 else Emission(flush=True) if i == 9 else Emission()  # noqa: E731
    listener = Scripted()
    recording = dyad(Scripted(script), listener)
    assert recording.a[9 * TICK : 10 * TICK].any()
    assert not recording.a[10 * TICK :].any()
    assert np.allclose(np.concatenate(listener.heard), recording.a, atol=1e-4)


# Rates


@pytest.mark.parametrize("rate", [8_000, 16_000, 22_050, 44_100, 48_000])
def test_an_agent_of_another_rate_is_late_by_its_resampler_and_otherwise_aligned(rate: int) -> None:
    shape = Capabilities(SYNCHRONOUS, rate, rate, rate * 80 // 1000, text=False)
    recording = dyad(Scripted(starting(Emission(speech()), nothing)), Scripted(echo, shape))
    late = recording.meta["sides"]["b"]["heard_late"]
    assert late == lateness(RATE, rate) * RATE // rate
    assert 0 < late < TICK
    delay = TICK + late
    said, answered = recording.a[:-delay], recording.b[delay:]
    at = int(np.argmax(np.abs(said)))
    piece = slice(at - 4000, at + 4000)
    lags = range(-60, 61)
    scores = [float(said[piece] @ answered[piece.start + lag : piece.stop + lag]) for lag in lags]
    assert lags[int(np.argmax(scores))] == 0
    assert np.corrcoef(said[piece], answered[piece])[0, 1] > 0.95
    assert np.abs(recording.b[: delay + TICK - 50]).max() < 1e-3


@pytest.mark.parametrize(("source", "target"), [(24_000, 16_000), (16_000, 24_000), (22_050, 16_000), (24_000, 22_050)])
def test_the_resampler_is_never_later_than_declared(source: int, target: int) -> None:
    shapes = [Capabilities(SYNCHRONOUS, rate, rate, rate * 80 // 1000) for rate in (source, target)]
    a, b = Scripted(echo, shapes[0]), Scripted(echo, shapes[1])
    recording = dyad(a, b, window_s=48.0)
    assert [len(a.heard), len(b.heard)] == [600, 600]
    assert {frame.size for frame in b.heard} == {target * 80 // 1000}
    assert recording.meta["sides"]["a"]["heard_late"] * source % RATE == 0


def test_agents_of_different_rates_and_frames_meet() -> None:
    slow = Capabilities(SYNCHRONOUS, 16_000, 22_050, 320)
    fast = Capabilities(SYNCHRONOUS, 48_000, 24_000, 48 * 160)
    said = (speech()[:20_000] * 0.8).astype(np.float32)
    a = Scripted(at(0, Emission(said, (TextToken("hello "),), rate=22_050)), slow)
    b = Scripted(nothing, fast)
    recording = dyad(a, b)
    assert len(a.heard) == 200
    assert len(b.heard) == 25
    assert recording.length == 50 * TICK
    assert recording.text_a[0].sample == TICK
    heard = np.concatenate(b.heard)
    late = recording.meta["sides"]["b"]["heard_late"]
    assert np.flatnonzero(np.abs(heard) > 0.05)[0] / 2 == pytest.approx(
        np.flatnonzero(np.abs(recording.a) > 0.05)[0] + late, abs=12
    )


# Concurrency, seats, determinism


def counting(name: str, length: int = 7) -> Script:
    """Speak a stretch of speech whose place depends on everything that was heard."""
    memory: list[float] = []

    def script(index: int, heard: Signal) -> Emission:
        memory.append(float(np.abs(heard).sum()))
        start = int(sum(memory)) * 31 % 40_000
        audio = speech(name)[start : start + (index % length) * 700].copy()
        return Emission(audio, (TextToken(f"{name}{index} "),), flush=index % 13 == 12)

    return script


def test_concurrent_and_serial_stepping_give_equal_bytes(tmp_path: Path) -> None:
    files = []
    for index, concurrent in enumerate([True, False, True]):
        a = Scripted(counting("answer"), replace(FRAME_80, frame=480))
        b = Scripted(counting("monologue", 11), Capabilities(SYNCHRONOUS, 16_000, 24_000, 1280))
        folder = tmp_path / str(index)
        write_dyad(folder, "x", dyad(a, b, window_s=8.0, lead_in_s=1.5, concurrent=concurrent))
        files.append([path.read_bytes() for path in sorted(folder.iterdir())])
    assert files[0] == files[1] == files[2]
    assert len(files[0]) == 2


def test_the_steps_of_a_tick_run_at_the_same_time_and_each_agent_stays_in_one_thread() -> None:
    meet = threading.Barrier(2, timeout=20)

    def together(_: int, heard: Signal) -> Emission:
        meet.wait()  # breaks, and with it the conversation, unless the other side is being stepped too
        return Emission()

    a, b = Scripted(together), Scripted(together)
    dyad(a, b, window_s=0.8)
    assert len(a.threads) == len(b.threads) == 1
    assert a.threads != b.threads
    assert threading.get_ident() not in a.threads | b.threads


def test_one_object_on_both_sides_is_never_stepped_from_two_threads() -> None:
    agent = Scripted(echo)
    recording = dyad(agent, agent)
    assert agent.threads == {threading.get_ident()}
    assert agent.opened == [("prompt a", 11), ("prompt b", 22)]
    assert len(agent.heard) == 100
    assert agent.closed == 2
    assert recording.length == 50 * TICK


@pytest.mark.parametrize("opener", ["a", "b"])
def test_swapping_the_seats_of_two_deterministic_agents_swaps_the_channels(opener: Any) -> None:
    def left() -> Scripted:
        return Scripted(counting("answer"), replace(FRAME_80, frame=640), name="left")

    def right() -> Scripted:
        return Scripted(counting("monologue", 5), Capabilities(SYNCHRONOUS, 16_000, 16_000, 1280), name="right")

    one = dyad(left(), right(), opener=opener, lead_in_s=1.5, window_s=8.0)
    two = dyad(right(), left(), opener="b" if opener == "a" else "a", lead_in_s=1.5, window_s=8.0)
    assert np.array_equal(one.a, two.b)
    assert np.array_equal(one.b, two.a)
    assert (one.text_a, one.text_b) == (two.text_b, two.text_a)
    assert one.a.any()
    assert one.b.any()
    assert not np.array_equal(one.a, one.b)


def test_sessions_open_one_after_the_other_before_the_clock_starts() -> None:
    order: list[str] = []

    class Noting(Scripted):
        def open(self, prompt: str, seed: int) -> Session:
            order.append(f"open {self.name}")
            time.sleep(0.02)
            order.append(f"opened {self.name}")
            return super().open(prompt, seed)

    def note(name: str) -> Script:
        def script(index: int, heard: Signal) -> Emission:
            if index == 0:
                order.append(f"step {name}")
            return Emission()

        return script

    dyad(Noting(note("a"), name="a"), Noting(note("b"), name="b"), opener="b")
    assert order[:4] == ["open a", "opened a", "open b", "opened b"]
    assert sorted(order[4:]) == ["step a", "step b"]


# Lead-in, window, end


def saying(_: int, heard: Signal) -> Emission:
    return Emission(np.full(heard.size, 0.2, np.float32), (TextToken("word "),))


@pytest.mark.parametrize("opener", ["a", "b"])
def test_in_the_lead_in_the_partner_hears_but_is_not_heard(opener: Any) -> None:
    agents = {"a": Scripted(saying), "b": Scripted(saying)}
    partner: Any = "b" if opener == "a" else "a"
    recording = dyad(agents["a"], agents["b"], opener=opener, lead_in_s=1.5)
    assert recording.audio(opener)[TICK:].all()
    # 1.5 s is 18.75 ticks: the first emission that is not dropped begins at tick 19.
    assert not recording.audio(partner)[: 19 * TICK].any()
    assert recording.audio(partner)[19 * TICK :].all()
    assert recording.text(partner)[0].sample == 19 * TICK
    assert len(recording.text(opener)) == 49
    assert all(frame.all() for frame in agents[partner].heard[1:])
    assert not np.concatenate(agents[opener].heard)[: 19 * TICK].any()
    assert events(recording, "muted") == [
        {"event": "muted", "sample": TICK, "t": 0.08, "side": partner, "emissions": 18, "seconds": 1.44}
    ]
    assert [entry["sample"] for entry in events(recording, "lead_in_end")] == [36_000]


def test_a_burst_that_begins_in_the_lead_in_is_dropped_whole() -> None:
    recording = dyad(Scripted(), Scripted(at(17, Emission(speech(), (TextToken("hi"),)))), lead_in_s=1.5)
    assert not recording.b.any()
    assert not recording.text_b
    later = dyad(Scripted(), Scripted(at(18, Emission(speech(), (TextToken("hi"),)))), lead_in_s=1.5)
    assert later.b.any()
    assert [token.sample for token in later.text_b] == [19 * TICK]


def test_words_that_are_placed_back_into_the_lead_in_are_dropped_like_their_audio() -> None:
    words = (TextToken("muted", -0.5), TextToken("heard", 0.1))
    recording = dyad(Scripted(), Scripted(at(18, Emission(speech(), words))), lead_in_s=1.5)
    assert [token.text for token in recording.text_b] == ["heard"]
    opening = dyad(Scripted(at(18, Emission(speech(), words))), Scripted(), lead_in_s=1.5)
    assert [token.text for token in opening.text_a] == ["muted", "heard"]


@pytest.mark.parametrize(("window_s", "ticks"), [(30.0, 375), (60.0, 750), (120.0, 1500), (0.1, 2)])
def test_the_window_is_kept_to_the_tick(window_s: float, ticks: int) -> None:
    a = Scripted()
    recording = dyad(a, Scripted(), window_s=window_s)
    assert len(a.heard) == ticks
    assert recording.length == ticks * TICK
    assert a.closed == 1


def test_text_after_the_end_was_not_heard() -> None:
    tokens = tuple(TextToken(word, at_s) for word, at_s in [("in ", 0.0), ("time ", 3.8), ("late ", 3.95)])
    recording = dyad(Scripted(at(0, Emission(speech(), tokens))), Scripted())
    assert [token.text for token in recording.text_a] == ["in ", "time "]


def cut_off_with(told: Callable[[int], Emission], **agent: Any) -> Scripted:
    """An agent whose sessions return something when they are cut off, told how many steps they had."""

    class CutOff(Scripted):
        def open(self, prompt: str, seed: int) -> Session:
            super().open(prompt, seed)

            class Told(_ScriptedSession):
                def facts(self) -> dict[str, Any]:
                    return {"steps": self.index + 1}

                def cut_off(self) -> Emission:
                    self.agent.threads.add(threading.get_ident())
                    return told(self.index + 1)

            return Told(self)

    return CutOff(**agent)


def test_words_that_are_known_only_at_the_end_are_kept_where_they_were_heard() -> None:
    words = (TextToken("muted", -3.5), TextToken("late", -0.5), TextToken("unheard", 0.5))
    recording = dyad(Scripted(), cut_off_with(lambda _: Emission(impulse().audio, words)), lead_in_s=1.5)
    assert [(token.text, token.sample) for token in recording.text_b] == [("late", recording.length - RATE // 2)]
    assert not recording.b.any()
    # They count from where more audio would be heard: the answer to the last frame is still to come.
    spoken = dyad(cut_off_with(lambda _: Emission(text=words), script=saying), Scripted())
    late = [token for token in spoken.text_a if token.text != "word "]
    assert late[-1] == TimedText(spoken.length + TICK - RATE // 2, "late")


def test_one_who_has_hung_up_is_not_cut_off_and_its_partner_is() -> None:
    hung_up = cut_off_with(lambda _: Emission(text=(TextToken("more", -0.2),)), script=at(3, Emission(done=True)))
    partner = cut_off_with(lambda steps: Emission(text=(TextToken(f"{steps} steps", -0.08),)))
    recording = dyad(hung_up, partner)
    assert (recording.text_a, [token.text for token in recording.text_b]) == ((), ["4 steps"])


def test_a_session_that_tells_of_a_fault_when_it_is_cut_off_is_an_error_of_its_side() -> None:
    def not_understood(_: int) -> Emission:
        raise AgentError("agent scripted: sent only events that are not known here")

    a, b = Scripted(), cut_off_with(not_understood)
    with pytest.raises(SideError, match=r"^side b: agent scripted: sent only events that are not known here$"):
        dyad(a, b)
    assert (a.closed, b.closed) == (1, 1)


def test_done_ends_the_conversation_when_the_last_words_have_been_heard() -> None:
    partner = Scripted(saying)
    farewell = at(5, Emission(np.full(3 * TICK + 10, 0.3, np.float32), (TextToken("bye"),), done=True))
    agent = Scripted(farewell)
    recording = dyad(agent, partner)
    assert len(agent.heard) == 6
    assert len(partner.heard) == 10
    assert recording.length == 10 * TICK
    assert np.flatnonzero(recording.a)[-1] == 9 * TICK + 9
    assert [(entry["side"], entry["sample"]) for entry in events(recording, "agent_done")] == [("a", 6 * TICK)]


def test_done_without_words_ends_at_once_and_a_long_farewell_ends_with_the_window() -> None:
    assert dyad(Scripted(), Scripted(at(3, Emission(done=True)))).length == 4 * TICK
    long = Emission(np.full(20 * RATE, 0.1, np.float32), done=True)
    assert dyad(Scripted(at(3, long)), Scripted()).length == 50 * TICK
    muted = dyad(Scripted(), Scripted(at(0, Emission(speech(), done=True))), lead_in_s=1.5)
    assert muted.length == TICK
    assert not muted.b.any()


# Faults


@pytest.mark.parametrize("concurrent", [True, False])
@pytest.mark.parametrize("side", ["a", "b"])
def test_an_exception_ends_the_run_as_an_error_that_names_the_side(side: str, concurrent: bool) -> None:
    def broken(index: int, heard: Signal) -> Emission:
        if index == 7:
            raise RuntimeError("out of\nmemory")
        return Emission()

    agents = {"a": Scripted(name="one"), "b": Scripted(name="two")}
    agents[side].script = broken
    threads = threading.active_count()  # others' tests may have left some
    with pytest.raises(SideError) as caught:
        dyad(agents["a"], agents["b"], concurrent=concurrent)
    name = agents[side].name
    assert caught.value.side == side
    assert caught.value.agent == name
    assert str(caught.value).startswith(f"side {side}: agent {name}: RuntimeError: out of memory at test_bridge.py:")
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, DsbevalError)
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert [agents["a"].closed, agents["b"].closed] == [1, 1]
    assert threading.active_count() == threads


def test_where_both_break_in_one_tick_side_a_is_named() -> None:
    def broken(index: int, heard: Signal) -> Emission:
        raise ValueError("no")

    for _ in range(5):
        with pytest.raises(SideError) as caught:
            dyad(Scripted(broken), Scripted(broken))
        assert caught.value.side == "a"


def test_a_broken_contract_a_broken_open_and_a_broken_close_name_the_side() -> None:
    stereo = at(2, Emission(np.zeros((10, 2), np.float32)))
    with pytest.raises(SideError, match=r"^side b: agent scripted: audio has shape \(10, 2\)"):
        dyad(Scripted(), Scripted(stereo))

    class NoSession(Scripted):
        def open(self, prompt: str, seed: int) -> Session:
            return None  # type: ignore[return-value]

    class Unopened(Scripted):
        def open(self, prompt: str, seed: int) -> Session:
            raise OSError("no weights")

    first = Scripted()
    with pytest.raises(SideError, match=r"^side b: agent scripted: OSError: no weights"):
        dyad(first, Unopened())
    assert first.closed == 1
    with pytest.raises(SideError, match=r"^side a: agent scripted: open returned a NoneType"):
        dyad(NoSession(), Scripted())

    class Clinging(Scripted):
        def open(self, prompt: str, seed: int) -> Session:
            class Stuck(_ScriptedSession):
                def close(self) -> None:
                    raise OSError("socket")

            return Stuck(self)

    with pytest.raises(SideError, match=r"^side a: agent scripted: OSError: socket"):
        dyad(Clinging(), Scripted())


def test_agents_that_cannot_take_part_are_refused_by_name() -> None:
    turn_based = Scripted(shape=Capabilities(Interaction.TURN_BASED), name="answers_once")
    with pytest.raises(OptionError, match=r"answers_once is turn_based.*turns=endpointed"):
        dyad(Scripted(), turn_based)
    wrapped = Endpointed(turn_based)
    assert dyad(Scripted(), wrapped, window_s=0.8).meta["sides"]["b"]["agent"] == "answers_once"

    from adapters.controls import Oracle

    oracle = Oracle()
    oracle.name = "oracle"
    with pytest.raises(OptionError, match="oracle is a calibration agent of cases/ifeval"):
        dyad(oracle, Scripted())


def test_a_calibration_agent_that_is_not_told_its_scenario_refuses() -> None:
    class Told(PrivilegedDyadAgent):
        name = "told"

        @property
        def capabilities(self) -> Capabilities:
            return FRAME_80

        def open_dyad(self, brief: Any, side: Any, prompt: str, seed: int) -> Session:
            raise AssertionError

    with pytest.raises(SideError, match="side a: told is a calibration agent and must be told the scenario"):
        dyad(Told(), Scripted())


# Chunked agents


def chunked(delay_chunks: int = 1, rate: int = 16_000) -> Capabilities:
    return Capabilities(Interaction.CHUNKED, rate, RATE, rate, output_delay=delay_chunks * rate, seed=False)


def test_a_chunk_gathers_a_second_and_is_answered_when_it_ends() -> None:
    agent = Scripted(lambda i, _: Emission(speech()[:RATE] if i == 1 else Emission().audio), chunked())
    recording = dyad(Scripted(saying), agent)
    assert [frame.size for frame in agent.heard] == [16_000] * 4
    sound = np.flatnonzero(recording.b)
    # A chunk of 1 s is 12.5 ticks: whole at 2 s, heard from the start of the tick that its delay allows.
    delay = RATE + TICK - int(np.gcd(RATE, TICK))
    assert recording.meta["sides"]["b"]["answered_after"] == delay
    assert sound[0] >= RATE + delay
    assert np.allclose(
        recording.b[RATE + delay :][:RATE], speech()[: recording.length - RATE - delay][:RATE], atol=1e-4
    )


def test_a_chunk_is_worked_on_while_the_ticks_go_on_and_more_than_two_are_waited_for() -> None:
    """With four chunks of output delay nothing but the backpressure makes the bridge wait."""
    release = threading.Event()
    ticks: list[int] = []
    reached: dict[int, int] = {}
    lock = threading.Lock()

    def slow(index: int, heard: Signal) -> Emission:
        assert release.wait(20)
        with lock:
            reached[index] = len(ticks)
        return Emission(np.full(100, 0.1, np.float32))

    def tick(index: int, heard: Signal) -> Emission:
        ticks.append(index)
        # Two chunks under way are let be, so the third is whole (3 s, tick 38) before the first must be waited for.
        if index == 37:
            threading.Timer(0.2, release.set).start()
        return Emission()

    recording = dyad(Scripted(tick), Scripted(slow, chunked(4)), window_s=8.0)
    assert reached[0] == 38
    assert len(ticks) == 100
    assert np.flatnonzero(recording.b)[0] == 4 * RATE


def test_how_long_a_chunk_takes_leaves_no_trace_on_the_logical_clock(tmp_path: Path) -> None:
    files = []
    for index, (pause, concurrent) in enumerate([(0.0, True), (0.03, True), (0.0, False)]):

        def script(i: int, heard: Signal, pause: float = pause) -> Emission:
            time.sleep(pause)
            return Emission(np.full(RATE, float(np.abs(heard).mean()) + 0.01 * i, np.float32), (TextToken(f"{i} "),))

        recording = dyad(
            Scripted(counting("answer")), Scripted(script, chunked(3)), window_s=8.0, concurrent=concurrent
        )
        folder = tmp_path / str(index)
        write_dyad(folder, "x", recording)
        files.append([path.read_bytes() for path in sorted(folder.iterdir())])
    assert files[0] == files[1] == files[2]


def test_a_chunked_agent_that_is_done_is_not_stepped_again_though_chunks_are_under_way() -> None:
    agent = Scripted(lambda i, _: Emission(done=i == 0), chunked(4))
    recording = dyad(Scripted(), agent, window_s=8.0)
    assert len(agent.heard) == 1
    assert events(recording, "agent_done")[0]["sample"] == 4 * RATE
    assert recording.length == 50 * TICK


@pytest.mark.parametrize("pause", [0.0, 0.1])
def test_what_a_chunked_agent_tells_of_itself_does_not_hang_on_how_long_its_last_chunk_takes(pause: float) -> None:
    def slow(index: int, heard: Signal) -> Emission:
        time.sleep(pause if index == 3 else 0)
        return Emission()

    told = cut_off_with(lambda steps: Emission(text=(TextToken(f"{steps}", -0.1),)), script=slow, shape=chunked(4))
    recording = dyad(Scripted(), told)
    assert recording.meta["sides"]["b"]["session"] == {"steps": 4}
    assert [token.text for token in recording.text_b] == ["4"]
    assert len(told.threads) == 1


def test_a_chunk_that_breaks_after_the_last_answer_was_heard_is_an_error_all_the_same() -> None:
    def broken(index: int, heard: Signal) -> Emission:
        if index == 3:
            time.sleep(0.05)
            raise RuntimeError("out of memory")
        return Emission()

    with pytest.raises(SideError, match=r"^side b: agent scripted: RuntimeError: out of memory"):
        dyad(Scripted(), Scripted(broken, chunked(4)))


def test_measured_latency_charges_each_side_for_itself() -> None:
    def slow(index: int, heard: Signal) -> Emission:
        time.sleep(0.02 if index == 2 else 0)
        return impulse() if index == 2 else Emission()

    recording = dyad(Scripted(slow), Scripted(at(2, impulse())), latency="measured")
    charged, free = (np.flatnonzero(channel)[0] - 3 * TICK - 100 for channel in (recording.a, recording.b))
    # Within a tick nothing was computed twice: 20 ms after the frame's end, and what it cost beyond the sleep.
    assert 480 <= charged < 2 * TICK
    assert charged % 24 == 0
    assert free < 480
    assert recording.meta["realtime"]["a"]["latency"] == "measured"
    assert set(recording.meta["realtime"]) == {"a", "b"}


# The wall clock


class FakeWall:
    """The wall at the edge of the world: time passes only by being slept through or by ``spend``."""

    def __init__(self) -> None:
        self.now = 100.0
        self.lock = threading.Lock()

    def time(self) -> float:
        with self.lock:
            return self.now

    def sleep(self, seconds: float) -> None:
        with self.lock:
            self.now += seconds


def test_a_wall_clock_agent_puts_the_whole_bridge_on_the_wall_clock_and_the_recording_says_so() -> None:
    wall = FakeWall()
    live = replace(FRAME_80, clock="wall")
    steps: list[float] = []

    def service(index: int, heard: Signal) -> Emission:
        steps.append(wall.time() - 100.0)
        # What is heard from the sixth step on was stamped 30 ms before that frame had ended.
        return Emission(np.full(TICK, 0.2, np.float32), arrived=wall.time() - 0.03) if index == 5 else Emission()

    listener = Scripted()
    recording = dyad(Scripted(service, live), listener, wall=WallClock(wall.time, wall.sleep))
    assert recording.meta["clock"] == "wall"
    assert recording.meta["realtime"]["bridge"]["latency"] == "wall"
    assert recording.meta["realtime"]["bridge"]["frames"] == 50
    assert steps == pytest.approx([0.08 * (tick + 1) for tick in range(50)])
    # What came while a tick was being heard is heard in the next one, and recorded where it was heard.
    assert np.flatnonzero(recording.a)[0] == 6 * TICK
    assert np.array_equal(np.concatenate(listener.heard) != 0, recording.a != 0)


def test_two_logical_agents_are_not_paced() -> None:
    begun = time.perf_counter()
    recording = dyad(Scripted(), Scripted(), window_s=60.0)
    assert recording.meta["clock"] == "logical"
    assert "realtime" not in recording.meta
    assert time.perf_counter() - begun < 30


def test_in_real_time_a_chunked_agent_is_waited_for_and_it_is_noted() -> None:
    live = Scripted(shape=replace(FRAME_80, clock="wall"))
    wall = FakeWall()
    release = threading.Event()

    def slow(index: int, heard: Signal) -> Emission:
        assert release.wait(20)
        return Emission()

    def tick(index: int, heard: Signal) -> Emission:
        if index == 36:
            threading.Timer(0.1, release.set).start()
        return Emission()

    live.script = tick
    recording = dyad(live, Scripted(slow, chunked()), window_s=8.0, wall=WallClock(wall.time, wall.sleep))
    waits = events(recording, "backpressure")
    assert (waits[0]["side"], waits[0]["sample"]) == ("b", 38 * TICK)
    assert waits[0]["waited_s"] > 0


# On disk


def test_a_recording_on_disk_reads_back_as_it_was(tmp_path: Path) -> None:
    recording = dyad(
        Scripted(counting("answer"), name="one"),
        Scripted(counting("reply"), name="two"),
        opener="b",
        lead_in_s=1.5,
        meta={"test_case_id": "DYA-T2-01-ab-oB-r1", "seats": "ab"},
    )
    write_dyad(tmp_path, "x", recording, "flac")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.rec.json", "x.stereo.flac"]
    again = read_dyad(tmp_path, "x")
    assert (again.text_a, again.text_b, again.events) == (recording.text_a, recording.text_b, recording.events)
    assert again.meta == recording.meta
    assert np.abs(again.a - recording.a).max() <= 2**-15
    assert np.abs(again.b - recording.b).max() <= 2**-15
    data = json.loads((tmp_path / "x.rec.json").read_text())
    assert data["kind"] == "dyad"
    assert data["prompts"] == {"a": "prompt a", "b": "prompt b"}
    assert data["seeds"] == {"a": 11, "b": 22}
    assert (data["opener"], data["seats"], data["window_s"], data["clock"]) == ("b", "ab", 4.0, "logical")
    assert data["tokens"]["b"][0]["t"] == round(data["tokens"]["b"][0]["sample"] / RATE, 3)
    assert data["transcripts"]["a"].startswith("answer")
    assert data["sides"]["a"]["agent"] == "one"


def test_a_dyad_and_an_ifeval_recording_are_not_taken_for_each_other(tmp_path: Path) -> None:
    write_dyad(tmp_path, "x", dyad(Scripted(), Scripted(), window_s=0.8))
    with pytest.raises(RunError, match="is a recording of dyad, not of a user and an agent"):
        read_recording(tmp_path, "x")
    data = json.loads((tmp_path / "x.rec.json").read_text())
    del data["kind"]
    (tmp_path / "x.rec.json").write_text(json.dumps(data))
    with pytest.raises(RunError, match="is a recording of a user and an agent, not of dyad"):
        read_dyad(tmp_path, "x")
    with pytest.raises(RunError, match="no such recording"):
        read_dyad(tmp_path, "y")
