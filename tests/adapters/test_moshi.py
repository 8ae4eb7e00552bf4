"""``moshi`` on tiny random weights in the released formats, through the code that loads and serves real ones."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adapters.moshi import Moshi, MoshiSession
from dsbeval.agent import Emission, Interaction
from dsbeval.conformance import CHECKS
from dsbeval.dyadic.bridge import run_dyad
from dsbeval.errors import AgentError
from dsbeval.ifeval.episode import record_case
from dsbeval.ifeval.pack import DEFAULT_PACK, load_pack
from dsbeval.ifeval.score import score_recording
from dsbeval.recording import read_recording, write_recording
from tests.adapters.frames import FRAME, Said, converse, noise, on_the_line, play

SHORTEST_CASE = "IFD-R4-C3-i4-L1"


@pytest.fixture(scope="module")
def moshi(tiny_moshi: Path, place: str) -> Iterator[Moshi]:
    agent = Moshi(str(tiny_moshi), device=place)
    yield agent
    agent.close()
    agent.close()


@pytest.fixture
def tokens(moshi: Moshi, monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """Return what the language model returns from now on: text, then the codebooks."""
    seen: list[list[int]] = []
    step = moshi.engine.step

    def noted(codes: Any) -> Any:
        out = step(codes)
        if out is not None:
            seen.append(out[0, :, 0].tolist())
        return out

    monkeypatch.setattr(moshi.engine, "step", noted)
    return seen


@pytest.mark.parametrize("check", CHECKS)
def test_it_keeps_the_contract(moshi: Moshi, check: str) -> None:
    CHECKS[check](moshi)


def test_it_declares_itself(moshi: Moshi) -> None:
    found = moshi.capabilities
    assert found.interaction is Interaction.FRAME_SYNCHRONOUS
    assert (found.input_rate, found.output_rate, found.frame, found.clock_delay) == (24_000, 24_000, FRAME, FRAME)
    assert (found.prompt, found.seed, found.text, found.clock) == (False, True, True, "logical")
    assert found.context_s == 50 * 0.08  # 3000 frames, 240 s, in the released models


def test_equal_seeds_give_equal_tokens_and_audio(moshi: Moshi, tokens: list[list[int]]) -> None:
    runs: list[tuple[Said, list[list[int]]]] = []
    for seed in (5, 6, 5):
        tokens.clear()
        runs.append((converse(moshi, noise(12), seed=seed), list(tokens)))
    one, other, again = runs
    assert len(one[1]) == 12
    assert one == again
    assert one[1] != other[1]
    assert one[0] != other[0]


def test_the_prompt_moves_nothing(moshi: Moshi) -> None:
    assert converse(moshi, noise(6), "You are a pirate.") == converse(moshi, noise(6))


def test_two_in_one_process_do_not_move_each_other(moshi: Moshi, tiny_moshi: Path, place: str) -> None:
    """The sides of a dyad are stepped at the same time, and the random numbers are the device's."""
    partner = Moshi(str(tiny_moshi), device=place)
    runs = [
        run_dyad(moshi, partner, ("", ""), (1, 2), opener="a", window_s=1.6, lead_in_s=0.4, concurrent=concurrent)
        for concurrent in (True, False)
    ]
    partner.close()
    assert runs[0].a.tobytes() == runs[1].a.tobytes()
    assert runs[0].b.tobytes() == runs[1].b.tobytes()
    assert runs[0].a.any()
    assert runs[0].b.any()


def test_drawing_elsewhere_moves_nothing(moshi: Moshi, place: str) -> None:
    import torch

    expected = converse(moshi, noise(6))
    torch.rand(3, device=place)
    before = torch.get_rng_state()
    assert converse(moshi, noise(6)) == expected
    assert torch.equal(torch.get_rng_state(), before)


# Frames and time


@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_frame_is_answered_by_a_frame(moshi: Moshi, count: int) -> None:
    said = converse(moshi, noise(count))
    assert [emission.audio.size for emission in said.emissions] == [FRAME] * count


@pytest.mark.parametrize("size", [0, 480, FRAME - 1, FRAME + 1])
def test_another_length_is_no_frame(moshi: Moshi, size: int) -> None:
    with (
        moshi.open("", 0) as session,
        pytest.raises(AgentError, match=f"heard {size} samples; a frame is 1920 at 24000"),
    ):
        session.step(np.zeros(size, np.float32))


def test_the_audio_of_a_frame_lands_at_the_declared_sample(moshi: Moshi) -> None:
    channel, emitted = on_the_line(moshi, ())
    assert not channel[:FRAME].any()
    for index, emission in enumerate(emitted):
        start = index * FRAME + moshi.capabilities.clock_delay
        np.testing.assert_array_equal(channel[start : start + FRAME], emission.audio)


@pytest.mark.parametrize("impulse", [0, 1, FRAME - 1, 2 * FRAME, 4 * FRAME - 1, 4 * FRAME + 700])
def test_an_impulse_is_heard_in_the_frame_that_contains_it(
    moshi: Moshi, monkeypatch: pytest.MonkeyPatch, impulse: int
) -> None:
    loudest: list[list[float]] = []
    codes: list[list[list[int]]] = []
    encode = moshi.engine.encode

    def noted(frame: Any) -> Any:
        out = encode(frame)
        loudest[-1].append(float(frame.max()))
        codes[-1].append(out.flatten().tolist())
        return out

    monkeypatch.setattr(moshi.engine, "encode", noted)
    channels = []
    for clicks in ((), (impulse,)):
        loudest.append([])
        codes.append([])
        channels.append(on_the_line(moshi, clicks)[0])
    frame = impulse // FRAME
    assert loudest[1].index(1000.0) == frame
    changed = [one != other for one, other in zip(*codes, strict=True)].index(True)
    # Of the last sample of a frame the codec's causal filters see next to nothing in it.
    assert changed in ((frame, frame + 1) if (impulse + 1) % FRAME == 0 else (frame,))
    before = (frame + 1) * FRAME  # the model's frame t can have heard the user's frame t, and is played after it
    assert channels[0][:before].tobytes() == channels[1][:before].tobytes()
    assert channels[0][before:].tobytes() != channels[1][before:].tobytes()


def test_the_codebooks_after_the_first_answer_the_frame_itself(
    moshi: Moshi, tokens: list[list[int]], monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """The alignment that the declared delay rests on; over many sounds, since random weights do not answer each one."""
    import torch

    rng = np.random.default_rng(4)
    codes = [torch.from_numpy(rng.integers(0, 64, (1, 2, 1))).to(place) for _ in range(8)]
    heard = list(codes)
    monkeypatch.setattr(moshi.engine, "encode", lambda frame: heard[round(float(frame[0]) * 8)])
    frames = [np.full(FRAME, index / 8, np.float32) for index in range(8)]

    def answers() -> list[list[int]]:
        tokens.clear()
        converse(moshi, frames, seed=8)
        return list(tokens)

    plain = answers()
    earliest: dict[str, list[int]] = {"text and first": [], "others": []}
    for _ in range(12):
        heard[4] = torch.from_numpy(rng.integers(0, 64, (1, 2, 1))).to(place)
        changed = [
            [a != b for a, b in zip(one, other, strict=True)] for one, other in zip(plain, answers(), strict=True)
        ]
        earliest["text and first"] += [t for t, row in enumerate(changed) if any(row[:2])][:1]
        earliest["others"] += [t for t, row in enumerate(changed) if any(row[2:])][:1]
    assert min(earliest["others"]) == 4
    assert min(earliest["text and first"]) == 5


def test_the_first_frame_is_heard(moshi: Moshi) -> None:
    loud = [noise(1, 9)[0] * np.float32(8), *noise(7)]
    assert converse(moshi, loud) != converse(moshi, noise(8))


def test_text_comes_with_the_frame_that_it_was_thought_in(moshi: Moshi, tokens: list[list[int]]) -> None:
    said = converse(moshi, noise(30))
    for emission, ids in zip(said.emissions, tokens, strict=True):
        if 4 <= ids[0] < moshi._tokenizer.vocab_size() and not moshi._tokenizer.is_byte(ids[0]):
            assert emission.text[-1].text == moshi._tokenizer.id_to_piece(ids[0]).replace("\u2581", " ")
            assert emission.text[-1].offset_s == 0.0
    assert said.text


# A session after another


@pytest.mark.parametrize("error", [RuntimeError("the device gave up"), KeyboardInterrupt()])
@pytest.mark.parametrize("hook", ["on_text_hook", "on_audio_hook"])
def test_a_session_after_one_that_broke_in_mid_step_is_fresh(
    moshi: Moshi, monkeypatch: pytest.MonkeyPatch, error: BaseException, hook: str
) -> None:
    expected = converse(moshi, noise(5))
    calls = iter(range(100))

    def fails(drawn: Any) -> None:
        if next(calls) == 4:
            raise error

    with moshi.open("", 1) as session:
        monkeypatch.setattr(moshi.engine.lm_gen, hook, fails)
        with pytest.raises(type(error)):
            play(session, noise(9))
        monkeypatch.setattr(moshi.engine.lm_gen, hook, None)
        assert next(calls) == 5
        with pytest.raises(AgentError, match="the session broke in an earlier step; open another one"):
            session.step(noise(1)[0])
    assert not moshi.engine.lm_gen.is_streaming
    assert converse(moshi, noise(5)) == expected


def test_what_the_codec_cannot_say_is_an_error_and_stays_in_its_session(
    moshi: Moshi, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = converse(moshi, noise(5))
    with moshi.open("", 1) as session, monkeypatch.context() as patch:
        decode = moshi.engine._mimi.decode
        patch.setattr(moshi.engine._mimi, "decode", lambda codes: decode(codes) * float("nan"))
        with pytest.raises(AgentError, match="NaN or infinite"):
            session.step(noise(1)[0])
    assert converse(moshi, noise(5)) == expected


def test_one_session_at_a_time(moshi: Moshi) -> None:
    with moshi.open("", 0) as session:
        with pytest.raises(AgentError, match="a session is still open, and a loaded model serves one at a time"):
            moshi.open("", 0)
        play(session, noise(1))
    with pytest.raises(AgentError, match="the session is closed; open another one"):
        session.step(noise(1)[0])
    session.close()
    with moshi.open("", 0) as other:
        session.close()  # takes nothing from its successor
        play(other, noise(1))


def test_of_two_threads_that_open_a_session_at_once_one_is_refused(
    moshi: Moshi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resetting takes a while, and until it is done the engine has no owner."""
    reset, together = moshi.engine.reset, threading.Barrier(2)

    def slow() -> None:
        time.sleep(0.2)
        reset()

    def opened(seed: int) -> object:
        together.wait()
        try:
            return moshi.open("", seed)
        except AgentError as error:
            return str(error)

    expected = converse(moshi, noise(3), seed=1)
    monkeypatch.setattr(moshi.engine, "reset", slow)
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(opened, (1, 1)))
    [session] = [one for one in found if isinstance(one, MoshiSession)]
    assert [one for one in found if one is not session] == [
        "agent moshi: a session is still open, and a loaded model serves one at a time; close it, or load the agent a second time"
    ]
    with session:
        assert play(session, noise(3)) == expected


def test_a_session_that_is_closed_while_it_computes_ends_its_step_first(
    moshi: Moshi, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended, encode = threading.Event(), threading.Event(), moshi.engine.encode

    def slow(frame: Any) -> Any:
        begun.set()
        time.sleep(0.2)
        ended.set()
        return encode(frame)

    with moshi.open("", 0) as session, ThreadPoolExecutor(1) as threads:
        monkeypatch.setattr(moshi.engine, "encode", slow)
        step = threads.submit(session.step, noise(1)[0])
        begun.wait()
        session.close()
        assert ended.is_set()
        assert isinstance(step.result(), Emission)
        with pytest.raises(AgentError, match="the session is closed; open another one"):
            session.step(noise(1)[0])


def test_a_closed_agent_says_so(tiny_moshi: Path, place: str) -> None:
    agent = Moshi(str(tiny_moshi), device=place)
    session = agent.open("", 0)
    agent.close()
    with pytest.raises(AgentError, match="the session is closed"):
        session.step(noise(1)[0])
    with pytest.raises(AgentError, match="the agent is closed; load it again"):
        agent.open("", 0)


# Whole cases


def test_a_whole_case_says_that_no_prompt_was_taken(moshi: Moshi, tmp_path: Path) -> None:
    pack = load_pack(DEFAULT_PACK)
    case = pack.cases[SHORTEST_CASE]
    write_recording(tmp_path, case.id, record_case(moshi, pack, case, seed=2))
    recording = read_recording(tmp_path, case.id)
    assert recording.meta["prompt"]
    assert recording.meta["prompt_taken"] is False
    assert recording.meta["capabilities"]["output_delay"] == FRAME
    assert recording.model.any()
    assert recording.text
    verdict, row = score_recording(recording)
    assert row["outcome"] == ("passed" if verdict.passed else "failed")
    assert row["caveats"] == ["prompt_not_taken", "past_context"]  # the tiny context is 4 s
