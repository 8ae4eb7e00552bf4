"""``personaplex`` on tiny random weights in the form of NVIDIA's release, through the code that loads and serves real ones."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adapters.kyutai.engine import Engine
from adapters.personaplex import PUBLISHED, PersonaPlex
from adapters.personaplex.convert import depth_steps, without_user_steps
from adapters.personaplex.prompt import PAD, SILENCE, SPACER, TONE, Call, Frame, calls, script, wrapped
from adapters.personaplex.released import ReleasedSession
from adapters.personaplex.voices import Voice, load_voice
from dsbeval.audio import RATE, write_audio
from dsbeval.checkpoints import resolve
from dsbeval.conformance import CHECKS
from dsbeval.dyadic.bridge import run_dyad
from dsbeval.errors import AgentError
from dsbeval.ifeval.episode import record_case
from dsbeval.ifeval.pack import DEFAULT_PACK, load_pack
from dsbeval.ifeval.score import score_recording
from tests.adapters import tiny_kyutai as tiny
from tests.adapters.frames import FRAME, converse, noise, on_the_line
from tests.adapters.personaplex_prompts import PROMPTS, TEXT, USER, VOICE

SHORTEST_CASE = "IFD-R4-C3-i4-L1"
GOLDEN = Path(__file__).parents[1] / "golden" / "personaplex" / "tokens.json"


@pytest.fixture(scope="session")
def tiny_personaplex(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a checkpoint with 2 codebooks a side."""
    return tiny.build_personaplex(tmp_path_factory.mktemp("personaplex") / "tiny")


@pytest.fixture(scope="module")
def personaplex(tiny_personaplex: Path, place: str) -> Iterator[PersonaPlex]:
    agent = PersonaPlex(str(tiny_personaplex), device=place)
    yield agent
    agent.close()


@pytest.fixture
def checkpoint(tiny_personaplex: Path, tmp_path: Path) -> Path:
    """Return a copy that may be spoilt."""
    return Path(shutil.copytree(tiny_personaplex, tmp_path / "weights"))


@pytest.mark.parametrize("check", CHECKS)
def test_it_keeps_the_contract(personaplex: PersonaPlex, check: str) -> None:
    CHECKS[check](personaplex)


def test_it_declares_itself(personaplex: PersonaPlex) -> None:
    found = personaplex.capabilities
    assert (found.frame, found.clock_delay, found.prompt, found.voice, found.context_s) == (
        FRAME,
        FRAME,
        True,
        True,
        240.0,
    )
    assert (PUBLISHED.temperature, PUBLISHED.text_temperature, PUBLISHED.top_k, PUBLISHED.text_top_k) == (
        0.8,
        0.8,
        250,
        25,
    )


# The prompt


def test_the_prompt_is_voice_spacer_text_spacer() -> None:
    silence = Frame(PAD, SILENCE)
    frames = script([tuple(range(8)), tuple(range(8, 16))], [20, 21], 8)
    assert frames[:2] == [Frame(PAD, tuple(range(8))), Frame(PAD, tuple(range(8, 16)))]
    assert frames[2:8] == frames[10:] == [silence] * SPACER
    assert frames[8:10] == [Frame(20, SILENCE), Frame(21, SILENCE)]
    assert script([], [], 8) == [silence] * 12


def test_each_call_forces_what_it_generates() -> None:
    one, two = Frame(20, (1, 2, 3)), Frame(21, (4, 5, 6))
    assert calls([one, two]) == [Call(21, 4, (2, 3)), Call(None, None, (5, 6))]
    assert calls([one, two], before=(8, 9)) == [Call(20, 1, (8, 9)), Call(21, 4, (2, 3)), Call(None, None, (5, 6))]


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("", ""),
        (" \n", ""),
        (" Be kind. ", "<system> Be kind. <system>"),
        ("<system> Be kind. <system>", "<system> Be kind. <system>"),
        ("<system>", "<system> <system> <system>"),
    ],
)
def test_a_prompt_stands_between_its_tags(prompt: str, expected: str) -> None:
    assert wrapped(prompt) == expected


def test_prompt_and_voice_move_what_is_said(personaplex: PersonaPlex, tiny_personaplex: Path, place: str) -> None:
    said = converse(personaplex, noise(6), "You are brief.")
    assert converse(personaplex, noise(6), "You are brief.") == said
    assert converse(personaplex, noise(6), "You are kind.") != said
    assert converse(personaplex, noise(6), "") != said
    silent = PersonaPlex(str(tiny_personaplex), device=place, voice="none")
    assert converse(silent, noise(6), "You are brief.") != said
    assert converse(silent, noise(6), "", seed=1) == converse(silent, noise(6), "  ", seed=1)
    silent.close()


def test_a_prompt_that_fills_the_context_is_refused_and_spoils_nothing(checkpoint: Path) -> None:
    config = checkpoint / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "context": 40}))
    agent = PersonaPlex(str(checkpoint), device="cpu")
    expected = converse(agent, noise(2), "Be brief.")
    with pytest.raises(
        AgentError, match=r"agent personaplex: the prompt takes \d\d+ frames, .*the model looks back on 40"
    ):
        agent.open("Be brief. " * 30, 0)
    assert converse(agent, noise(2), "Be brief.") == expected


# Equal to NVIDIA's own package


@pytest.fixture(scope="module")
def greedy(tmp_path_factory: pytest.TempPathFactory) -> PersonaPlex:
    folder = tiny.build_personaplex(tmp_path_factory.mktemp("personaplex") / "eight", 8)
    return PersonaPlex(str(folder), device="cpu", temperature=0, text_temperature=0)


@pytest.mark.parametrize("kind", PROMPTS)
def test_the_tokens_are_those_of_nvidias_package(
    greedy: PersonaPlex, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """``tests/golden/personaplex`` holds what the fork returned for these weights; there a frame comes one call later."""
    import torch

    returned: list[list[int]] = []
    user = iter(USER)
    step = Engine.step

    def noted(engine: Engine, codes: Any, instead: Any = None) -> Any:
        out = step(engine, codes, instead)
        if out is not None:
            returned.append(out[0, :, 0].tolist())
        return out

    monkeypatch.setattr(Engine, "step", noted)
    monkeypatch.setattr(Engine, "encode", lambda engine, frame: torch.tensor(next(user))[None, :, None])
    parts = PROMPTS[kind]
    voice = Voice("stored", *tiny.stored_voice(8).values()) if "stored" in parts else Voice("none")
    if "audio" in parts:
        voice = Voice("audio", audio=np.zeros(1, np.float32), codes=[tuple(codes) for codes in VOICE])
    text = TEXT if "text" in parts else []
    with ReleasedSession(greedy.engine, greedy._tokenizer, 0, greedy._forcing, voice, text, 3000) as session:
        for _ in USER:
            session.step(noise(1)[0])
    expected = json.loads(GOLDEN.read_text())[kind]
    assert expected[0] == [PAD, *SILENCE]  # the prompt's last frame: returned before the conversation, and not played
    assert returned[-len(USER) - 1 :][: len(USER)] == expected


# Weights


def test_a_file_without_the_users_steps_gives_the_same(checkpoint: Path, personaplex: PersonaPlex, place: str) -> None:
    from safetensors.torch import load_file, save_file

    path = checkpoint / tiny.LM_FILE
    state = load_file(path)
    assert depth_steps(state) == 4
    cut = without_user_steps(state, 2, path)
    assert depth_steps(cut) == 2
    assert without_user_steps(cut, 2, path) is cut
    save_file({name: tensor.contiguous() for name, tensor in cut.items()}, path)
    agent = PersonaPlex(str(checkpoint), device=place)
    assert converse(agent, noise(4), "Be kind.") == converse(personaplex, noise(4), "Be kind.")
    agent.close()
    with pytest.raises(AgentError, match=r"predicts 4 codebooks; agent personaplex needs 3, or those of both sides"):
        without_user_steps(state, 3, path)


def test_weights_that_are_not_whole_are_refused(checkpoint: Path) -> None:
    from safetensors.torch import load_file, save_file

    path = checkpoint / tiny.LM_FILE
    state = load_file(path)
    del state["text_linear.weight"]
    save_file(state, path)
    with pytest.raises(AgentError, match=r"model.safetensors: cannot be loaded .*text_linear.weight"):
        PersonaPlex(str(checkpoint), device="cpu")


def test_a_config_that_holds_no_settings_means_the_released_size(tiny_personaplex: Path) -> None:
    from adapters.kyutai.package import find_package
    from adapters.kyutai.weights import Folder
    from adapters.personaplex.convert import model_settings

    package, here = find_package("personaplex"), Path()
    for config in (None, {"model_type": "personaplex", "version": "7b"}):
        found = model_settings(Folder("personaplex", config, None, here, here, here, None, None), package)
        assert (found["dim"], found["n_q"], found["context"]) == (4096, 16, 3000)


# Voices


def voice_of(checkpoint: Path, name: str) -> Voice:
    return load_voice("personaplex", name, resolve(str(checkpoint), PersonaPlex.checkpoint_files))


def test_a_voice_is_found_packed_loose_or_by_its_path(checkpoint: Path, tmp_path: Path) -> None:
    packed = voice_of(checkpoint, "NATF2")
    with tarfile.open(checkpoint / "voices.tgz") as archive:
        archive.extractall(checkpoint, filter="data")
    (checkpoint / "voices.tgz").unlink()
    for name in ("NATF2", "NATF2.pt", str(checkpoint / "voices" / "NATF2.pt")):
        found = voice_of(checkpoint, name)
        assert (found.embeddings == packed.embeddings).all()
        assert (found.ring == packed.ring).all()
    with pytest.raises(AgentError, match=r"--model-arg voice=NATF3: did you mean NATF2\?; voice=none plays without"):
        voice_of(checkpoint, "NATF3")
    shutil.rmtree(checkpoint / "voices")
    with pytest.raises(AgentError, match=r"voice=NATF2: there are none in .*weights \(voices.tgz, or voices/\)"):
        voice_of(checkpoint, "NATF2")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no torch file", r"voice=\S+bad.pt: not a stored voice"),
        ({"embeddings": [7, 1, 1, 16]}, r"voice=\S+bad.pt: not a stored voice \(KeyError: 'cache'\)"),
        (
            {"embeddings": [7, 16], "cache": [1, 5, 4]},
            r"embeddings and cache have the shapes \(7, 16\) and \(1, 5, 4\)",
        ),
        (
            {"embeddings": [7, 1, 1, 12], "cache": [1, 5, 4]},
            r"embeddings has the shape .*12\); \(7, 1, 1, 16\) is needed",
        ),
        ({"embeddings": [7, 1, 1, 16], "cache": [1, 17, 4]}, r"cache has the shape .*; \(1, 5, 4\) is needed"),
    ],
)
def test_a_voice_that_does_not_fit_is_one_line(
    tiny_personaplex: Path, tmp_path: Path, content: bytes | dict[str, list[int]], message: str
) -> None:
    import torch

    path = tmp_path / "bad.pt"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        kinds = {"embeddings": torch.float32, "cache": torch.int64}
        buffer = io.BytesIO()
        torch.save({name: torch.zeros(shape, dtype=kinds[name]) for name, shape in content.items()}, buffer)
        path.write_bytes(buffer.getvalue())
    with pytest.raises(AgentError, match=message) as caught:
        PersonaPlex(str(tiny_personaplex), device="cpu", voice=str(path)).open("", 0)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kept", [0, 7, 400, -40])
def test_packed_voices_that_are_cut_off_are_one_line(checkpoint: Path, kept: int) -> None:
    packed = checkpoint / "voices.tgz"
    packed.write_bytes(packed.read_bytes()[:kept])
    with pytest.raises(AgentError, match=r"voices\.tgz: cannot be unpacked \(.*; get it again") as caught:
        voice_of(checkpoint, "NATF2")
    assert "\n" not in str(caught.value)


def test_audio_is_a_voice_at_a_known_loudness(tiny_personaplex: Path, tmp_path: Path) -> None:
    import pyloudnorm

    path = tmp_path / "me.wav"
    speech = 0.02 * np.random.default_rng(1).standard_normal(RATE + 100)
    write_audio(path, (speech * 32767).astype(np.int16))
    found = voice_of(tiny_personaplex, str(path))
    assert found.audio is not None
    assert pyloudnorm.Meter(RATE).integrated_loudness(found.audio) == pytest.approx(-24.0, abs=0.1)
    assert [frame.size for frame in found.frames] == [FRAME] * 13
    agent = PersonaPlex(str(tiny_personaplex), device="cpu", voice=str(path))
    said = converse(agent, noise(4), "Be kind.")
    assert len(agent._voice.codes) == 13
    assert converse(agent, noise(4), "Be kind.") == said  # the second time its codes are known
    agent.close()


@pytest.mark.parametrize(
    ("samples", "message"), [(RATE // 4, r"0\.25 s are too short for a voice"), (RATE, "holds no sound")]
)
def test_audio_without_a_voice_is_refused(tiny_personaplex: Path, tmp_path: Path, samples: int, message: str) -> None:
    path = tmp_path / "me.wav"
    write_audio(path, np.zeros(samples, np.int16))
    with pytest.raises(AgentError, match=message):
        voice_of(tiny_personaplex, str(path))
    with pytest.raises(AgentError, match=r"--model-arg voice: .*gone.wav: no such file"):
        voice_of(tiny_personaplex, str(tmp_path / "gone.wav"))


# A session after another, and whole cases


def test_a_session_after_one_that_broke_in_its_prompt_is_fresh(
    personaplex: PersonaPlex, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = converse(personaplex, noise(3), "Be kind.")
    with monkeypatch.context() as patch:
        patch.setattr(personaplex.engine, "codes", lambda values: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            personaplex.open("Be kind.", 1)
    assert personaplex._forcing.text is personaplex._forcing.rest is None
    assert converse(personaplex, noise(3), "Be kind.") == expected


def test_through_the_recorder_audio_lands_where_it_is_declared(personaplex: PersonaPlex) -> None:
    channel, emitted = on_the_line(personaplex, ())
    assert not channel[:FRAME].any()
    for index, emission in enumerate(emitted):
        start = index * FRAME + personaplex.capabilities.clock_delay
        np.testing.assert_array_equal(channel[start : start + FRAME], emission.audio)


@pytest.mark.parametrize("impulse", [0, 3 * FRAME + 700, 4 * FRAME])
def test_through_the_recorder_an_impulse_is_heard_in_its_frame_and_not_answered_before_that_has_ended(
    personaplex: PersonaPlex, monkeypatch: pytest.MonkeyPatch, impulse: int
) -> None:
    codes: list[list[list[int]]] = []
    encode = personaplex.engine.encode

    def noted(frame: Any) -> Any:
        out = encode(frame)
        codes[-1].append(out.flatten().tolist())
        return out

    monkeypatch.setattr(personaplex.engine, "encode", noted)
    channels = []
    for clicks in ((), (impulse,)):
        codes.append([])
        channels.append(on_the_line(personaplex, clicks)[0])
    frame = impulse // FRAME
    assert [one != other for one, other in zip(*codes, strict=True)].index(True) == frame
    before = (frame + 1) * FRAME
    assert channels[0][:before].tobytes() == channels[1][:before].tobytes()
    assert channels[0][before:].tobytes() != channels[1][before:].tobytes()


def test_a_whole_case_and_a_conversation(personaplex: PersonaPlex, tiny_moshi: Path, place: str) -> None:
    from adapters.moshi import Moshi

    pack = load_pack(DEFAULT_PACK)
    recording = record_case(personaplex, pack, pack.cases[SHORTEST_CASE], seed=2)
    assert recording.meta["prompt_taken"] is True
    assert recording.model[FRAME:].any()
    assert not recording.model[:FRAME].any()
    assert "caveats" not in score_recording(recording)[1]
    partner = Moshi(str(tiny_moshi), device=place)
    talk = run_dyad(personaplex, partner, ("You sell tea.", ""), (1, 2), opener="a", window_s=1.6, lead_in_s=0.4)
    partner.close()
    assert talk.a.any()
    assert talk.b.any()
    assert [talk.meta["sides"][side]["prompt_taken"] for side in ("a", "b")] == [True, False]


def test_tone_and_silence_are_codes_of_the_released_codec() -> None:
    assert all(0 <= code < 2048 for code in (*TONE, *SILENCE))
    assert len(TONE) == len(SILENCE) == 8
