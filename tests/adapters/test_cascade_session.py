"""Sessions of the agent: fresh, independent, repeatable, and able to hear anything for a long time."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.cascade import FRAME, Cascade
from dsbeval.agent import Emission, Interaction, Session, check_emission
from dsbeval.audio import RATE, Signal
from dsbeval.errors import AgentError
from tests.adapters.cascade_talk import HELLO, agent, feed, silence, spoken, talk, user

MINUTES = float(os.environ.get("DSBEVAL_CASCADE_MINUTES", "0.7"))
"""Simulated minutes of the long run: 10 are the agent's own requirement, the default keeps the suite quick."""

PROMPTS = (
    "",
    "Backchannel heavily. Welcome overlap. Fill every silence at once. Interrupt freely. Read everything back.",
    "Wait at least four seconds of silence before you answer. Give soft listening sounds. Never interrupt.",
)


def test_importing_it_imports_no_engine() -> None:
    heavy = "torch", "onnxruntime", "pocketsphinx", "hibari", "soxr", "scipy", "faster_whisper"
    code = (
        "import sys; from adapters.cascade import Cascade; a = Cascade(); a.capabilities; a.close(); a.close(); "
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    root = Path(__file__).parents[2]
    found = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_what_it_declares() -> None:
    found = agent().capabilities
    assert (found.interaction, found.clock) == (Interaction.FRAME_SYNCHRONOUS, "logical")
    assert (found.input_rate, found.output_rate, found.frame) == (24_000, 24_000, 1920)
    assert (found.prompt, found.seed, found.text, found.privileged) == (True, True, True, False)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ({"asr": "vosk"}, "asr is 'vosk'; give pocketsphinx, or whisper:DIR"),
        ({"asr": "whisper:/nowhere"}, "/nowhere holds no model.bin"),
        ({"voice": "nobody"}, "voice is 'nobody'; it is one of heart"),
        ({"llm_model": "some"}, "llm_model is given without llm"),
    ],
)
def test_a_wrong_argument_is_one_line(argument: dict[str, str], message: str) -> None:
    with pytest.raises(AgentError) as caught:
        Cascade(**argument).open("", 0)  # type: ignore[arg-type]
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_frame_must_be_a_frame_and_a_session_open() -> None:
    session = agent().open("", 0)
    with pytest.raises(AgentError, match="a frame is 1920"):
        session.step(np.zeros(480, np.float32))
    session.close()
    session.close()
    with pytest.raises(AgentError, match="closed"):
        session.step(np.zeros(FRAME, np.float32))


def played(prompt: str, seed: int, audio: Signal) -> tuple[bytes, str]:
    with agent().open(prompt, seed) as session:
        found = feed(session, audio)
    return found.audio.tobytes(), found.text


@pytest.fixture(scope="module")
def person() -> Signal:
    return user(0.5, HELLO, 1.6, "The number is two zero four seven, you know?", 2.5).audio


def test_equal_seeds_give_equal_bytes_and_every_session_is_fresh(person: Signal) -> None:
    prompt = PROMPTS[1]
    first = played(prompt, 3, person)
    played("", 0, user(0.3, "That was loud.", 1.0).audio * np.float32(2.0))
    assert played(prompt, 3, person) == first
    assert played(prompt, 4, person) != first
    other = Cascade()
    with other.open(prompt, 3) as session:
        found = feed(session, person)
    assert (found.audio.tobytes(), found.text) == first


def test_sessions_side_by_side_do_not_hear_each_other(person: Signal) -> None:
    other = np.roll(person, FRAME * 17)
    alone = [played(PROMPTS[1], 1, person), played("", 2, other)]
    together: list[list[Emission]] = [[], []]
    with agent().open(PROMPTS[1], 1) as one, agent().open("", 2) as two:
        for start in range(0, person.size, FRAME):
            for session, audio, out in ((one, person, together[0]), (two, other, together[1])):
                out.append(step(session, audio[start : start + FRAME]))
    for (audio_bytes, text), found in zip(alone, together, strict=True):
        assert np.concatenate([np.zeros(FRAME, np.float32), *(e.audio for e in found)]).tobytes() == audio_bytes
        assert "".join(token.text for e in found for token in e.text).strip() == text


def step(session: Session, frame: Signal) -> Emission:
    emission = session.step(frame)
    assert isinstance(emission, Emission)
    checked = check_emission(emission, agent().capabilities, "cascade")
    assert checked.audio.shape == (FRAME,)
    assert np.abs(checked.audio).max(initial=0.0) <= 1.0
    assert all(0 <= token.offset_s < FRAME / RATE for token in checked.text)
    return checked


def test_what_is_begun_is_said_to_its_end_when_the_user_side_ends() -> None:
    audio = user(0.5, HELLO, 1.2).audio
    with agent().open("", 0) as session:
        begun = feed(session, audio)
        rest = session.finish()
        assert isinstance(rest, Emission)
        again = session.finish()
        assert isinstance(again, Emission)
    whole = talk("", user(0.5, HELLO, 8.0).audio)
    assert 0 < len(begun.text) < len(whole.text)
    assert begun.text + " " + "".join(token.text for token in rest.text).strip() == whole.text
    np.testing.assert_array_equal(
        np.concatenate([begun.audio, rest.audio]), whole.audio[: begun.audio.size + rest.audio.size]
    )
    assert not whole.audio[begun.audio.size + rest.audio.size :].any()
    assert again.audio.size == 0


SOUNDS = ("speech", "fragment", "silence", "noise", "click", "tone", "loud")


def sound(kind: str, chance: random.Random) -> Signal:
    generator = np.random.default_rng(chance.getrandbits(32))
    length = round(chance.uniform(0.05, 3.0) * RATE)
    audio = silence(length / RATE)
    speech = spoken(chance.choice((HELLO, "Sorry, no, wait, I mean the other one.", "Are you still there?"))).audio
    match kind:
        case "speech":
            audio = speech
        case "fragment":
            start = chance.randrange(speech.size // 2)
            audio = speech[start : start + length // 2]
        case "noise":
            audio += generator.standard_normal(length).astype(np.float32) * np.float32(
                chance.choice((0.001, 0.05, 0.5))
            )
        case "click":
            audio[: chance.randrange(1, 200)] = 1.0
        case "tone":
            audio += np.sin(np.arange(length, dtype=np.float32) * np.float32(0.05)) * np.float32(0.3)
        case "loud":
            audio = np.clip(speech * np.float32(40), -1, 1).astype(np.float32)
    return audio


def in_frames(pieces: list[Signal]) -> list[Signal]:
    audio = np.concatenate([np.zeros(0, np.float32), *pieces])
    audio = np.pad(audio, (0, -audio.size % FRAME))
    return list(audio.reshape(-1, FRAME))


@settings(deadline=None, max_examples=8)
@given(
    st.sampled_from(PROMPTS),
    st.integers(0, 2**32),
    st.lists(st.sampled_from(SOUNDS), max_size=4),
    st.integers(0, 2**31),
)
def test_any_sound_gives_whole_frames(prompt: str, seed: int, kinds: list[str], chance: int) -> None:
    generator = random.Random(chance)
    with agent().open(prompt, seed) as session:
        for frame in in_frames([sound(kind, generator) for kind in kinds]):
            step(session, frame)
        session.finish()


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the resident size is read from /proc")
def test_a_long_conversation_keeps_the_memory_flat() -> None:
    generator = random.Random(5)
    marks: list[float] = []
    elapsed = 0.0
    with agent().open(PROMPTS[1], 5) as session:
        while elapsed < MINUTES * 60:
            for frame in in_frames([sound(generator.choice(SOUNDS), generator) for _ in range(4)]):
                step(session, frame)
                elapsed += FRAME / RATE
            marks.append(resident_mb())
    # After a third of the run everything has been used once.
    assert max(marks) - marks[len(marks) // 3] < 40, marks
