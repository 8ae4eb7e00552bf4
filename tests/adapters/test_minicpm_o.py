"""MiniCPM-o against a stand-in for its code: transformers loads it as it loads the real one, and it refuses a wrong call.

Nothing here says anything about the model: the tests whose names say so prove the shape and order of the calls only.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adapters.minicpm_o import MiniCPMo
from adapters.minicpm_o.duplex import framed
from dsbeval.agent import Agent, Emission, Interaction, Session
from dsbeval.audio import RATE, Signal, write_audio
from dsbeval.clock import LogicalClock
from dsbeval.conformance import CHECKS
from dsbeval.dyadic.bridge import run_dyad
from dsbeval.dyadic.participant import Participant, SideError
from dsbeval.errors import AgentError, DsbevalError
from dsbeval.ifeval.episode import record_case
from dsbeval.ifeval.line import Line
from dsbeval.ifeval.pack import load_pack
from dsbeval.ifeval.score import score_recording
from dsbeval.loading import load_agent
from dsbeval.recording import read_recording, write_recording
from dsbeval.speech.bank import load_bank
from tests.adapters.minicpm_o_parts import build_checkpoint, inside, stand_in

PACK = load_pack()
CASE = PACK.cases["IFD-R1-C1-i1-L2"]
SECOND = 16_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    import transformers.dynamic_module_utils as modules

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(modules, "HF_MODULES_CACHE", str(tmp_path_factory.mktemp("modules")))
        patch.setattr(sys, "path", list(sys.path))
        yield build_checkpoint(tmp_path_factory.mktemp("minicpm") / "MiniCPM-o-4_5")


@pytest.fixture(scope="module")
def turns(folder: Path) -> MiniCPMo:
    return stand_in(folder)


@pytest.fixture(scope="module")
def duplex(folder: Path) -> MiniCPMo:
    return stand_in(folder, mode="duplex")


def second(level: float) -> Signal:
    return np.full(SECOND, level, np.float32)


def emission(returned: object) -> Emission:
    assert isinstance(returned, Emission)
    return returned


def calls_of(agent: MiniCPMo) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = list(inside(agent).calls)
    inside(agent).calls.clear()
    return found


# What it declares and refuses


def test_importing_it_imports_nothing_heavy(folder: Path) -> None:
    code = (
        f"import sys; from adapters.minicpm_o import MiniCPMo; a = MiniCPMo({str(folder)!r}, "
        f"voice={str(folder / 'voice.wav')!r}); a.capabilities; a.close(); "
        "print([n for n in ('torch', 'transformers', 'scipy') if n in sys.modules])"
    )
    root = Path(__file__).parents[2]
    found = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_what_it_declares(turns: MiniCPMo, duplex: MiniCPMo) -> None:
    one, other = turns.capabilities, duplex.capabilities
    assert (one.interaction, other.interaction) == (Interaction.TURN_BASED, Interaction.CHUNKED)
    assert {(c.input_rate, c.output_rate, c.clock, c.seed, c.text) for c in (one, other)} == {
        (16_000, 24_000, "logical", True, True)
    }
    assert (one.frame, other.frame) == (1280, 16_000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"checkpoint": None}, "no --checkpoint is given; give openbmb/MiniCPM-o-4_5, or a folder"),
        ({"mode": "duplx"}, "mode is 'duplx'; did you mean duplex"),
        ({"voice": ""}, "it has no voice of its own; give --model-arg voice=FILE.wav"),
        ({"voice": "/nowhere.wav"}, "/nowhere.wav: no such file"),
    ],
)
def test_a_wrong_argument_is_one_line_before_anything_is_loaded(
    folder: Path, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(DsbevalError, match=message) as caught:
        stand_in(folder, **arguments)
    assert "\n" not in str(caught.value)


def test_a_checkpoint_without_its_vocoder_and_a_long_voice_are_named(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(AgentError, match=r"holds no assets/token2wav/speech_tokenizer_v2_25hz.onnx, no assets"):
        stand_in(folder, checkpoint=str(tmp_path))
    write_audio(tmp_path / "long.wav", np.zeros(31 * RATE, np.float32))
    with pytest.raises(AgentError, match=r"is 31.0 s long; the model takes 30 s: cut it"):
        stand_in(folder, voice=str(tmp_path / "long.wav"))
    write_audio(tmp_path / "two.wav", np.zeros((RATE, 2), np.float32))
    with pytest.raises(DsbevalError, match=r"2 channel\(s\); 1 needed"):
        stand_in(folder, voice=str(tmp_path / "two.wav"))


def test_without_a_gpu_it_is_not_loaded_unless_the_cpu_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(AgentError, match="no GPU is visible, and its vocoder has no CPU path"):
        stand_in(folder, device="auto").open("", 0)


def test_code_of_another_version_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.minicpm_o.CALLS", {"turns": ("init_tts", "streaming_vocode")})
    with pytest.raises(AgentError, match="has no streaming_vocode; it is another version of the model"):
        stand_in(folder).open("", 0)


# Order and arguments of the calls


def test_wire_and_call_shape_only_of_an_answer_to_a_turn(folder: Path) -> None:
    agent = stand_in(folder)
    with agent.open("You are brief.", 0) as session:
        for _ in range(32):  # 2.56 s
            assert not emission(session.step(np.full(1280, 0.1, np.float32))).audio.size
        answer = emission(session.finish())
    assert calls_of(agent) == [
        ("init_tts", str(folder / "assets" / "token2wav")),
        ("reset_session", True),
        ("init_token2wav_cache", 32_000),
        ("prefill", "system", ["Speak like this.", 32_000, "Assist.", "You are brief."], False, True),
        ("prefill", "user", [16_000], False, False),
        ("prefill", "user", [16_000], False, False),
        ("prefill", "user", [16_000], False, True),
        (
            "generate", True, True, False, True, 4096,
            {"temperature": 0.5, "top_p": 0.8, "top_k": 100, "length_penalty": 1.1},
        ),
    ]  # fmt: skip
    assert answer.audio.size == 48_000 + 6_000 + 3 * 240
    assert [(token.text, token.offset_s) for token in answer.text] == [
        ("Well", 0.0),
        (", that", 1.0),
        (" is one way.", 2.0),
    ]


@pytest.mark.parametrize(("samples", "pieces"), [(1280, 1), (12 * 1280, 1), (25 * 1280, 2), (13 * 1280, 2)])
def test_wire_and_call_shape_only_of_the_pieces_of_a_turn(turns: MiniCPMo, samples: int, pieces: int) -> None:
    with turns.open("", 0) as session:
        calls_of(turns)
        for _ in range(0, samples, 1280):
            session.step(np.zeros(1280, np.float32))
        session.finish()
    found = [call for call in calls_of(turns) if call[0] == "prefill"]
    assert [call[-1] for call in found] == [False] * (pieces - 1) + [True]


def test_wire_and_call_shape_only_of_a_new_session(turns: MiniCPMo) -> None:
    for _ in range(2):
        with turns.open("", 0) as session:
            session.step(np.zeros(1280, np.float32))
            session.finish()
        names = [call[0] for call in calls_of(turns)]
        assert names[-5:] == ["reset_session", "init_token2wav_cache", "prefill", "prefill", "generate"]
    with turns.open("", 0) as session:
        assert emission(session.finish()).audio.size == 0  # nothing was heard


def test_wire_and_call_shape_only_of_seconds_in_duplex(folder: Path) -> None:
    agent = stand_in(folder, mode="duplex", force_listen_count=3, listen_prob_scale=0.9, temperature=0.6)
    voice = str(folder / "voice.wav")
    with agent.open("You are brief.", 0) as session:
        for _ in range(2):
            session.step(second(0.1))
    sampling = ("sampling", 0.6, 100, 0.8, 0.9, 20)
    pair = [("prefill", 16_000, "float32", 1), ("generate", voice, *sampling)]
    assert calls_of(agent) == [
        ("as_duplex", "cpu", {"force_listen_count": 3}),
        ("reset_session", True),
        ("prepare", framed("You are brief."), 32_000, voice),
        *pair,
        *pair,
    ]


def test_the_frame_of_a_live_call_holds_the_prompt_and_can_be_left_away(folder: Path) -> None:
    assert framed("  Be kind.\n").endswith("\n\nBe kind.")
    assert framed("").endswith("whether to listen or to speak.")
    agent = stand_in(folder, mode="duplex", framing=False)
    for prompt, told in (("Be kind.", "Be kind."), ("", None)):
        with agent.open(prompt, 0):
            assert calls_of(agent)[-1][1] == told


# The contract


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("mode", ["turns", "duplex"])
def test_conformance(request: pytest.FixtureRequest, mode: str, name: str) -> None:
    agent: Agent = request.getfixturevalue(mode)
    CHECKS[name](agent)


def test_one_conversation_at_a_time(turns: MiniCPMo) -> None:
    with turns.open("", 0), pytest.raises(AgentError, match="another session is open, and the model holds one"):
        turns.open("", 1)
    turns.open("", 1).close()


def test_a_frame_must_be_a_frame_and_a_session_open(duplex: MiniCPMo, turns: MiniCPMo) -> None:
    for agent, frame in ((turns, 1280), (duplex, 16_000)):
        session = agent.open("", 0)
        with pytest.raises(AgentError, match=f"a frame is {frame} at 16000 Hz"):
            session.step(np.zeros(frame + 1, np.float32))
        session.close()
        with pytest.raises(AgentError, match="closed"):
            session.step(np.zeros(frame, np.float32))


# Whole cases


@pytest.mark.parametrize("mode", ["turns", "duplex"])
def test_a_case_of_ifeval_from_prompt_to_verdict(folder: Path, tmp_path: Path, mode: str) -> None:
    args = {"mode": mode, "device": "cpu", "dtype": "float32", "voice": str(folder / "voice.wav")}
    agent = load_agent("minicpm_o", args, str(folder))
    write_recording(tmp_path, CASE.id, record_case(agent, PACK, CASE, seed=1))
    kept = read_recording(tmp_path, CASE.id)
    assert np.abs(kept.model).max() > 0.1
    assert "".join(token.text for token in kept.text).count("Well, that is one way.") >= 1
    assert kept.meta["session"]["mode"] == mode
    verdict, row = score_recording(kept)
    assert row["id"] == CASE.id
    assert row["outcome"] == ("passed" if verdict.passed else "failed")
    assert isinstance(agent, MiniCPMo)
    asked = [
        call for call in inside(agent).calls if call[0] in ("prepare", "prefill") and PACK.prompt(CASE) in str(call)
    ]
    assert len(asked) == 1


def test_turns_that_have_ended_are_answered_one_by_one(folder: Path) -> None:
    args = {"turns": "endpointed", "device": "cpu", "dtype": "float32", "voice": str(folder / "voice.wav")}
    agent = load_agent("minicpm_o", args, str(folder))
    speech = load_bank()["reply"].audio
    with agent.open("", 0) as session:
        line = Line(session, agent.capabilities, agent.name)
        first = line.say(1, speech, 0)
        second_turn = line.say(2, speech, first.end + 5 * RATE)
        line.run_until(second_turn.end + 5 * RATE)
    assert [token.text for token in line.side.text] == ["Well", ", that", " is one way."] * 2
    assert first.end < line.side.text[0].sample < second_turn.start
    assert line.side.text[3].sample > second_turn.end


def test_two_of_them_hold_a_conversation_their_seconds_in_threads_of_their_own(folder: Path) -> None:
    pair = [stand_in(folder, mode="duplex") for _ in range(2)]
    runs = []
    for _ in range(2):
        found = run_dyad(pair[0], pair[1], ("You begin this conversation.", "You listen."), (1, 2), window_s=12.0)
        runs.append((found.a.tobytes(), found.b.tobytes(), found.text_a, found.text_b))
        assert np.abs(found.a).max() > 0.1
        assert np.abs(found.b).max() > 0.1
        assert found.text_a
        assert found.text_b
    assert runs[0] == runs[1]  # though both draw from torch's one generator, from two threads
    assert [next(iter(inside(agent).threads))[:14] for agent in pair] == ["dsbeval-side-a", "dsbeval-side-b"]
    assert all(len(inside(agent).threads) <= 2 for agent in pair)
    for agent in pair:  # two seconds may be under way before the bridge waits
        side = Participant("a", agent, LogicalClock(), RATE, muted_until=0, threaded=True)
        assert side.behind == 2
        side.close()


def test_what_is_said_after_a_second_is_heard_from_its_end_on(folder: Path) -> None:
    agent = stand_in(folder, mode="duplex")
    with agent.open("", 0) as session:
        line = Line(session, agent.capabilities, agent.name)
        line.say(1, np.full(2 * RATE, 0.2, np.float32), 0)
        line.run_until(8 * RATE)
        _, model = line.record(line.now)
    # It hears second 2 to be silent, and speaks for three seconds from the end of that one on.
    loud = np.flatnonzero(np.abs(model) > 0.01)
    assert (loud[0] / RATE, loud[-1] / RATE) == (pytest.approx(3.0, abs=0.01), pytest.approx(6.0, abs=0.01))
    assert [token.sample for token in line.side.text] == [3 * RATE, 4 * RATE, 5 * RATE]


# Flush, and the end


@pytest.mark.parametrize(("flush", "end_s"), [(True, 4.0), (False, 6.0)])
def test_back_to_listening_drops_what_has_not_been_played(folder: Path, flush: bool, end_s: float) -> None:
    agent = stand_in(folder, mode="duplex", flush=flush)
    agent.open("", 0).close()
    inside(agent).fault = "interrupted"  # three seconds of sound in its first second, then it listens
    with agent.open("", 0) as session:
        line = Line(session, agent.capabilities, agent.name)
        line.say(1, np.full(2 * RATE, 0.2, np.float32), 0)
        line.run_until(8 * RATE)
        _, model = line.record(line.now)
    loud = np.flatnonzero(np.abs(model) > 0.01)
    assert loud[0] / RATE == pytest.approx(3.0, abs=0.01)
    assert loud[-1] / RATE == pytest.approx(end_s, abs=0.01)


def test_a_turn_under_way_when_the_user_has_ended_comes_to_its_end(duplex: MiniCPMo) -> None:
    with duplex.open("", 0) as session:
        session.step(second(0.2))
        assert emission(session.step(second(0.0))).text[0].text == "Well"
        rest = session.finish()
    assert isinstance(rest, list)
    assert [token.text for one in rest for token in one.text] == [", that", " is one way."]
    with duplex.open("", 0) as session:
        session.step(second(0.2))
        assert session.finish() == [Emission()] or not session.finish()[0].audio.size  # type: ignore[index]


# Faults


@pytest.mark.parametrize("mode", ["turns", "duplex"])
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("raises", "CUDA out of memory"),
        ("nan", "audio has a NaN or infinite value at sample"),
        ("mute", "an answer of 22 characters came without audio; check its synthesiser"),
        ("wordless", r"s of audio came without text; check how the text is decoded"),
    ],
)
def test_a_fault_is_an_error_of_the_case_and_the_next_one_works(
    folder: Path, mode: str, fault: str, message: str
) -> None:
    agent = stand_in(folder, mode=mode)
    agent.open("", 0).close()
    inside(agent).fault = fault
    with pytest.raises((RuntimeError, AgentError), match=message):
        record_case(agent, PACK, CASE)
    inside(agent).fault = ""
    recording = record_case(agent, PACK, CASE)
    assert recording.text


def test_a_second_that_is_not_taken_is_an_error_with_the_reason(folder: Path) -> None:
    agent = stand_in(folder, mode="duplex")
    agent.open("", 0).close()
    inside(agent).fault = "short"
    with pytest.raises(AgentError, match="it did not take second 0: audio not enough"):
        record_case(agent, PACK, CASE)
    with pytest.raises(SideError, match="side a: agent minicpm_o: it did not take second 0"):
        run_dyad(agent, stand_in(folder, mode="duplex"), ("", ""), (1, 2), window_s=4.0)
    inside(agent).fault = ""
    record_case(agent, PACK, CASE)


def test_words_ahead_of_their_sound_are_no_fault(folder: Path) -> None:
    agent = stand_in(folder, mode="duplex")
    agent.open("", 0).close()
    inside(agent).fault = "late"
    with agent.open("", 0) as session:
        session.step(second(0.2))
        said = [emission(session.step(second(0.0))) for _ in range(3)]
    assert [one.audio.size for one in said] == [0, 24_000, 24_000]
    assert "".join(token.text for one in said for token in one.text) == "Well, that is one way."


def test_seeds_are_of_the_session_and_leave_torchs_own_generator_alone(turns: MiniCPMo) -> None:
    import torch

    def say(session: Session) -> bytes:
        session.step(np.zeros(1280, np.float32))
        return emission(session.finish()).audio.tobytes()

    torch.manual_seed(99)
    expected = torch.rand(3)
    torch.manual_seed(99)
    found = []
    for seed in (1, 1, 2):
        with turns.open("", seed) as session:
            found.append(say(session))
    assert torch.equal(torch.rand(3), expected)
    assert found[0] == found[1] != found[2]
