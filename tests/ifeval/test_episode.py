"""The turn manager and the recorder, end to end with scripted agents that speak real speech at known samples."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbeval.agent import (
    Agent,
    Brief,
    Capabilities,
    Emission,
    Interaction,
    PrivilegedAgent,
    Session,
    TextToken,
)
from dsbeval.audio import RATE, Signal
from dsbeval.errors import AgentError, RunError
from dsbeval.ifeval.episode import case_seed, record_case
from dsbeval.ifeval.pack import Case, load_pack
from dsbeval.ifeval.scene import measure_recording
from dsbeval.ifeval.score import score_recording
from dsbeval.recording import Channel, Recording, read_recording, write_recording
from dsbeval.speech.assemble import user_turns
from dsbeval.speech.bank import load_bank
from dsbeval.vad import OFFSET_ERROR_S, ONSET_ERROR_S

PACK = load_pack()
LISTENING = PACK.cases["IFD-R4-C1-i1-L2"]
BARGE_IN = PACK.cases["IFD-R1-C3-i1-L2"]
TAKING = PACK.cases["IFD-R1-C1-i1-L2"]

Script = Callable[[int, Signal], Emission]


@dataclass
class Scripted(Agent):
    """An agent whose step is a function of the frame's index and samples; it keeps what it was given."""

    script: Script = lambda index, heard: Emission()
    shape: Capabilities = field(default_factory=lambda: Capabilities(Interaction.FRAME_SYNCHRONOUS))
    answer: Emission = field(default_factory=Emission)
    name: str = "scripted"
    heard: list[Signal] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    seeds: list[int] = field(default_factory=list)
    finished: int = 0

    @property
    def capabilities(self) -> Capabilities:
        return self.shape

    def open(self, prompt: str, seed: int) -> Session:
        self.prompts.append(prompt)
        self.seeds.append(seed)
        self.heard.clear()
        return _ScriptedSession(self)


class _ScriptedSession(Session):
    def __init__(self, agent: Scripted) -> None:
        self.agent = agent

    def step(self, heard: Signal) -> Emission:
        self.agent.heard.append(heard)
        return self.agent.script(len(self.agent.heard) - 1, heard)

    def finish(self) -> Emission:
        self.agent.finished += 1
        return self.agent.answer


def at_frame(index: int, emission: Emission) -> Script:
    return lambda i, heard: emission if i == index else Emission()


def speech(name: str = "answer") -> Signal:
    return load_bank()[name].audio


def events(recording: Recording) -> dict[str, int]:
    return {event["event"]: event["sample"] for event in recording.events}


# Protocol timings


def test_a_frame_synchronous_agent_hears_three_seconds_between_the_turns_and_five_after() -> None:
    recording = record_case(Scripted(), PACK, LISTENING)
    first, second = user_turns(PACK, LISTENING.audio_key)
    marks = events(recording)
    assert marks["turn1_onset"] == 0
    assert marks["turn1_offset"] == first.audio.size
    assert marks["turn2_onset"] - marks["turn1_offset"] == 3 * RATE
    assert recording.length - marks["turn2_offset"] == 5 * RATE
    assert recording.meta["window"]["start"] == marks["turn2_onset"] + second.segments[1].span.start
    assert recording.meta["turn2_onset_s"] == round(marks["turn2_onset"] / RATE, 3)


def test_a_turn_based_agent_answers_where_its_input_ends_and_the_answer_plays_out() -> None:
    agent = Scripted(shape=Capabilities(Interaction.TURN_BASED), answer=Emission(speech()))
    recording = record_case(agent, PACK, LISTENING)
    marks = events(recording)
    end = marks["turn2_offset"]
    assert agent.finished == 1
    assert np.array_equal(recording.model[end : end + speech().size], speech())
    assert not recording.model[:end].any()
    assert recording.length == end + speech().size + RATE
    assert marks["turn2_onset"] - marks["turn1_offset"] == 3 * RATE // 2


def test_a_service_with_server_vad_is_waited_for_until_its_reply_has_ended() -> None:
    reply = Emission(speech("reply"))
    first = user_turns(PACK, LISTENING.audio_key)[0].audio.size
    agent = Scripted(at_frame(first // 480 + 50, reply), Capabilities(Interaction.SERVER_VAD))
    marks = events(record_case(agent, PACK, LISTENING))
    said_until = (first // 480 + 51) * 480 + speech("reply").size
    assert 0.6 * RATE <= marks["turn2_onset"] - said_until <= 0.9 * RATE
    silent = events(record_case(Scripted(shape=Capabilities(Interaction.SERVER_VAD)), PACK, LISTENING))
    assert silent["turn2_onset"] - silent["turn1_offset"] == pytest.approx(5 * RATE, abs=480)


# Barge-in


@pytest.mark.parametrize("after_s", [0.5, 2.0, 9.0])
def test_a_barge_in_comes_three_seconds_after_the_agents_onset(after_s: float) -> None:
    first = user_turns(PACK, BARGE_IN.audio_key)[0].audio.size
    frame = first // 480 + int(after_s * 50)
    recording = record_case(Scripted(at_frame(frame, Emission(speech()))), PACK, BARGE_IN)
    marks = events(recording)
    assert marks["turn2_onset"] - marks["agent_onset"] == 3 * RATE
    assert abs(marks["agent_onset"] - (frame + 1) * 480) <= ONSET_ERROR_S * RATE
    assert not recording.meta["barge_in_forced"]


def test_speech_under_way_when_turn_1_ends_counts_from_there() -> None:
    monologue = Emission(np.concatenate([speech("monologue")] * 2))
    recording = record_case(Scripted(at_frame(10, monologue)), PACK, BARGE_IN)
    marks = events(recording)
    assert marks["agent_onset"] == marks["turn1_offset"]
    assert marks["turn2_onset"] == marks["turn1_offset"] + 3 * RATE


def test_speech_that_ended_before_turn_1_did_is_not_what_is_come_in_on() -> None:
    first = user_turns(PACK, BARGE_IN.audio_key)[0].audio.size
    frame = (first - speech("reply").size) // 480 - 30
    recording = record_case(Scripted(at_frame(frame, Emission(speech("reply")))), PACK, BARGE_IN)
    assert recording.meta["barge_in_forced"]


def test_an_agent_that_never_speaks_is_barged_in_on_all_the_same_and_marked() -> None:
    recording = record_case(Scripted(), PACK, BARGE_IN)
    marks = events(recording)
    assert marks["turn2_onset"] - marks["turn1_offset"] == pytest.approx(12 * RATE, abs=480)
    assert "barge_in_timeout" in marks
    assert recording.meta["barge_in_forced"]
    verdict, row = score_recording(recording)
    assert (verdict.passed, verdict.exercised) == (False, False)
    assert row["measurements"]["barge_in_forced"]


# The user stream and the alignment


def test_the_users_stream_is_the_same_whatever_the_agent_does() -> None:
    quiet = record_case(Scripted(), PACK, LISTENING)
    loud = record_case(Scripted(lambda i, heard: Emission(heard * 0.5)), PACK, LISTENING)
    assert quiet.user.tobytes() == loud.user.tobytes()


@pytest.mark.parametrize(
    ("rate", "frame"), [(24_000, 480), (24_000, 1920), (16_000, 320), (22_050, 1764), (48_000, 960)]
)
def test_a_sample_is_heard_in_the_frame_that_contains_it_and_answered_where_the_capability_says(
    rate: int, frame: int
) -> None:
    """Echo a loud word of turn 2 and find it in the recording exactly one frame (on the session clock) later."""
    agent = Scripted(
        lambda i, heard: Emission(heard), Capabilities(Interaction.FRAME_SYNCHRONOUS, rate, rate, frame, text=False)
    )
    recording = record_case(agent, PACK, TAKING)
    delay = agent.shape.clock_frame
    user, model = recording.user[: -delay or None], recording.model[delay:]
    at = int(np.argmax(np.abs(user)))
    piece = slice(max(0, at - 2000), at + 2000)
    lags = range(-40, 41)
    scores = [float(user[piece] @ model[piece.start + lag : piece.stop + lag]) for lag in lags]
    assert lags[int(np.argmax(scores))] == 0
    assert np.corrcoef(user[piece], model[piece])[0, 1] > 0.98


def test_an_output_delay_that_is_declared_is_where_the_output_lands() -> None:
    click = np.ones(1, np.float32)
    for delay, expected in ((None, 480), (0, 0), (960, 960)):
        shape = Capabilities(Interaction.FRAME_SYNCHRONOUS, output_delay=delay)
        recording = record_case(Scripted(at_frame(100, Emission(click)), shape), PACK, LISTENING)
        assert np.flatnonzero(recording.model).tolist() == [100 * 480 + expected]


def test_a_burst_plays_out_and_a_flush_drops_what_was_not_played() -> None:
    def script(index: int, heard: Signal) -> Emission:
        if index == 10:
            return Emission(np.full(48_000, 0.5, np.float32), (TextToken("one "), TextToken("two ", 1.5)))
        if index == 49:
            return Emission(np.full(480, 0.25, np.float32), (TextToken("three"),), flush=True)
        return Emission()

    recording = record_case(Scripted(script), PACK, LISTENING)
    half = np.flatnonzero(recording.model == 0.5)
    assert (half[0], half[-1] + 1) == (11 * 480, 50 * 480)
    assert np.flatnonzero(recording.model == 0.25).tolist() == list(range(50 * 480, 51 * 480))
    # "two" was never heard, so it was never said.
    assert [(token.text, token.sample) for token in recording.text] == [("one ", 11 * 480), ("three", 50 * 480)]


def test_an_agent_that_hangs_up_is_not_stepped_again_and_the_user_goes_on() -> None:
    agent = Scripted(at_frame(20, Emission(done=True)))
    recording = record_case(agent, PACK, LISTENING)
    assert len(agent.heard) == 21
    assert agent.finished == 0
    assert events(recording)["agent_done"] == 21 * 480
    assert recording.length - events(recording)["turn2_offset"] == 5 * RATE


@given(
    st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 4000)), max_size=12),
    st.sampled_from([24_000, 16_000, 22_050]),
)
@settings(deadline=None, max_examples=60)
def test_what_is_placed_lies_in_order_without_overlap_and_is_never_early(
    pieces: list[tuple[int, int]], rate: int
) -> None:
    channel = Channel(rate)
    arrival = cursor = 0
    for wait, size in pieces:
        arrival += wait * 8
        start = channel.place(np.ones(size, np.float32), arrival)
        native = round(arrival * rate / RATE)
        assert channel.cursor - size == max(native, cursor)
        assert abs(start - max(arrival, cursor * RATE / rate)) <= 1
        cursor = channel.cursor
    assert int((channel.played(0, cursor + 10) != 0).sum()) == sum(size for _, size in pieces)


# What is measured


@pytest.mark.parametrize("offset_ms", [-400, 0, 250, 1900])
def test_an_onset_is_measured_within_the_stated_error(offset_ms: int) -> None:
    """Speech placed in the frame that holds a known sample of the window; real speech, real VAD."""
    silent = record_case(Scripted(), PACK, TAKING)
    window = silent.meta["window"]["start"]
    begins = window + offset_ms * RATE // 1000
    frame, rest = divmod(begins, 480)
    utterance = np.concatenate([np.zeros(rest, np.float32), speech("reply")])
    m = measure_recording(record_case(Scripted(at_frame(frame - 1, Emission(utterance))), PACK, TAKING))
    if offset_ms < 0:
        assert m.genuine is None
        assert m.speaking_at_start
    else:
        assert m.genuine is not None
        assert abs(m.genuine - offset_ms * RATE // 1000) <= ONSET_ERROR_S * RATE


def test_an_offset_is_measured_within_the_stated_error() -> None:
    silent = record_case(Scripted(), PACK, BARGE_IN)
    first = user_turns(PACK, BARGE_IN.audio_key)[0].audio.size
    start = first // 480 + 25
    talking = Emission(speech("monologue"))
    onset = events(record_case(Scripted(at_frame(start, talking)), PACK, BARGE_IN))["turn2_onset"]
    stop = onset // 480 + 20

    def script(index: int, heard: Signal) -> Emission:
        return talking if index == start else Emission(flush=index == stop)

    m = measure_recording(record_case(Scripted(script), PACK, BARGE_IN))
    assert m.first_offset is not None
    assert m.speaking_at_start
    assert abs(m.first_offset - ((stop + 1) * 480 - onset)) <= OFFSET_ERROR_S * RATE
    assert silent.meta["barge_in_forced"]


def test_text_said_before_the_window_is_not_read_back_in_it() -> None:
    case = PACK.cases["IFD-R3-C2-i1-L2"]
    target = PACK.readback_target(case)
    early = record_case(Scripted(at_frame(5, Emission(speech("ack"), (TextToken(target),)))), PACK, case)
    assert measure_recording(early).coverage == 0.0
    window = early.meta["window"]["start"]
    late = record_case(Scripted(at_frame(window // 480 + 5, Emission(speech(), (TextToken(target),)))), PACK, case)
    assert measure_recording(late).coverage == 1.0
    assert score_recording(late)[0].passed


# What an agent is told


def test_only_the_prompt_differs_between_the_levels() -> None:
    agent = Scripted()
    cases = [PACK.cases[f"IFD-R1-C2-i1-{level}"] for level in ("L0", "L1", "L2", "L3", "L4a", "L4b")]
    recordings = [record_case(agent, PACK, case) for case in cases]
    role = PACK.roles["R1"]
    contradiction = PACK.contradictions["R1", "C2"]
    assert agent.prompts[:4] == ["", role.directive, role.persona, f"{role.persona}\n\n{role.directive}"]
    assert agent.prompts[4] in [f"{role.persona}\n\n{variant}" for variant in contradiction.variants]
    assert agent.prompts[5] == f"{role.persona}\n\n{contradiction.l4b}"
    assert len(set(agent.seeds)) == 1
    assert len({recording.user.tobytes() for recording in recordings}) == 1


def test_seeds_differ_between_conversations_and_runs() -> None:
    seeds = {case_seed(seed, case) for seed in range(3) for case in (LISTENING, BARGE_IN, TAKING)}
    assert len(seeds) == 9


def test_no_agent_but_an_instrument_sees_the_case() -> None:
    class Curious(PrivilegedAgent):
        name = "curious"
        briefs: list[Brief] = []  # noqa: RUF012

        @property
        def capabilities(self) -> Capabilities:
            return Capabilities(Interaction.FRAME_SYNCHRONOUS, privileged=True)

        def open_case(self, brief: Brief, prompt: str, seed: int) -> object:  # type: ignore[override]
            self.briefs.append(brief)
            raise AgentError("seen enough")

    with pytest.raises(AgentError, match="seen enough"):
        record_case(Curious(), PACK, BARGE_IN)
    assert Curious.briefs[0].action == "YIELD"
    with pytest.raises(AgentError, match="must be told the case"):
        Curious().open("", 0)


# On disk


def test_a_recording_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    recording = record_case(Scripted(at_frame(30, Emission(speech("reply"), (TextToken("Grüß 🙂 "),)))), PACK, TAKING)
    write_recording(tmp_path, TAKING.id, recording)
    again = read_recording(tmp_path, TAKING.id)
    assert again.text == recording.text
    assert again.events == recording.events
    assert {**again.meta} == json.loads(json.dumps(recording.meta))
    assert np.abs(again.model - recording.model).max() <= 1 / 32768
    assert score_recording(again)[1] == score_recording(recording)[1]
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {f"{TAKING.id}.stereo.wav", f"{TAKING.id}.rec.json"}


def test_a_recording_that_is_cut_in_the_middle_is_not_taken_for_one(tmp_path: Path) -> None:
    write_recording(tmp_path, TAKING.id, record_case(Scripted(), PACK, TAKING))
    path = tmp_path / f"{TAKING.id}.rec.json"
    path.write_text(path.read_text()[:200])
    with pytest.raises(RunError, match="not valid JSON"):
        read_recording(tmp_path, TAKING.id)


# Acoustic conditions


@pytest.mark.parametrize("acoustics", ["telephone", "noisy", "reverberant"])
def test_an_acoustic_condition_changes_the_sound_and_not_the_timeline(acoustics: str) -> None:
    case: Case = TAKING
    clean = record_case(Scripted(), PACK, case)
    other = record_case(Scripted(), PACK, case, acoustics=acoustics)  # type: ignore[arg-type]
    again = record_case(Scripted(), PACK, case, seed=5, acoustics=acoustics)  # type: ignore[arg-type]
    assert (other.length, other.events) == (clean.length, clean.events)
    assert other.meta["window"] == clean.meta["window"]
    assert not np.array_equal(other.user, clean.user)
    assert np.array_equal(other.user, again.user)


def test_noise_does_not_give_the_edges_of_the_turns_away() -> None:
    recording = record_case(Scripted(), PACK, TAKING, acoustics="noisy")
    marks = events(recording)
    between = recording.user[marks["turn1_offset"] : marks["turn2_onset"]]
    after = recording.user[marks["turn2_offset"] :]
    assert 0.8 < np.sqrt((between**2).mean()) / np.sqrt((after**2).mean()) < 1.25
    clean = record_case(Scripted(), PACK, TAKING)
    assert not clean.user[marks["turn1_offset"] : marks["turn2_onset"]].any()
