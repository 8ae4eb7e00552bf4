"""F-Actor on a tiny random checkpoint in the released layout, with a stand-in for its codec: the agent, end to end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.f_actor import FActor
from adapters.f_actor.codec import FRAME, RATE, Codes, Ear, silence
from dsbeval.agent import Emission, Interaction, Session
from dsbeval.audio import RATE as CLOCK
from dsbeval.audio import Signal
from dsbeval.conformance import CHECKS
from dsbeval.dyadic.bridge import run_dyad
from dsbeval.dyadic.participant import SideError
from dsbeval.errors import AgentError, DsbevalError
from dsbeval.ifeval.episode import record_case
from dsbeval.ifeval.line import Line
from dsbeval.ifeval.pack import load_pack
from dsbeval.ifeval.score import score_recording
from dsbeval.loading import load_agent
from dsbeval.recording import read_recording, write_recording
from tests.adapters.f_actor_parts import STAND_IN, StandInCodec, build_checkpoint, tiny

PACK = load_pack()
PROMPT = "You are Kenji, a cook who is short of time."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_checkpoint(tmp_path_factory.mktemp("f_actor"))


@pytest.fixture(scope="module")
def agent(folder: Path, place: str) -> FActor:
    return tiny(folder, device=place)


def noise(frames: int, seed: int = 0) -> Signal:
    return (np.random.default_rng(seed).standard_normal(frames * FRAME) * 0.1).astype(np.float32)


def feed(session: Session, audio: Signal) -> list[Emission]:
    out = []
    for start in range(0, audio.size, FRAME):
        emission = session.step(audio[start : start + FRAME])
        assert isinstance(emission, Emission)
        out.append(emission)
    return out


def heard(emissions: list[Emission]) -> Signal:
    return np.concatenate([emission.audio for emission in emissions])


class Fed:
    """All partner codes that were fed to dialogues, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from adapters.f_actor.backbone import Dialogue

        self.codes: list[tuple[int, ...]] = []
        real = Dialogue.hear

        def hear(dialogue: Dialogue, own: Codes, text: int, partner: Codes) -> None:
            self.codes.append(tuple(partner.tolist()))
            real(dialogue, own, text, partner)

        monkeypatch.setattr(Dialogue, "hear", hear)

    def take(self) -> list[tuple[int, ...]]:
        taken, self.codes = self.codes, []
        return taken


# What it declares and refuses


def test_importing_it_imports_nothing_heavy(folder: Path) -> None:
    code = (
        f"import sys; from adapters.f_actor import FActor; a = FActor({str(folder)!r}); a.capabilities; a.close(); "
        "print([n for n in ('torch', 'transformers', 'safetensors', 'nemo', 'soxr', 'scipy') if n in sys.modules])"
    )
    root = Path(__file__).parents[2]
    found = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_what_it_declares(agent: FActor, folder: Path) -> None:
    found = agent.capabilities
    assert (found.interaction, found.clock) == (Interaction.FRAME_SYNCHRONOUS, "logical")
    assert (found.input_rate, found.output_rate, found.frame, found.clock_frame) == (22_050, 22_050, 1764, 1920)
    assert (found.prompt, found.seed, found.voice) == (True, True, True)
    assert found.text is False  # nobody writes it down, and nothing is invented
    assert tiny(folder, recogniser="stream").capabilities.text is True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"checkpoint": None}, "no --checkpoint is given; give maikezu/f-actor, or a folder with its files"),
        ({"checkpoint": "/nowhere"}, "/nowhere: no such file or folder, and no id on the hub"),
        ({"voice": "ton"}, "voice 'ton' is not in .*speaker_embeddings.json; did you mean tom"),
        ({"voices": "/nowhere.json"}, "/nowhere.json: no such file; the model needs a speaker vector"),
        ({"temperature": -1}, "--model-arg temperature=-1: a number from 0 on is needed"),
        ({"temperature": float("nan")}, "--model-arg temperature=nan: a number from 0 on is needed"),
        ({"temperature": "hot"}, "--model-arg temperature='hot': a number from 0 on is needed"),
        ({"top_k": 2.5}, "--model-arg top_k=2.5: a whole number from 0 on is needed"),
        ({"top_p": 0}, "--model-arg top_p=0: a number above 0 to 1 is needed"),
        ({"horizon": 4000}, "--model-arg horizon=4000: a whole number from 1 to 2048 is needed"),
        ({"look_ahead": -1}, "--model-arg look_ahead=-1: a whole number from 0 on is needed"),
        ({"backchannels": "few"}, "--model-arg backchannels='few': a whole number from 0 on is needed"),
    ],
)
def test_a_wrong_argument_is_one_line_before_anything_is_loaded(
    folder: Path, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(DsbevalError, match=message) as caught:
        tiny(folder, **arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"codec": "mimi"}, "codec is 'mimi'; give nemo, nemo:FILE.nemo, nanocodec-torch:DIR"),
        ({"codec": "nanocodec-torch:/nowhere"}, "codec: /nowhere: no such file"),
        (
            {"codec": "nemo"},
            "the package nemo_toolkit\\[tts\\] is not installed; install adapters/f_actor/requirements",
        ),
        ({"codec": "tests.adapters.f_actor_parts:Nothing"}, "codec is 'tests.adapters.f_actor_parts:Nothing'"),
        ({"codec": "tests.adapters.f_actor_parts:OtherRateStandInCodec"}, "works at 24000 Hz; .* at 22050 Hz"),
        ({"recogniser": "whisper"}, "recogniser is 'whisper'; give stream"),
        ({"device": "cuda:0"}, "device=cuda:0: torch sees no GPU here; give cpu or auto"),
    ],
)
def test_what_cannot_be_loaded_is_one_line(folder: Path, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(AgentError, match=message) as caught:
        tiny(folder, **arguments).open("", 0)
    assert "\n" not in str(caught.value)


def test_voices_that_are_not_vectors_are_named(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "voices.json"
    for text, message in (("[1]", "is not JSON of name"), ('{"tom": [1, 2]}', r"shape \(2,\); it must be 192")):
        path.write_text(text)
        with pytest.raises(AgentError, match=message):
            tiny(folder, voices=str(path))


# The contract


@pytest.mark.parametrize("name", CHECKS)
def test_conformance(agent: FActor, name: str) -> None:
    CHECKS[name](agent)


def test_equal_seeds_give_equal_audio_and_others_do_not(agent: FActor) -> None:
    audio = noise(12)
    found = {}
    for key, seed in (("one", 5), ("again", 5), ("other", 6)):
        with agent.open(PROMPT, seed) as session:
            found[key] = heard(feed(session, audio)).tobytes()
    assert found["one"] == found["again"] != found["other"]


def test_sessions_side_by_side_do_not_hear_each_other(agent: FActor) -> None:
    audio = noise(6), noise(6, 1)
    alone = []
    for seed, one in enumerate(audio):
        with agent.open("", seed) as session:
            alone.append(heard(feed(session, one)).tobytes())
    with agent.open("", 0) as one_session, agent.open("", 1) as other_session:
        together: tuple[list[Emission], list[Emission]] = ([], [])
        for k in range(6):
            for session, signal, out in zip((one_session, other_session), audio, together, strict=True):
                out.extend(feed(session, signal[k * FRAME : (k + 1) * FRAME]))
    assert [heard(out).tobytes() for out in together] == alone


def test_a_frame_must_be_a_frame_and_a_session_open(agent: FActor) -> None:
    session = agent.open("", 0)
    with pytest.raises(AgentError, match="a frame is 1764 at 22050 Hz"):
        session.step(np.zeros(1920, np.float32))
    session.close()
    with pytest.raises(AgentError, match="closed"):
        session.step(np.zeros(FRAME, np.float32))


def test_one_frame_more_than_the_horizon_is_an_error_that_says_how_to_go_on(folder: Path) -> None:
    with tiny(folder, horizon=3).open("", 0) as session:
        feed(session, noise(3))
        with pytest.raises(AgentError, match=r"longer than horizon=3 frames .* --model-arg horizon=N, up to 2048"):
            feed(session, noise(1))


def test_a_prompt_whose_end_would_be_cut_off_is_refused(agent: FActor) -> None:
    with pytest.raises(AgentError, match="the model takes 4096: shorten the system prompt"):
        agent.open("Be brief. " * 500, 0)


# Time


@pytest.mark.parametrize("look_ahead", [0, 2])
def test_no_code_depends_on_later_audio(folder: Path, monkeypatch: pytest.MonkeyPatch, look_ahead: int) -> None:
    """An impulse at sample n changes no code of a frame that ends before it, under the declared look-ahead."""
    fed = Fed(monkeypatch)
    agent = tiny(folder, look_ahead=look_ahead)
    audio = noise(14)
    with agent.open("", 0) as session:
        feed(session, audio)
    plain = fed.take()
    for sample in (5 * FRAME, 7 * FRAME + 900, 9 * FRAME - 1):
        loud = audio.copy()
        loud[sample] = 0.9
        with agent.open("", 0) as session:
            feed(session, loud)
        changed = [k for k, (one, other) in enumerate(zip(plain, fed.take(), strict=True)) if one != other]
        # Known as soon as its own frame is whole, with what was waited for; not a frame before.
        assert changed[0] == sample // FRAME, (sample, look_ahead)
    # The codec itself looks ahead: encoded whole, the impulse would have been told three frames before it came.
    whole = [StandInCodec().encode(one) for one in (audio, loud)]
    assert np.flatnonzero((whole[0] != whole[1]).any(0))[0] == 8 - StandInCodec.reach


def test_with_a_look_ahead_a_frame_is_told_later_and_encoded_as_a_whole_recording_would_be() -> None:
    codec, audio = StandInCodec(), noise(12)
    quiet = silence(codec, "f_actor")
    ear = Ear(codec, quiet, window=8, look_ahead=3, agent="f_actor")
    found = [ear.push(audio[k * FRAME : (k + 1) * FRAME]) for k in range(12)]
    assert all((codes == quiet).all() for codes in found[:3])
    np.testing.assert_array_equal(np.stack(found[3:], 1), codec.encode(audio)[:, :9])


@settings(deadline=None, max_examples=25)
@given(
    frames=st.integers(1, 12),
    window=st.integers(1, 6),
    look_ahead=st.integers(0, 4),
    at=st.floats(0, 0.999),
    seed=st.integers(0, 9),
)
def test_what_the_ear_tells_never_depends_on_what_is_still_to_come(
    frames: int, window: int, look_ahead: int, at: float, seed: int
) -> None:
    codec, audio = StandInCodec(), noise(frames, seed)
    other = audio.copy()
    n = int(at * audio.size)
    other[n:] = noise(frames, seed + 100)[n:] * 5
    told = []
    for signal in (audio, other):
        ear = Ear(codec, silence(codec, "f_actor"), window, look_ahead, "f_actor")
        told.append([ear.push(signal[k * FRAME : (k + 1) * FRAME]).tolist() for k in range(frames)])
    whole = n // FRAME
    assert told[0][:whole] == told[1][:whole]


def test_through_the_recorder_an_impulse_is_heard_in_its_frame_and_the_answer_lies_a_frame_later(
    agent: FActor, monkeypatch: pytest.MonkeyPatch
) -> None:
    fed = Fed(monkeypatch)
    returned: list[Signal] = []

    def talk(at: int | None) -> tuple[list[tuple[int, ...]], Signal]:
        with agent.open("", 0) as session:
            line = Line(session, agent.capabilities, agent.name)
            audio = np.zeros(CLOCK, np.float32)
            if at is not None:
                audio[at] = 0.9
            line.say(1, audio, 0)
            real = session.step

            def step(frame: Signal) -> Emission:
                emission = real(frame)
                assert isinstance(emission, Emission)
                returned.append(emission.audio)
                return emission

            monkeypatch.setattr(session, "step", step)
            line.run_until(CLOCK)
            channel = line.side.channel
            return fed.take(), channel.played(0, channel.cursor)

    silent, _ = talk(None)
    impulse = 5 * 1920 + 1000  # in frame 5 of the session clock
    returned.clear()
    told, played = talk(impulse)
    assert next(k for k, pair in enumerate(zip(silent, told, strict=True)) if pair[0] != pair[1]) == 5
    assert not played[:FRAME].any()
    np.testing.assert_array_equal(played[FRAME:], np.concatenate(returned))


def test_what_the_user_says_is_answered_in_the_next_frame_and_not_before(folder: Path) -> None:
    """Greedy, so that only what is heard can change what is said."""
    agent = tiny(folder, temperature=0)
    audio = np.zeros(10 * FRAME, np.float32)
    with agent.open("", 0) as session:
        quiet = [emission.audio for emission in feed(session, audio)]
    for k in (2, 5):
        loud = audio.copy()
        loud[k * FRAME + 100] = 0.9
        with agent.open("", 0) as session:
            found = [emission.audio for emission in feed(session, loud)]
        changed = [i for i, pair in enumerate(zip(quiet, found, strict=True)) if not np.array_equal(*pair)]
        assert changed[0] == k


def test_it_keeps_no_more_audio_as_time_goes_on(agent: FActor) -> None:
    with agent.open("", 0) as session:
        feed(session, noise(60))
        inside: Any = session
        assert len(inside._ear._heard) == 8
        assert len(inside._mouth._said) == 28


# Whole cases


def test_a_case_of_ifeval_from_prompt_to_verdict(folder: Path, tmp_path: Path, place: str) -> None:
    agent = load_agent("f_actor", {"codec": STAND_IN, "device": place, "window": 4}, str(folder))
    case = PACK.cases["IFD-R1-C1-i1-L2"]
    recording = record_case(agent, PACK, case, seed=1)
    write_recording(tmp_path, case.id, recording)
    kept = read_recording(tmp_path, case.id)
    assert np.abs(kept.model).max() > 0.1
    assert kept.meta["capabilities"]["input_rate"] == RATE
    assert kept.meta["prompt_taken"]
    assert kept.text == ()
    assert kept.meta["session"]["transcript"] == "missing: no recogniser was given"
    assert kept.meta["session"]["encoder"] == {"window": 4, "look_ahead": 0, "future_audio": False}
    verdict, row = score_recording(kept)
    assert row["id"] == case.id
    assert row["outcome"] == ("passed" if verdict.passed else "failed")


def test_two_of_them_hold_a_conversation(folder: Path, place: str) -> None:
    pair = (
        tiny(folder, device=place, recogniser="stream"),
        tiny(folder, device=place, voice="brian", recogniser="stream"),
    )
    found = run_dyad(*pair, ("You are Ann. You begin this conversation.", "You are Bob."), (1, 2), window_s=3.2)
    assert found.a.size == found.b.size == 3.2 * CLOCK
    assert np.abs(found.a).max() > 0.1
    assert np.abs(found.b[: int(1.4 * CLOCK)]).max() < 1e-3  # the lead-in
    assert np.abs(found.b).max() > 0.1
    assert found.text_a
    assert {side["answered_after"] for side in found.meta["sides"].values()} == {1920}


def test_what_is_being_said_when_the_window_closes_is_in_the_transcript(folder: Path) -> None:
    heard: list[float] = []

    def recogniser(audio: Signal) -> list[tuple[str, float]]:
        heard.append(audio.size / 16_000)
        return [("begun", 0.0), ("unheard", audio.size / 16_000 - 0.01)]

    found = run_dyad(tiny(folder, recogniser=recogniser), tiny(folder), ("", ""), (1, 2), window_s=2.4, lead_in_s=0.0)
    assert heard[-1] > 0.5  # it speaks without a pause
    assert found.text_a[-1].text.strip() == "begun"
    begun = found.length + 1920 - round(heard[-1] * CLOCK)  # frames are answered a frame later
    assert found.text_a[-1].sample == pytest.approx(begun, abs=2)


# Faults


def test_a_model_that_raises_in_mid_step_is_an_error_and_the_next_session_works(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from adapters.f_actor.backbone import Dialogue

    agent, audio = tiny(folder), noise(6)
    with agent.open("", 0) as session:
        whole = heard(feed(session, audio)).tobytes()
    real, calls = Dialogue._forward, 0

    def forward(dialogue: Dialogue, rows: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 30:
            raise RuntimeError("CUDA error: out of memory")
        return real(dialogue, rows)

    monkeypatch.setattr(Dialogue, "_forward", forward)
    with pytest.raises(RuntimeError, match="out of memory"):
        record_case(agent, PACK, PACK.cases["IFD-R1-C1-i1-L2"])
    calls = 0
    with pytest.raises(SideError, match=r"side [ab]: agent f_actor: RuntimeError: CUDA error: out of memory"):
        run_dyad(agent, tiny(folder), ("", ""), (1, 2), window_s=3.0, concurrent=False)
    monkeypatch.undo()
    with agent.open("", 0) as session:
        assert heard(feed(session, audio)).tobytes() == whole


def test_weights_that_give_nan_are_an_error_of_the_step(folder: Path) -> None:
    agent = tiny(folder)
    session: Any = agent.open("", 0)
    feed(session, noise(2))
    real = session._dialogue._forward
    session._dialogue._forward = lambda rows: real(rows) * float("nan")
    with pytest.raises(AgentError, match="the model's logits are NaN at step 5; check weights and dtype"):
        session.step(noise(1))
    session._dialogue._forward = real
    with pytest.raises(AgentError, match="the session broke in an earlier step; open another one"):
        session.step(noise(1))


@pytest.mark.parametrize(
    ("codec", "message"),
    [
        ("ShortStandInCodec", r"the codec gave \(0,\) samples for 1 frames of 1764"),
        ("NanStandInCodec", "audio has a NaN or infinite value at sample 0"),
    ],
)
def test_a_codec_that_gives_no_audio_or_none_that_is_finite_is_an_error(folder: Path, codec: str, message: str) -> None:
    agent = tiny(folder, codec=f"tests.adapters.f_actor_parts:{codec}")
    with pytest.raises(AgentError, match=message):
        record_case(agent, PACK, PACK.cases["IFD-R1-C1-i1-L2"])


def test_the_model_may_end_the_conversation_where_it_is_let(tmp_path: Path) -> None:
    folder = build_checkpoint(tmp_path / "ends", end_bias=30.0)
    with tiny(folder).open("", 0) as session:
        assert not any(emission.done for emission in feed(session, noise(4)))
    with tiny(folder, may_end=True).open("", 0) as session:
        first = session.step(noise(1))
    assert isinstance(first, Emission)
    assert first.done
    assert not first.audio.size


def test_the_prompt_reaches_the_model(agent: FActor) -> None:
    found = set()
    for prompt in ("", PROMPT, PROMPT + " You begin this conversation."):
        with agent.open(prompt, 0) as session:
            found.add(heard(feed(session, noise(4))).tobytes())
    assert len(found) == 3


def test_voices_sound_unlike(folder: Path) -> None:
    names = json.loads((folder / "speaker_embeddings.json").read_text())
    found = set()
    for name in names:
        with tiny(folder, voice=name.upper()).open("", 0) as session:
            found.add(heard(feed(session, noise(3))).tobytes())
    assert len(found) == len(names)
