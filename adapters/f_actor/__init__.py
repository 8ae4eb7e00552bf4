"""``f_actor``: F-Actor (maikezu/f-actor), a Llama that writes both sides of a spoken dialogue as NanoCodec frames.

The model has no function for a live partner: here it is given the partner's real frames one by one and its own guess at
them is thrown away (:mod:`adapters.f_actor.backbone`). It is a scripted actor: it plays the part that its prompt tells.

Conventions
-----------
* 22,050 Hz in and out, frames of 1,764 samples (80 ms).
* After the user's frame k the model's frame k+1 is sampled and returned; it is heard where frame k+1 lies, as in training.
  The model's frame 0 would be heard before anything has been: it is silence, to the model too.
* No code that is fed depends on a later sample than its frame's last (:class:`adapters.f_actor.codec.Ear`); with
  ``look_ahead=L`` everything is heard L frames later.
* Defaults are those of the published runs: temperature 1.0, top-k 40, top-p 0.9, 1,024 frames. The model's own script has
  temperature 0.9 and top-p 1.0.
* No heavy package is imported before a session is opened.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapters.f_actor.backbone import DELAY, MARKS, Backbone, Dialogue, Sampling
from adapters.f_actor.codec import ENTRIES, FRAME, MEMORY, RATE, WINDOW, Codec, Codes, Ear, Mouth, load_codec, silence
from adapters.f_actor.prompt import Behaviour, model_prompt
from adapters.f_actor.transcript import NoTranscript, Recognised, StreamWords, Transcript, Words, load_recogniser
from adapters.kyutai.options import choose_device
from adapters.local import check_heard, check_number, weights_folder
from dsbeval.agent import Agent, Capabilities, Emission, Interaction, Session, TextToken
from dsbeval.audio import Signal
from dsbeval.errors import AgentError, near

HUB_ID = "maikezu/f-actor"
VOICES = "speaker_embeddings.json"
TRAINED = 2048
"""Frames that a training dialogue had at most."""


class FActor(Agent):
    """The agent.

    Parameters
    ----------
    checkpoint : str or None
        ``maikezu/f-actor``, or a folder with its weights and tokenizer.
    device : str
        ``auto``, ``cpu``, ``cuda``, ``cuda:N``.
    dtype : str
        ``auto`` (bfloat16 on a GPU, float32 on the CPU) or a dtype of torch. The codec is always float32.
    codec : str
        ``nemo`` or ``nemo:FILE.nemo``; ``nanocodec-torch:DIR``, a port; or ``package.module:Class``.
    voice : str
        A name in the file of voices.
    voices : str
        JSON of name -> 192 numbers; ``speaker_embeddings.json`` in the checkpoint where it is empty.
    recogniser : str or callable
        Who writes the transcript down: ``nemo`` (parakeet-tdt-0.6b-v2, as published), ``nemo:FILE.nemo``, ``pocketsphinx``,
        ``faster-whisper:DIR``, ``package.module:function`` (16 kHz audio to a text); ``stream`` takes the model's own text.
        Empty: nobody, and the agent declares that it gives no text.
    temperature, top_k, top_p : number
    horizon : int
        Frames of a session; one more is an error. Training dialogues had 2,048 at most.
    window, look_ahead : int
        Frames that the encoder looks back on, and frames that it waits for.
    may_end : bool
        Whether the model may end the conversation. Otherwise its end id is never drawn.
    name, partner, backchannels, interruptions
        See :class:`adapters.f_actor.prompt.Behaviour`.
    """

    name = "f_actor"
    checkpoint_files = ("*.json", "*.safetensors", "tokenizer.model")

    def __init__(
        self,
        checkpoint: str | None = None,
        device: str = "auto",
        dtype: str = "auto",
        codec: str = "nemo",
        voice: str = "tom",
        voices: str = "",
        recogniser: str | Callable[[Signal], Words] = "",
        temperature: float = 1.0,
        top_k: int = 40,
        top_p: float = 0.9,
        horizon: int = 1024,
        window: int = WINDOW,
        look_ahead: int = 0,
        may_end: bool = False,
        name: str = "",
        partner: str = "Alex",
        backchannels: int = 2,
        interruptions: int = 2,
    ) -> None:
        check_number(self.name, "temperature", temperature, least=0)
        check_number(self.name, "top_p", top_p, least=0, most=1, above=True)
        check_number(self.name, "horizon", horizon, least=1, most=TRAINED, whole=True)
        counts = {
            "top_k": top_k,
            "look_ahead": look_ahead,
            "backchannels": backchannels,
            "interruptions": interruptions,
        }
        for argument, (value, least) in {
            "window": (window, 1),
            **{key: (one, 0) for key, one in counts.items()},
        }.items():
            check_number(self.name, argument, value, least=least, whole=True)
        self._folder = weights_folder(self.name, checkpoint, HUB_ID, self.checkpoint_files, ())
        self._voice_name = str(voice)
        self._voice = _voice(Path(voices) if voices else self._folder / VOICES, voice)
        self._device, self._dtype, self._codec_spec = str(device), str(dtype), str(codec)
        self._recogniser = recogniser
        self._sampling = Sampling(float(temperature), top_k, float(top_p))
        self._behaviour = Behaviour(str(name), str(partner), backchannels, interruptions)
        self._horizon, self._window, self._look_ahead = horizon, window, look_ahead
        self._may_end = may_end
        self._loaded: tuple[Backbone, Codec, Codes, Callable[[], Transcript]] | None = None

    @property
    def capabilities(self) -> Capabilities:
        """80 ms frames at 22,050 Hz. Text only where somebody writes it down."""
        return Capabilities(
            Interaction.FRAME_SYNCHRONOUS,
            input_rate=RATE,
            output_rate=RATE,
            frame=FRAME,
            voice=True,
            text=bool(self._recogniser),
        )

    def open(self, prompt: str, seed: int) -> Session:
        """Return a session in a fresh state; the first one loads the models."""
        backbone, codec, quiet, transcript = self._loaded = self._loaded or self._load()
        closed = [backbone.delay_id] if self._may_end else [backbone.delay_id, backbone.end_id]
        ids = backbone.prompt_ids(model_prompt(prompt, self._behaviour))
        dialogue = Dialogue(backbone, ids, self._voice, self._sampling, seed, closed)
        return FActorSession(
            dialogue,
            Ear(codec, quiet, self._window, self._look_ahead, self.name),
            Mouth(codec, MEMORY, self.name),
            transcript(),
            quiet,
            self._horizon,
            {mark: backbone.marks[mark] for mark in MARKS},
            self._declared(),
        )

    def _declared(self) -> dict[str, Any]:
        """Return what a recording keeps about how the model was run."""
        given = self._recogniser
        return {
            "codec": self._codec_spec,
            "encoder": {"window": self._window, "look_ahead": self._look_ahead, "future_audio": False},
            "sampling": asdict(self._sampling),
            "behaviour": asdict(self._behaviour),
            "voice": self._voice_name,
            "transcript": (given if isinstance(given, str) else "a function")
            if given
            else "missing: no recogniser was given",
        }

    def _load(self) -> tuple[Backbone, Codec, Codes, Callable[[], Transcript]]:
        device = choose_device(self.name, self._device)
        codec = load_codec(self._codec_spec, device, self.name)
        backbone = Backbone(self._folder, device, self._dtype)
        if backbone.entries != ENTRIES:
            raise AgentError(
                f"agent f_actor: {self._folder} has {backbone.entries} audio ids a stream; the codec has {ENTRIES} codes"
            )
        transcript: Callable[[], Transcript] = NoTranscript
        if self._recogniser == "stream":
            transcript = lambda: StreamWords(backbone)  # noqa: E731  a name each would only say the same
        elif self._recogniser:
            given = self._recogniser
            recognise = load_recogniser(given, device) if isinstance(given, str) else given
            transcript = lambda: Recognised(recognise)  # noqa: E731
        return backbone, codec, silence(codec, self.name), transcript

    def close(self) -> None:
        """Free the models."""
        self._loaded = None


def _voice(path: Path, name: str) -> NDArray[np.float32]:
    """Return a speaker vector, shape (192,)."""
    if not path.is_file():
        raise AgentError(
            f"agent f_actor: {path}: no such file; the model needs a speaker vector: give --model-arg voices=FILE.json with "
            "192 numbers a name (the model's repository has one in training/example_speakers)"
        )
    try:
        voices = {str(key).lower(): value for key, value in json.loads(path.read_text(encoding="utf-8")).items()}
        chosen = voices.get(str(name).lower())
        vector = np.asarray(chosen if chosen is not None else [], np.float32)
    except (ValueError, AttributeError, TypeError):
        raise AgentError(f"agent f_actor: {path} is not JSON of name -> 192 numbers") from None
    if chosen is None:
        raise AgentError(f"agent f_actor: voice {name!r} is not in {path}; {near(str(name).lower(), voices)}")
    if vector.shape != (192,) or not np.isfinite(vector).all():
        raise AgentError(f"agent f_actor: {path}: voice {name} has shape {vector.shape}; it must be 192 finite numbers")
    return vector


class FActorSession(Session):
    """One conversation."""

    def __init__(
        self,
        dialogue: Dialogue,
        ear: Ear,
        mouth: Mouth,
        transcript: Transcript,
        quiet: Codes,
        horizon: int,
        marks: Mapping[str, int],
        declared: Mapping[str, Any],
    ) -> None:
        self._dialogue: Dialogue | None = dialogue
        self._ear, self._mouth, self._transcript, self._horizon = ear, mouth, transcript, horizon
        self._frames = 0
        self._broken = False
        self._names = {text_id: name for name, text_id in marks.items()}
        self._declared = dict(declared)
        self._marked: list[tuple[int, str]] = []
        # Frame 0 cannot be heard: it is silence, in what is said and in what the model believes to have said.
        _, self._text, _ = dialogue.sample()
        self._own = quiet
        mouth.push(quiet)
        opening = (*dialogue.delayed, self._text)
        self._early = tuple(
            TextToken(token.text, token.offset_s - (len(opening) - step) * FRAME / RATE)
            for step, text in enumerate(opening)
            for token in transcript.push(np.zeros(FRAME, np.float32), text)
        )
        """Words that ended before the first frame that is heard."""

    def step(self, heard: Signal) -> Emission:
        """Hear the user's frame and return the model's next one."""
        if self._dialogue is None:
            raise AgentError("agent f_actor: the session is closed; open another one")
        if self._broken:
            raise AgentError("agent f_actor: the session broke in an earlier step; open another one")
        check_heard("f_actor", heard, FRAME, RATE)
        if self._frames >= self._horizon:
            raise AgentError(
                f"agent f_actor: the session is longer than horizon={self._horizon} frames "
                f"({self._horizon * FRAME / RATE:.1f} s); shorten it, or give --model-arg horizon=N, up to {TRAINED}"
            )
        self._broken = True  # until the whole of the step has been taken: half of it is in the cache for good
        emission = self._answer(self._dialogue, heard)
        self._broken = False
        return emission

    def _answer(self, dialogue: Dialogue, heard: Signal) -> Emission:
        self._frames += 1
        dialogue.hear(self._own, self._text, self._ear.push(heard))
        self._own, self._text, over = dialogue.sample()
        if self._text in self._names:
            self._marked.append((self._frames + DELAY, self._names[self._text]))
        if over:
            return Emission(text=self._transcript.finish(), done=True)
        audio = self._mouth.push(self._own)
        words = self._early + self._transcript.push(audio, self._text)
        self._early = ()
        return Emission(audio, words, rate=RATE)

    def finish(self) -> Emission:
        """Return the words of what was still being said."""
        return Emission(text=self._transcript.finish())

    def cut_off(self) -> Emission:
        """Return the same: they were heard."""
        return self.finish()

    def facts(self) -> dict[str, Any]:
        """Return how the model was run, and the frames before which it marked a backchannel or an interruption of its own."""
        return self._declared | {"marks": [{"frame": frame, "mark": mark} for frame, mark in self._marked]}

    def close(self) -> None:
        """Let go of the cache."""
        self._dialogue = None
