"""Fun-Audio-Chat against a stand-in for its repository, found, registered and loaded as the real one is.

Nothing here says anything about the model: the tests whose names say so prove the shape and order of the calls only. Where
``DSBEVAL_FUN_AUDIO_CHAT`` names a clone, the last one runs the model's own classes with tiny random weights.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.fun_audio_chat import FunAudioChat, _import, pieces_of
from dsbeval.agent import Emission, Interaction
from dsbeval.audio import RATE, Signal
from dsbeval.conformance import CHECKS
from dsbeval.dyadic.participant import check_agent
from dsbeval.errors import AgentError, OptionError
from dsbeval.ifeval.episode import record_case
from dsbeval.ifeval.line import Line
from dsbeval.ifeval.pack import load_pack
from dsbeval.ifeval.score import score_recording
from dsbeval.loading import load_agent
from dsbeval.recording import read_recording, write_recording
from dsbeval.speech.bank import load_bank
from tests.adapters.fun_audio_chat_parts import build_checkpoint, build_clone, stand_in

PACK = load_pack()
CASE = PACK.cases["IFD-R1-C1-i1-L2"]
ROOT = Path(__file__).parents[2]
SENTENCE = "STAND-IN SENTENCE THAT MAKES IT SPEAK."
NAMES = ("funaudiochat", "funaudiochat.register", "utils", "utils.constant", "utils.cosyvoice_detokenizer")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    root = tmp_path_factory.mktemp("fun_audio_chat")
    build_clone(root / "clone")
    build_checkpoint(root / "checkpoint")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", list(sys.path))
        for name in NAMES:
            patch.delitem(sys.modules, name, raising=False)
        yield root
        CONFIG_MAPPING._extra_content.pop("funaudiochat", None)
        for name in NAMES:
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def agent(root: Path) -> FunAudioChat:
    return stand_in(root)


@pytest.fixture
def parts(agent: FunAudioChat) -> Iterator[tuple[Any, Any]]:
    """Yield the stand-in's two modules with nothing in their lists; faults are mended afterwards."""
    agent.open("", 0).close()
    model, synthesis = sys.modules["funaudiochat.register"], sys.modules["utils.cosyvoice_detokenizer"]
    found: tuple[Any, Any] = (model, synthesis)
    for module in found:
        module.calls.clear()
    yield found
    for module in found:
        module.FAULT = ""


def emission(returned: object) -> Emission:
    assert isinstance(returned, Emission)
    return returned


def answer(agent: FunAudioChat, seconds: float, prompt: str = "", seed: int = 0) -> Emission:
    with agent.open(prompt, seed) as session:
        for _ in range(round(seconds / 0.08)):
            assert not emission(session.step(np.full(1280, 0.1, np.float32))).audio.size
        return emission(session.finish())


# What it declares and refuses


def test_importing_it_imports_nothing_heavy(root: Path) -> None:
    code = (
        f"import sys; from adapters.fun_audio_chat import FunAudioChat; a = FunAudioChat({str(root / 'checkpoint')!r}, "
        f"code={str(root / 'clone')!r}); a.capabilities; a.close(); "
        "print([n for n in ('torch', 'transformers', 'soxr', 'utils', 'funaudiochat') if n in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_what_it_declares(agent: FunAudioChat) -> None:
    found = agent.capabilities
    assert (found.interaction, found.clock, found.frame) == (Interaction.TURN_BASED, "logical", 1280)
    assert (found.input_rate, found.output_rate) == (16_000, 24_000)
    assert (found.prompt, found.seed, found.text, found.voice) == (True, True, True, False)
    with pytest.raises(OptionError, match="turns=endpointed"):
        check_agent(agent)  # half duplex: no live conversation as it is


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"checkpoint": None},
            "no --checkpoint is given; give FunAudioLLM/Fun-Audio-Chat-8B, or a folder",
        ),
        ({"code": ""}, "the model's code is not on PyPI; give --model-arg code=DIR with a clone of https://github.com"),
        ({"code": "/nowhere"}, "/nowhere has no funaudiochat/register.py"),
        ({"long_input": "cut"}, "long_input is 'cut'; known: refuse, split"),
        ({"shards": 0}, "shards is 0; give the number of GPUs"),
        ({"shards": "two"}, "shards is 'two'"),
    ],
)
def test_a_wrong_argument_is_one_line_before_anything_is_loaded(
    root: Path, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(AgentError, match=message) as caught:
        stand_in(root, **arguments)
    assert "\n" not in str(caught.value)


def test_a_clone_without_the_synthesiser_says_how_to_get_it(root: Path, tmp_path: Path) -> None:
    build_clone(tmp_path / "clone")
    (tmp_path / "clone" / "pretrained_models" / "Fun-CosyVoice3-0.5B-2512").rmdir()
    with pytest.raises(AgentError, match=r"get it with: hf download FunAudioLLM/Fun-CosyVoice3-0.5B-2512 --local-dir"):
        stand_in(root, code=str(tmp_path / "clone"))


def test_a_package_that_the_clone_needs_and_a_name_that_is_taken_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone, other = tmp_path / "clone", tmp_path / "other"
    for folder in (clone, other):
        folder.mkdir()
    (clone / "probe_needs.py").write_text("import a_package_that_is_not_there\n")
    (other / "probe_taken.py").touch()
    monkeypatch.setattr(sys, "path", [str(other), str(clone), *sys.path])
    with pytest.raises(AgentError, match=r"needs the package a_package_that_is_not_there, which is not installed"):
        _import("probe_needs", clone)
    with pytest.raises(AgentError, match=r"not from .*; run this model in a process of its own"):
        _import("probe_taken", clone)


def test_wire_and_call_shape_only_of_shards(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda i: ((i + 1) * 10**9, 8 * 10**10))
    spread, device = stand_in(root, shards=2)._placed(torch)
    assert (spread, device) == ({"device_map": "balanced_low_0", "max_memory": {0: 10**9, 1: 2 * 10**9}}, "")
    assert stand_in(root)._placed(torch) == ({}, "cpu")
    with pytest.raises(AgentError, match=r"shards=3, and 2 GPU\(s\) are visible; give at most so many"):
        stand_in(root, shards=3).open("", 0)


# Order and arguments of the calls


def test_wire_and_call_shape_only_of_an_answer(agent: FunAudioChat, parts: tuple[Any, Any]) -> None:
    model, synthesis = parts
    found = answer(agent, 2.0, "You are brief.")
    assert model.calls == [
        (
            "template",
            [
                {"role": "system", "content": f"{SENTENCE} You are brief."},
                {"role": "user", "content": "<|audio_bos|><|AUDIO|><|audio_eos|>"},
            ],
        ),
        ("processor", [32_000]),
        (
            "generate",
            {"text_greedy": True, "only_crq_sampling": True, "disable_speech": False, "force_text_abos": True},
            {"do_sample": True, "temperature": 0.8, "max_new_tokens": 2048},
        ),
    ]
    steps = len(model.text_ids())
    assert synthesis.calls == [("token2wav", 5 * steps - 5, None, 750, 3)]
    assert found.audio.size == (5 * steps - 5) * 960
    assert "".join(token.text for token in found.text) == "It is fine ü."
    times = {token.text: token.offset_s for token in found.text}
    assert times["I"] == pytest.approx(0.2)  # after the mark that begins the speech
    assert times["f"] == pytest.approx(0.2 * model.text_ids().index(ord("f")))


def test_wire_and_call_shape_only_of_the_sentence_that_stays(agent: FunAudioChat, parts: tuple[Any, Any]) -> None:
    for prompt, system in (("", SENTENCE), ("  \n", SENTENCE), (" Be kind.\n", f"{SENTENCE} Be kind.")):
        answer(agent, 0.4, prompt)
        assert parts[0].calls[-3][1][0] == {"role": "system", "content": system}


def test_wire_and_call_shape_only_of_more_than_thirty_seconds(
    root: Path, agent: FunAudioChat, parts: tuple[Any, Any]
) -> None:
    with agent.open("", 0) as session:
        for k in range(1000):  # 80 s, silent between 28 and 28.4 s
            session.step(np.full(1280, 0.0 if 350 <= k < 355 else 0.1, np.float32))
        emission(session.finish())
        assert session.facts()["pieces"] == 3
    sizes = next(call[1] for call in parts[0].calls if call[0] == "processor")
    assert sum(sizes) == 80 * 16_000
    assert len(sizes) == 3
    assert 28.0 <= sizes[0] / 16_000 <= 28.4
    assert parts[0].calls[0][1][1]["content"].count("<|AUDIO|>") == 3
    refusing = stand_in(root, long_input="refuse")
    with pytest.raises(
        AgentError, match=r"31.0 s were heard, and the model hears 30 s; give --model-arg long_input=split"
    ):
        answer(refusing, 31.04)
    assert answer(refusing, 30.0).audio.size


@settings(deadline=None, max_examples=30)
@given(seconds=st.floats(0.1, 40.0), longest=st.floats(6.0, 12.0), seed=st.integers(0, 99))
def test_pieces_are_all_of_it_and_none_is_too_long(seconds: float, longest: float, seed: int) -> None:
    audio: Signal = np.random.default_rng(seed).standard_normal(int(seconds * 16_000)).astype(np.float32)
    pieces = pieces_of(audio, longest)
    np.testing.assert_array_equal(np.concatenate(pieces), audio)
    assert all(0 < piece.size <= round(longest * 16_000) for piece in pieces)
    assert len(pieces) <= 1 + audio.size / ((longest - 5.0) * 16_000)


def test_wire_and_call_shape_only_of_a_second_agent_in_the_process(root: Path) -> None:
    one, other = stand_in(root), stand_in(root)  # transformers refuses to register a name twice
    assert answer(one, 0.4).audio.tobytes() == answer(other, 0.4).audio.tobytes()
    one.close()
    assert answer(one, 0.4).audio.size


def test_a_synthesiser_at_another_rate_is_resampled_and_one_without_a_rate_refused(
    root: Path, parts: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts[1], "RATE", 22_050)
    found = answer(stand_in(root), 0.4)
    codes = 5 * len(parts[0].text_ids()) - 5
    assert found.audio.size == -(-codes * 882 * 24_000 // 22_050)
    assert found.rate == 24_000
    monkeypatch.setattr(parts[1], "RATE", 0)
    with pytest.raises(AgentError, match="its synthesiser says that it works at 0 Hz"):
        answer(stand_in(root), 0.4)


# The contract, whole cases


@pytest.mark.parametrize("name", CHECKS)
def test_conformance(agent: FunAudioChat, name: str) -> None:
    CHECKS[name](agent)


def test_seeds_and_sessions_side_by_side(agent: FunAudioChat) -> None:
    found = [answer(agent, 0.4, seed=seed).audio.tobytes() for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2]
    with agent.open("", 1) as one, agent.open("", 2) as other:
        for session in (one, other, one, other, one, other, one, other, one, other):
            session.step(np.full(1280, 0.1, np.float32))
        assert [emission(session.finish()).audio.tobytes() for session in (one, other)] == found[1:]


def test_a_frame_must_be_a_frame_and_a_session_open(agent: FunAudioChat) -> None:
    session = agent.open("", 0)
    with pytest.raises(AgentError, match="a frame is 1280 at 16000 Hz"):
        session.step(np.zeros(1920, np.float32))
    assert emission(session.finish()).audio.size == 0  # nothing was heard
    session.close()
    with pytest.raises(AgentError, match="closed"):
        session.step(np.zeros(1280, np.float32))


def test_a_case_of_ifeval_from_prompt_to_verdict(root: Path, tmp_path: Path) -> None:
    args = {"code": str(root / "clone"), "device": "cpu", "dtype": "float32"}
    agent = load_agent("fun_audio_chat", args, str(root / "checkpoint"))
    write_recording(tmp_path, CASE.id, record_case(agent, PACK, CASE, seed=1))
    kept = read_recording(tmp_path, CASE.id)
    assert np.abs(kept.model).max() > 0.1
    assert "".join(token.text for token in kept.text) == "It is fine ü."
    assert kept.meta["session"]["settings"]["max_new_tokens"] == 2048
    verdict, row = score_recording(kept)
    assert row["id"] == CASE.id
    assert row["outcome"] == ("passed" if verdict.passed else "failed")
    # One answer to all of the user's side, from its end on.
    assert kept.text[0].sample >= kept.meta["user"][-1]["end"]


def test_turns_that_have_ended_are_answered_one_by_one(root: Path) -> None:
    args = {"turns": "endpointed", "code": str(root / "clone"), "device": "cpu", "dtype": "float32"}
    agent = load_agent("fun_audio_chat", args, str(root / "checkpoint"))
    speech = load_bank()["reply"].audio
    with agent.open("", 0) as session:
        line = Line(session, agent.capabilities, agent.name)
        first = line.say(1, speech, 0)
        second = line.say(2, speech, first.end + 5 * RATE)
        line.run_until(second.end + 4 * RATE)
    assert "".join(token.text for token in line.side.text) == "It is fine ü." * 2
    assert first.end < line.side.text[0].sample < second.start


# Faults


@pytest.mark.parametrize(
    ("where", "fault", "message"),
    [
        (0, "raises", "CUDA out of memory"),
        (0, "wordless", "s of audio came without text; check how the text is decoded"),
        (1, "nan", "audio has a NaN or infinite value at sample"),
        (1, "mute", "an answer of 13 characters came without audio; check its synthesiser"),
    ],
)
def test_a_fault_is_an_error_of_the_case_and_the_next_one_works(
    agent: FunAudioChat, parts: tuple[Any, Any], where: int, fault: str, message: str
) -> None:
    parts[where].FAULT = fault
    with pytest.raises((RuntimeError, AgentError), match=message):
        record_case(agent, PACK, CASE)
    parts[where].FAULT = ""
    assert record_case(agent, PACK, CASE).text


# The model's own code


@pytest.mark.skipif(
    "DSBEVAL_FUN_AUDIO_CHAT" not in os.environ,
    reason="DSBEVAL_FUN_AUDIO_CHAT names no clone of FunAudioLLM/Fun-Audio-Chat",
)
def test_the_models_own_classes_answer_with_tiny_random_weights(tmp_path: Path) -> None:
    """In a process of its own, with the environment's Python: needs librosa and transformers 4.52 there."""
    script = ROOT / "tests" / "adapters" / "fun_audio_chat_tiny.py"
    python = os.environ.get("DSBEVAL_FUN_AUDIO_CHAT_PYTHON", sys.executable)
    found = subprocess.run(
        [python, str(script), os.environ["DSBEVAL_FUN_AUDIO_CHAT"], str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert "equal seeds, equal audio" in found.stdout
