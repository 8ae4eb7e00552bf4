"""The parts of F-Actor: prompt, backbone against the model's own code, checkpoint on disk, real codec port, transcript."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from adapters.f_actor.backbone import Backbone, Dialogue, Sampling, probabilities
from adapters.f_actor.codec import FRAME, RATE, Ear, Mouth, load_codec, silence
from adapters.f_actor.prompt import Behaviour, model_prompt
from adapters.f_actor.transcript import Recognised, StreamWords, load_recogniser
from dsbeval.audio import RATE as CLOCK
from dsbeval.audio import Signal, resample
from dsbeval.errors import AgentError, DsbevalError
from dsbeval.speech.bank import load_bank
from tests.adapters.f_actor_parts import build_checkpoint, tiny
from tests.adapters.nanocodec_parts import build_nanocodec

GOLDEN = Path(__file__).parents[1] / "golden" / "f_actor" / "tokens.json"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_checkpoint(tmp_path_factory.mktemp("f_actor"))


# The prompt


def test_the_prompt_has_the_models_form_and_the_system_prompt_in_one_paragraph() -> None:
    text = model_prompt("You are Kenji, a cook.\n\n  Be brief. You begin this conversation.", Behaviour(partner="Rosa"))
    lines = text.split("\n")
    assert lines[0].startswith("Generate a dialogue between you (Kenji) and another speaker (Rosa) ")
    assert lines[1:4] == [
        "",
        "Narrative:",
        "- You are on a voice call with Rosa and take this part in it. You are Kenji, a cook. Be brief. "
        "You begin this conversation.",
    ]
    assert lines[4:9] == [
        "",
        "Your behaviors:",
        "- backchannels: 2",
        "- interruptions: 2",
        "- starts the dialogue: True",
    ]
    assert lines[9] == ""
    assert lines[-1] == "<|SOS|>"
    assert len(lines) == 12


def test_an_empty_prompt_is_a_chat_and_names_and_counts_can_be_given() -> None:
    text = model_prompt("", Behaviour("Ann", "Bob", 7, 0))
    assert "(Ann)" in text
    assert "- You have a friendly chat with Bob about whatever comes up." in text
    assert "- backchannels: 7\n- interruptions: 0\n- starts the dialogue: False\n" in text


# The backbone


def test_two_dialogues_forced_with_each_others_codes_say_what_the_models_own_code_says(tmp_path: Path) -> None:
    """Greedy tokens of the model's own generate, two copies talking to each other; see tests/golden/README.md."""
    golden = json.loads(GOLDEN.read_text())
    model = Backbone(build_checkpoint(tmp_path, entries=40, seed=3, end_bias=-30.0), "cpu", "auto")
    voices = json.loads((tmp_path / "speaker_embeddings.json").read_text())
    greedy = Sampling(0.0, 0, 1.0)
    sides = [
        Dialogue(model, model.prompt_ids(prompt), np.asarray(voices[name], np.float32), greedy, 0)
        for prompt, name in zip(golden["prompts"], golden["voices"], strict=True)
    ]
    audio: list[list[list[int]]] = [[], []]
    text = [list(side.delayed) for side in sides]
    steps = len(golden["text"][0])
    for _ in range(steps - 2):
        said = [side.sample() for side in sides]
        for i, side in enumerate(sides):
            audio[i].append(said[i][0].tolist())
            text[i].append(said[i][1])
            side.hear(said[i][0], said[i][1], said[1 - i][0])
    assert text == golden["text"]
    assert [row[2:] for row in golden["audio"]] == [list(book) for side in audio for book in zip(*side, strict=True)]
    assert {row[0] for row in golden["audio"]} == {40}  # the delay id


def test_what_is_drawn_from_is_tempered_then_the_top_k_then_the_top_p() -> None:
    import torch

    logits = torch.tensor([[2.0, 1.0, 1.0, 0.0, -1.0]])
    plain = np.exp([2.0, 1.0, 1.0, 0.0, -1.0]) / np.exp([2.0, 1.0, 1.0, 0.0, -1.0]).sum()

    def odds(*sampling: Any) -> list[float]:
        found: list[float] = probabilities(torch, logits, Sampling(*sampling))[0].tolist()
        return found

    assert odds(1.0, 0, 1.0) == pytest.approx(plain.tolist())
    cool = np.exp([4.0, 2.0, 2.0, 0.0, -2.0])
    assert odds(0.5, 0, 1.0) == pytest.approx((cool / cool.sum()).tolist())
    kept = plain[:3] / plain[:3].sum()
    assert odds(1.0, 2, 1.0) == pytest.approx([*kept.tolist(), 0, 0])  # a tie with the second is kept
    assert odds(1.0, 1, 1.0) == pytest.approx([1, 0, 0, 0, 0])
    assert odds(1.0, 0, 0.5) == pytest.approx([1, 0, 0, 0, 0])
    assert odds(1.0, 0, 0.95) == pytest.approx([*(plain[:4] / plain[:4].sum()).tolist(), 0])
    assert odds(1.0, 0, 1e-9) == pytest.approx([1, 0, 0, 0, 0])


def test_closed_ids_are_never_drawn(tmp_path: Path) -> None:
    model = Backbone(build_checkpoint(tmp_path, entries=40, end_bias=30.0), "cpu", "auto")
    hot = Sampling(2.0, 0, 1.0)
    for closed, ends in (([model.delay_id, model.end_id], False), ([model.delay_id], True)):
        dialogue = Dialogue(model, [1, 2], np.zeros(192, np.float32), hot, 0, closed)
        drawn = [dialogue.sample() for _ in range(20)]
        assert any(over for _, _, over in drawn) is ends
        assert all((own != model.delay_id).all() for own, _, _ in drawn)


# The checkpoint on disk


def test_shards_and_a_folder_of_the_best_model_load_as_one_file_does(folder: Path, tmp_path: Path) -> None:
    build_checkpoint(tmp_path / "sharded", shards=True)
    shutil.copytree(folder, tmp_path / "outer" / "best_model")
    found = []
    for place in (folder, tmp_path / "sharded", tmp_path / "outer"):
        model = Backbone(place, "cpu", "auto")
        dialogue = Dialogue(model, [1, 2, 3], np.ones(192, np.float32), Sampling(1.0, 40, 0.9), 0)
        found.append([dialogue.sample()[0].tolist() for _ in range(3)])
    assert found[0] == found[1] == found[2]


def rewrite(source: Path, to: Path, change: Any) -> Path:
    """Copy a checkpoint and let ``change`` alter its tensors."""
    from safetensors.torch import load_file, save_file

    shutil.copytree(source, to)
    weights = load_file(str(to / "model.safetensors"))
    change(weights)
    save_file(weights, str(to / "model.safetensors"), metadata={"format": "pt"})
    return to


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("dsu_head.weight", "lacks the weight dsu_head.weight; it is not an F-Actor checkpoint with audio heads"),
        ("audio_embeds.7.weight", "lacks the weight audio_embeds.7.weight"),
        ("speaker_embed_proj.bias", "lacks the weight speaker_embed_proj.bias"),
        ("model.layers.1.mlp.up_proj.weight", "lacks the weight model.layers.1.mlp.up_proj.weight"),
    ],
)
def test_a_weight_that_is_missing_is_named_and_never_random(
    folder: Path, tmp_path: Path, name: str, message: str
) -> None:
    place = rewrite(folder, tmp_path / "less", lambda weights: weights.pop(name))
    with pytest.raises(AgentError, match=message):
        tiny(place).open("", 0)


def test_a_weight_of_another_shape_is_named(folder: Path, tmp_path: Path) -> None:
    def narrow(weights: Any) -> None:
        weights["audio_embeds.2.weight"] = weights["audio_embeds.2.weight"][:, :-1].contiguous()

    with pytest.raises(AgentError, match="size mismatch for weight") as caught:
        tiny(rewrite(folder, tmp_path / "narrow", narrow)).open("", 0)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tokenizer.json", "{}", r"spoilt: cannot be loaded \(\w+: "),
        ("config.json", '{"model_type": "llama", "hidden_size": 24, "num_attention_heads": 4}', r"spoilt: "),
        ("config.json", "{", r"config.json: not valid JSON .*; get it again"),
        ("model.safetensors", "", r"model.safetensors: no safetensors file; get it again"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line(
    folder: Path, tmp_path: Path, name: str, content: str, message: str
) -> None:
    place = Path(shutil.copytree(folder, tmp_path / "spoilt"))
    (place / name).write_text(content)
    with pytest.raises(DsbevalError, match=message) as caught:
        tiny(place).open("", 0)
    assert "\n" not in str(caught.value)


def test_another_codebook_or_another_tokenizer_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="has 40 audio ids a stream; the codec has 4032 codes"):
        tiny(build_checkpoint(tmp_path / "small", entries=40)).open("", 0)
    other = Path(shutil.copytree(folder, tmp_path / "other"))
    for file in other.glob("*token*.json"):
        file.write_text(file.read_text().replace("[WORD_PAD]", "[ANOTHER]"))
    with pytest.raises(AgentError, match=r"the tokenizer has no \[WORD_PAD\]; it is not F-Actor's"):
        tiny(other).open("", 0)


# The codec: the real port of NanoCodec with tiny random weights


def test_the_real_port_a_frame_at_a_time_gives_what_it_gives_whole_and_hears_nothing_early(tmp_path: Path) -> None:
    codec = load_codec(f"nanocodec-torch:{build_nanocodec(tmp_path)}", "cpu", "f_actor")
    rng = np.random.default_rng(0)
    audio = (rng.standard_normal(10 * FRAME) * 0.3).astype(np.float32)
    loud = audio.copy()
    loud[8 * FRAME :] = -0.9
    whole, other = codec.encode(audio), codec.encode(loud)
    assert whole.shape == (4, 10)
    assert np.unique(whole).size > 8
    early = np.flatnonzero((whole != other).any(0))
    assert early[0] < 8  # encoded whole, the codes of earlier frames tell of what is to come
    quiet = silence(codec, "f_actor")
    assert quiet.tolist() != [0, 0, 0, 0]
    told = []
    for signal in (audio, loud):
        ear = Ear(codec, quiet, window=6, look_ahead=0, agent="f_actor")
        told.append(np.stack([ear.push(signal[k * FRAME : (k + 1) * FRAME]) for k in range(10)]))
    assert np.flatnonzero((told[0] != told[1]).any(1))[0] == 8
    mouth = Mouth(codec, 28, "f_actor")
    pieces = np.concatenate([mouth.push(whole[:, k]) for k in range(6)])
    assert np.abs(pieces).max() > 0.01
    np.testing.assert_allclose(pieces, codec.decode(whole)[: 6 * FRAME], atol=1e-4)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("pre_conv", "is not a NanoCodec"),
        ("res_layers.1.res_blocks.0", "not a NanoCodec"),
        ("activations.2", "activations"),
    ],
)
def test_a_codec_file_that_is_not_whole_is_named(tmp_path: Path, part: str, message: str) -> None:
    place = build_nanocodec(tmp_path, leave_out=part)
    with pytest.raises(AgentError, match=message):
        load_codec(f"nanocodec-torch:{place}", "cpu", "f_actor")


class FakeNemo:
    """Has the call names of NeMo's codec and recogniser, and keeps what it is called with."""

    sample_rate = RATE

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    def from_pretrained(self, name: str) -> FakeNemo:
        self.calls.append(("from_pretrained", name))
        return self

    def restore_from(self, path: str) -> FakeNemo:
        self.calls.append(("restore_from", path))
        return self

    def to(self, device: str) -> FakeNemo:
        self.calls.append(("to", device))
        return self

    def eval(self) -> FakeNemo:
        return self

    def encode(self, *, audio: Any, audio_len: Any) -> tuple[Any, Any]:
        import torch

        self.calls.append(("encode", (tuple(audio.shape), audio_len.tolist())))
        return torch.full((1, 4, audio.shape[1] // FRAME), 7, dtype=torch.int32), audio_len // FRAME

    def decode(self, *, tokens: Any, tokens_len: Any) -> tuple[Any, Any]:
        import torch

        self.calls.append(("decode", (tuple(tokens.shape), str(tokens.dtype), tokens_len.tolist())))
        return torch.zeros(1, tokens.shape[2] * FRAME), tokens_len * FRAME

    def transcribe(self, audio: list[Signal], *, timestamps: bool, verbose: bool) -> list[Any]:
        self.calls.append(("transcribe", [one.dtype.name for one in audio]))
        return [SimpleNamespace(timestamp={"word": [{"word": "well", "start": 0.32, "end": 0.5}]})]


@pytest.fixture
def nemo(monkeypatch: pytest.MonkeyPatch) -> FakeNemo:
    fake = FakeNemo()
    for name in ("nemo", "nemo.collections", "nemo.collections.tts", "nemo.collections.asr"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    for name, cls in (("tts", "AudioCodecModel"), ("asr", "ASRModel")):
        module = ModuleType(f"nemo.collections.{name}.models")
        setattr(module, cls, fake)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return fake


def test_wire_and_call_shape_only_of_the_codec_in_nemo(nemo: FakeNemo) -> None:
    codec = load_codec("nemo", "cpu", "f_actor")
    assert codec.encode(np.zeros(3 * FRAME, np.float32)).tolist() == [[7] * 3] * 4
    assert codec.decode(np.zeros((4, 2), np.int64)).shape == (2 * FRAME,)
    load_codec("nemo:/models/codec.nemo", "cpu", "f_actor")
    assert nemo.calls == [
        ("from_pretrained", "nvidia/nemo-nano-codec-22khz-0.6kbps-12.5fps"),
        ("to", "cpu"),
        ("encode", ((1, 3 * FRAME), [3 * FRAME])),
        ("decode", ((1, 4, 2), "torch.int64", [2])),
        ("restore_from", "/models/codec.nemo"),
        ("to", "cpu"),
    ]


def test_wire_and_call_shape_only_of_the_recogniser_in_nemo(nemo: FakeNemo) -> None:
    recognise = load_recogniser("nemo", "cpu")
    assert recognise(np.zeros(16_000, np.float32)) == [("well", 0.32)]
    assert nemo.calls == [
        ("from_pretrained", "nvidia/parakeet-tdt-0.6b-v2"),
        ("to", "cpu"),
        ("transcribe", ["float32"]),
    ]


# The transcript


def tone(frames: int) -> list[Signal]:
    return [np.full(FRAME, 0.1, np.float32)] * frames


def quiet_frames(frames: int) -> list[Signal]:
    return [np.zeros(FRAME, np.float32)] * frames


def test_an_utterance_is_recognised_when_it_has_ended_and_placed_where_it_was_said() -> None:
    lengths: list[int] = []

    def recognise(audio: Signal) -> list[tuple[str, float]]:
        lengths.append(audio.size)
        return [("one", 0.08), (" two ", 0.24), ("", 0.3)]

    transcript = Recognised(recognise)
    frames = [*quiet_frames(3), *tone(5), *quiet_frames(10), *tone(2)]
    said = [(k + token.offset_s / 0.08, token.text) for k, f in enumerate(frames) for token in transcript.push(f, 0)]
    said += [(len(frames) + token.offset_s / 0.08, token.text) for token in transcript.finish()]
    # The utterance begins in frame 3 and is heard from the frame before it; the last one had not ended.
    assert [(round(at, 6), text) for at, text in said] == [(3.0, "one"), (5.0, " two"), (18.0, " one"), (20.0, " two")]
    assert lengths == [-(-12 * FRAME * 16_000 // RATE), -(-3 * FRAME * 16_000 // RATE)]


def test_a_long_utterance_is_heard_in_pieces_cut_where_it_is_quietest() -> None:
    pieces: list[int] = []

    def recognise(audio: Signal) -> str:
        pieces.append(round(audio.size / 16_000 / 0.08))
        return "words"

    transcript = Recognised(recognise)
    frames = tone(130)
    frames[90] = np.full(FRAME, 0.02, np.float32)
    found = [token for frame in frames for token in transcript.push(frame, 0)]
    assert pieces == [91]
    assert [token.text for token in found] == ["words"]
    assert [token.text for token in transcript.finish()] == [" words"]
    assert pieces == [91, 39]


def test_silence_is_not_transcribed() -> None:
    transcript = Recognised(lambda audio: "invented")
    assert not [token for frame in quiet_frames(30) for token in transcript.push(frame, 0)]
    assert transcript.finish() == ()


def test_words_of_the_text_stream_are_parted_by_its_marks_and_lie_where_their_audio_does(folder: Path) -> None:
    model = Backbone(folder, "cpu", "auto")
    ids = {
        name: model.tokenizer.convert_tokens_to_ids(name) for name in ("[SILENCE_PAD]", "[WORD_PAD]", "[BC]", "<|end|>")
    }
    pad = ids["[SILENCE_PAD]"]
    stream = [
        pad,
        pad,
        *model.tokenizer("hé").input_ids,
        ids["[WORD_PAD]"],
        ids["[BC]"],
        *model.tokenizer("mm").input_ids,
    ]
    transcript = StreamWords(model)
    found = [
        (step - 2 + round(token.offset_s / 0.08), token.text)  # audio frame step - 2 comes with it
        for step, text_id in enumerate(stream)
        for token in transcript.push(np.zeros(FRAME, np.float32), text_id)
    ]
    frames = len(stream) - 2
    found += [(frames + round(token.offset_s / 0.08), token.text) for token in transcript.finish()]
    assert found == [(2, "hé"), (7, " mm")]  # the first ids of the words stand at steps 2 and 7


def test_a_given_function_writes_the_transcript_down(folder: Path) -> None:
    agent = tiny(folder, recogniser=lambda audio: f"{audio.size} samples")
    assert agent.capabilities.text
    with agent.open("", 0) as session:
        for _ in range(3):
            session.step(np.zeros(FRAME, np.float32))
        end = session.finish()
    assert [token.text for token in end.text] in ([], ["5120 samples"])  # type: ignore[union-attr]
    named = load_recogniser("tests.adapters.f_actor_parts:words", "cpu")
    assert named(np.zeros(10, np.float32)) == "ten"
    with pytest.raises(AgentError, match=r"recogniser is 'tests.adapters.f_actor_parts:none': .* give package"):
        load_recogniser("tests.adapters.f_actor_parts:none", "cpu")


def test_a_real_recogniser_hears_what_was_said() -> None:
    speech = resample(load_bank()["reply"].audio, CLOCK, RATE)
    audio = np.concatenate(
        [np.zeros(FRAME, np.float32), speech, np.zeros(12 * FRAME - speech.size % FRAME, np.float32)]
    )
    transcript = Recognised(load_recogniser("pocketsphinx", "cpu"))
    frames = [audio[k : k + FRAME] for k in range(0, audio.size - FRAME + 1, FRAME)]
    found = [token for frame in frames for token in transcript.push(frame, 0)]
    assert len(" ".join(token.text for token in found).split()) >= 3
