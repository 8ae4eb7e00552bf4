"""The codec of F-Actor behind one small protocol, and how it is used a frame at a time.

Conventions
-----------
* NanoCodec: 22,050 Hz, frames of 1,764 samples (80 ms), four codebooks of 4,032 entries. A codec keeps no state.
* Its decoder is causal with a memory of 28 frames: decoding the last 28 and keeping the newest gives what decoding all of
  them would give.
* Its encoder is *not* causal: a frame's codes depend on about 14 frames after it. Encoding a whole recording would
  therefore tell the model what the user is about to say. Here a frame is encoded in a window that ends with the newest
  frame heard, so the codes that are fed for a frame never depend on a later sample: :class:`Ear`.
* ``look_ahead`` waits that many frames more before a frame is encoded. The model then hears everything that much later,
  and nothing earlier.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from adapters.local import as_signal, load_object, load_package
from dsbeval.audio import Signal
from dsbeval.errors import AgentError

Codes = NDArray[np.int64]

RATE, FRAME, BOOKS, ENTRIES = 22_050, 1764, 4, 4032
MEMORY = 28
"""Frames that the decoder looks back on, the newest one included."""
WINDOW = 30
"""Frames that the encoder is given, up to the one that is encoded."""
NEMO_ID = "nvidia/nemo-nano-codec-22khz-0.6kbps-12.5fps"


class Codec(Protocol):
    """Audio to codes and back, whole frames at a time, without a state."""

    rate: int

    def encode(self, audio: Signal) -> Codes:
        """Return the codes, shape ``(4, frames)``, of a whole number of frames."""

    def decode(self, codes: Codes) -> Signal:
        """Return 1,764 samples for each frame of codes, shape ``(4, frames)``."""


def load_codec(spec: str, device: str, agent: str) -> Codec:
    """Load ``nemo[:ID or FILE.nemo]``, ``nanocodec-torch:DIR`` or ``package.module:Class``.

    Raises :class:`AgentError` when it is none of these, is not installed, or works at another rate.
    """
    kind, _, place = spec.partition(":")
    if kind == "nemo":
        codec: Codec = Nemo(place or NEMO_ID, device, agent)
    elif kind == "nanocodec-torch" and place:
        codec = Port(Path(place), device, agent)
    elif place and "." in kind:
        codec = load_object(agent, "codec", spec)()
    else:
        raise AgentError(
            f"agent {agent}: codec is {spec!r}; give nemo, nemo:FILE.nemo, nanocodec-torch:DIR or package.module:Class"
        )
    if codec.rate != RATE:
        raise AgentError(f"agent {agent}: codec {spec} works at {codec.rate} Hz; the model's codes are at {RATE} Hz")
    return codec


class Nemo:
    """NanoCodec as NeMo has it."""

    def __init__(self, place: str, device: str, agent: str) -> None:
        self._torch = load_package(agent, "torch", "torch")
        cls = load_package(agent, "nemo.collections.tts.models", "nemo_toolkit[tts]").AudioCodecModel
        model = cls.restore_from(place) if place.endswith(".nemo") else cls.from_pretrained(place)
        self._model, self._device = model.to(device).eval(), device
        self.rate = int(self._model.sample_rate)

    def encode(self, audio: Signal) -> Codes:
        """Return the codes."""
        heard = self._torch.from_numpy(audio)[None].to(self._device)
        with self._torch.inference_mode():
            tokens, _ = self._model.encode(audio=heard, audio_len=self._length(audio.size))
        return _codes(tokens)

    def decode(self, codes: Codes) -> Signal:
        """Return the audio."""
        tokens = self._torch.from_numpy(codes)[None].to(self._device)
        with self._torch.inference_mode():
            audio, _ = self._model.decode(tokens=tokens, tokens_len=self._length(codes.shape[1]))
        return as_signal(audio)

    def _length(self, n: int) -> Any:
        return self._torch.tensor([n], device=self._device)


class Port:
    """NanoCodec as the package nanocodec-torch has it, from ``model.safetensors``; its sizes are read off the weights."""

    def __init__(self, folder: Path, device: str, agent: str) -> None:
        weights = folder / "model.safetensors" if folder.is_dir() else folder
        if not weights.is_file():
            raise AgentError(f"agent {agent}: codec: {weights}: no such file; give the folder of the codec's weights")
        self._torch = load_package(agent, "torch", "torch")
        package = load_package(agent, "nanocodec_torch.models.audio_codec", "nanocodec-torch")
        shapes = self._shapes(weights, agent)
        try:
            model = package.AudioCodecModel(
                encoder_config={
                    "encoded_dim": shapes["audio_encoder.post_conv"][0],
                    "down_sample_rates": [2, 3, 6, 7, 7],
                    "base_channels": shapes["audio_encoder.pre_conv"][0],
                },
                decoder_config={
                    "input_dim": shapes["audio_decoder.pre_conv"][1],
                    "up_sample_rates": [7, 7, 6, 3, 2],
                    "base_channels": shapes["audio_decoder.pre_conv"][0],
                },
            )
            package.load_safetensors_weights(model, str(weights), verbose=False)
        except KeyError as error:
            raise AgentError(
                f"agent {agent}: codec: {weights} is not a NanoCodec: {error}; give another file"
            ) from None
        # The package passes over an activation that is not in the file.
        wanted = sum(name.endswith(".alpha") for name, _ in model.named_parameters())
        found = sum(name.endswith("snake_act.alpha") for name in shapes)
        if wanted != found:
            raise AgentError(
                f"agent {agent}: codec: {weights} holds {found} of {wanted} activations; the file is not whole"
            )
        self._model, self._device = model.to(device).eval(), device
        self.rate = int(model.sample_rate)

    @staticmethod
    def _shapes(weights: Path, agent: str) -> dict[str, tuple[int, ...]]:
        """Return the shapes in the file: of a convolution under its name, of anything else under its own."""
        safetensors = load_package(agent, "safetensors", "safetensors")
        out: dict[str, tuple[int, ...]] = {}
        with safetensors.safe_open(str(weights), framework="numpy") as file:
            for key in file.keys():  # noqa: SIM118  not a mapping
                name = key.removesuffix(".parametrizations.weight.original1").removesuffix(".weight")
                out[name.removesuffix(".conv")] = tuple(file.get_slice(key).get_shape())
        return out

    def encode(self, audio: Signal) -> Codes:
        """Return the codes."""
        heard = self._torch.from_numpy(audio)[None].to(self._device)
        with self._torch.inference_mode():
            tokens, _ = self._model.encode(heard)
        return _codes(tokens)

    def decode(self, codes: Codes) -> Signal:
        """Return the audio."""
        tokens = self._torch.from_numpy(codes)[None].to(self._device)
        with self._torch.inference_mode():
            audio, _ = self._model.decode(tokens)
        return as_signal(audio)


def _codes(tokens: Any) -> Codes:
    codes: Codes = tokens[0].cpu().numpy().astype(np.int64)
    return codes


# A frame at a time


def silence(codec: Codec, agent: str) -> Codes:
    """Return the codes of a frame of silence with silence about it, shape ``(4,)``: never zeros, which are a sound."""
    codes = codec.encode(np.zeros(WINDOW * FRAME, np.float32))
    _check_shape(codes, WINDOW, agent)
    return codes[:, WINDOW // 2].copy()


class Ear:
    """The user's audio as codes, frame by frame, none of which depends on a sample that comes after it.

    The codes that ``push`` returns for its n-th frame are those of the frame ``look_ahead`` before it, and depend on no
    sample after the end of the n-th.
    """

    def __init__(self, codec: Codec, quiet: Codes, window: int, look_ahead: int, agent: str) -> None:
        self._codec, self._quiet, self._agent = codec, quiet, agent
        self._look_ahead = look_ahead
        self._heard: deque[Signal] = deque(maxlen=window + look_ahead)

    def push(self, frame: Signal) -> Codes:
        """Hear a frame and return codes, shape ``(4,)``: those of silence before there is anything to encode."""
        self._heard.append(frame)
        frames = len(self._heard)
        if frames <= self._look_ahead:
            return self._quiet
        codes = self._codec.encode(np.concatenate(self._heard))
        _check_shape(codes, frames, self._agent)
        return codes[:, frames - 1 - self._look_ahead]


class Mouth:
    """The model's codes as audio, frame by frame."""

    def __init__(self, codec: Codec, memory: int, agent: str) -> None:
        self._codec, self._agent = codec, agent
        self._said: deque[Codes] = deque(maxlen=memory)

    def push(self, codes: Codes) -> Signal:
        """Return the audio of a frame of codes, shape ``(4,)``."""
        self._said.append(codes)
        audio = self._codec.decode(np.stack(self._said, axis=1))
        if audio.shape != (len(self._said) * FRAME,):
            raise AgentError(
                f"agent {self._agent}: the codec gave {audio.shape} samples for {len(self._said)} frames of {FRAME}"
            )
        return audio[-FRAME:].copy()


def _check_shape(codes: Codes, frames: int, agent: str) -> None:
    if codes.shape != (BOOKS, frames):
        raise AgentError(f"agent {agent}: the codec gave codes of shape {codes.shape}; needed is ({BOOKS}, {frames})")
    if codes.min(initial=0) < 0 or codes.max(initial=0) >= ENTRIES:
        raise AgentError(f"agent {agent}: the codec gave a code outside 0 to {ENTRIES - 1}")
