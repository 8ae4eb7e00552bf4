"""``personaplex`` on NVIDIA's own package, where that is what is installed under the name ``moshi``.

The package builds models of the released size alone, so its tables of sizes are made tiny; everything else is its own.
To run it: ``PYTHONPATH=personaplex/moshi pytest tests/adapters/test_personaplex_fork.py``, with ``sphn`` and ``tqdm``.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adapters.personaplex import PersonaPlex
from adapters.personaplex.fork import ForkSession
from adapters.personaplex.prompt import PAD, SILENCE
from adapters.personaplex.voices import Voice
from dsbeval.conformance import CHECKS
from dsbeval.errors import AgentError
from tests.adapters import tiny_kyutai as tiny
from tests.adapters.frames import FRAME, converse, noise, on_the_line, play
from tests.adapters.personaplex_prompts import PROMPTS, TEXT, USER, VOICE

GOLDEN = Path(__file__).parents[1] / "golden" / "personaplex" / "tokens.json"


def forked() -> bool:
    """Return whether the fork is installed, without importing it: the released package has a module that it lacks."""
    found = importlib.util.find_spec("moshi")
    places = found.submodule_search_locations if found is not None else None
    return bool(places) and not Path(next(iter(places or ())), "conditioners").exists()


pytestmark = pytest.mark.skipif(not forked(), reason="NVIDIA's fork of moshi is not installed here")


@pytest.fixture(scope="module")
def fork(tmp_path_factory: pytest.TempPathFactory, place: str) -> Iterator[PersonaPlex]:
    folder = tmp_path_factory.mktemp("personaplex") / "eight"
    with pytest.MonkeyPatch.context() as patch:
        tiny.build_personaplex_for_fork(folder, patch)
        agent = PersonaPlex(str(folder), device=place, temperature=0, text_temperature=0)
    yield agent
    agent.close()


def test_it_declares_that_its_frames_come_a_call_late(fork: PersonaPlex) -> None:
    assert fork.package.name == "moshi 0.1.0 (PersonaPlex fork)"
    assert (fork.capabilities.output_delay, fork.capabilities.clock_delay, fork.capabilities.frame) == (0, 0, FRAME)


def test_through_the_recorder_audio_lands_where_it_is_declared(fork: PersonaPlex) -> None:
    """Its frame t-1, returned for the user's frame t, begins with that frame: no answer to it, and none is due earlier."""
    channel, emitted = on_the_line(fork, ())
    for index, emission in enumerate(emitted):
        np.testing.assert_array_equal(channel[index * FRAME : (index + 1) * FRAME], emission.audio)
    clicked, _ = on_the_line(fork, (3 * FRAME,))
    assert channel[: 4 * FRAME].tobytes() == clicked[: 4 * FRAME].tobytes()
    assert channel[4 * FRAME :].tobytes() != clicked[4 * FRAME :].tobytes()


@pytest.mark.parametrize("check", CHECKS)
def test_it_keeps_the_contract(fork: PersonaPlex, check: str) -> None:
    CHECKS[check](fork)


@pytest.mark.parametrize("kind", PROMPTS)
def test_the_adapter_returns_what_the_package_returns(
    fork: PersonaPlex, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    engine, user = fork.engine, iter(USER)
    returned: list[list[int]] = []
    step = engine.step

    def noted(codes: Any) -> Any:
        out = step(codes)
        assert out is not None
        returned.append(out[0, :9, 0].tolist())
        return out

    monkeypatch.setattr(engine, "step", noted)
    monkeypatch.setattr(engine, "encode", lambda frame: engine.codes(tuple(next(user))))
    parts = PROMPTS[kind]
    voice = Voice("none")
    if "stored" in parts:
        voice = Voice("stored", *tiny.stored_voice(8).values())
    if "audio" in parts:
        voice = Voice("audio", audio=noise(1)[0])
        spoken = [engine.codes(tuple(codes)) for codes in VOICE]
        monkeypatch.setattr(engine.lm_gen, "_encode_voice_prompt_frames", lambda mimi: spoken)
    text = TEXT if "text" in parts else []
    with ForkSession(engine, fork._tokenizer, 0, voice, text, 3000) as session:
        play(session, noise(len(USER)))
    expected = json.loads(GOLDEN.read_text())[kind]
    assert returned == expected
    assert returned[0] == [PAD, *SILENCE]


def test_equal_seeds_a_voice_of_ones_own_and_a_session_after_a_broken_one(
    fork: PersonaPlex, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = converse(fork, noise(4), "Be kind.")
    assert converse(fork, noise(4), "") != expected
    with pytest.raises(AgentError, match="the prompt takes"):
        fork.open("Be kind. " * 1500, 0)
    with fork.open("Be kind.", 1) as session:
        monkeypatch.setattr(fork.engine.lm_gen, "process_transformer_output", lambda *parts: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            session.step(noise(1)[0])
        monkeypatch.undo()
    assert not fork.engine.lm_gen.is_streaming
    monkeypatch.setattr(fork, "_voice", Voice("mine", audio=noise(1)[0]))
    assert converse(fork, noise(4), "Be kind.") != expected
    monkeypatch.undo()
    assert converse(fork, noise(4), "Be kind.") == expected


def test_a_file_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "weights"
    with pytest.MonkeyPatch.context() as patch:
        tiny.build_personaplex_for_fork(folder, patch)
        state = load_file(folder / tiny.LM_FILE)
        del state["text_linear.weight"]
        save_file(state, folder / tiny.LM_FILE)
        with pytest.raises(
            AgentError, match=r"model.safetensors: lacks 1 weights of the model, text_linear.weight the first"
        ):
            PersonaPlex(str(folder), device="cpu")
