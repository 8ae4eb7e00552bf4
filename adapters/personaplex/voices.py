"""The voice that the agent is given: a stored one of the release, or audio of one's own.

A stored voice (``NATF2.pt``) is what the model's input was while a voice prompt was played, one vector a frame, and the token
ring as it was left. Audio is brought to 24 kHz and -24 LUFS, and played as what the agent says.
"""

from __future__ import annotations

import io
import tarfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from adapters.kyutai.engine import FRAME, RATE
from dsbeval.audio import Signal, read_audio, resample
from dsbeval.checkpoints import Checkpoint
from dsbeval.errors import AgentError, AudioError, near

LOUDNESS_LUFS = -24.0
NONE = "none"
_AUDIO = (".wav", ".flac", ".mp3", ".ogg", ".opus")


@dataclass(frozen=True, slots=True)
class Voice:
    """A voice, ready to be played.

    Parameters
    ----------
    name : str
    embeddings : tensor or None
        ``[V, 1, 1, dim]``: the model's input in each frame.
    ring : tensor or None
        ``[1, 1 + codebooks of both sides, 4]``: the last tokens of each stream.
    audio : array or None
        At 24 kHz.
    codes : list
        Of the audio, a tuple a frame; filled when it is first played.
    """

    name: str
    embeddings: Any = None
    ring: Any = None
    audio: Signal | None = None
    codes: list[tuple[int, ...]] = field(default_factory=list)

    @property
    def frames(self) -> list[Signal]:
        """The audio in frames, the last one padded with zeros."""
        assert self.audio is not None
        padded = np.pad(self.audio, (0, -self.audio.size % FRAME))
        return list(padded.reshape(-1, FRAME))


def load_voice(agent: str, name: str, checkpoint: Checkpoint) -> Voice:
    """Return the voice of a name, of a ``.pt`` file or of an audio file; ``none`` is no voice.

    A name is looked for in the checkpoint: in ``voices/``, beside it, or in ``voices.tgz``.
    """
    if name == NONE:
        return Voice(NONE)
    path = Path(name).expanduser()
    if path.suffix in _AUDIO:
        return Voice(name, audio=_audio(agent, path))
    if path.suffix == ".pt" and path.is_file():
        return _stored(agent, name, path.read_bytes())
    return _stored(agent, name, _released(agent, name.removesuffix(".pt"), checkpoint))


def _released(agent: str, name: str, checkpoint: Checkpoint) -> bytes:
    loose = checkpoint.find(f"voices/{name}.pt", f"{name}.pt")
    if loose is not None:
        return loose.read_bytes()
    known = [Path(file).stem for file in checkpoint.files if file.endswith(".pt")]
    packed = checkpoint.find("voices.tgz")
    if packed is not None:
        try:
            with tarfile.open(packed) as archive:
                members = {Path(member.name).stem: member for member in archive if member.name.endswith(".pt")}
                known += members
                file = archive.extractfile(members[name]) if name in members else None
                if file is not None:
                    return file.read()
        except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
            said = " ".join(str(error).split())
            raise AgentError(f"agent {agent}: {packed}: cannot be unpacked ({said}); get it again") from None
    hint = near(name, known) if known else f"there are none in {checkpoint.path} (voices.tgz, or voices/)"
    raise AgentError(f"agent {agent}: --model-arg voice={name}: {hint}; voice=none plays without")


def _stored(agent: str, name: str, content: bytes) -> Voice:
    import torch

    try:
        data = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        embeddings, ring = data["embeddings"], data["cache"]
        fits = embeddings.dim() == 4 and embeddings.shape[1:3] == (1, 1) and len(embeddings) > 0 and ring.dim() == 3
    except Exception as error:
        raise AgentError(
            f"agent {agent}: --model-arg voice={name}: not a stored voice ({type(error).__name__}: "
            f"{' '.join(str(error).split())[:200]})"
        ) from None
    if not fits:
        shapes = f"{tuple(embeddings.shape)} and {tuple(ring.shape)}"
        raise AgentError(f"agent {agent}: --model-arg voice={name}: embeddings and cache have the shapes {shapes}")
    return Voice(name, embeddings=embeddings, ring=ring)


def _audio(agent: str, path: Path) -> Signal:
    import soundfile

    try:
        read = read_audio(path, rate=None, channels=1)
    except AudioError as error:
        raise AgentError(f"agent {agent}: --model-arg voice: {error}") from None
    audio = resample(read, int(soundfile.info(path).samplerate), RATE)
    try:
        import pyloudnorm
    except ModuleNotFoundError:
        raise AgentError(
            f"agent {agent}: --model-arg voice={path}: the package pyloudnorm is not installed, which measures its loudness"
        ) from None
    if audio.size < RATE // 2:
        raise AgentError(
            f"agent {agent}: --model-arg voice={path}: {audio.size / RATE:.2f} s are too short for a voice"
        )
    loudness = pyloudnorm.Meter(RATE).integrated_loudness(audio)
    if not np.isfinite(loudness):
        raise AgentError(f"agent {agent}: --model-arg voice={path}: holds no sound")
    return np.asarray(audio * 10.0 ** ((LOUDNESS_LUFS - loudness) / 20.0), np.float32)
