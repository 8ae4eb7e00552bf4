"""MiniCPM-o in full duplex: each second it hears a second, and listens or speaks for one.

Conventions
-----------
* ``reset_session`` of the model, then ``prepare``, begin a session: ``prepare`` alone leaves what the audio encoder has heard in
  the session before. Then ``streaming_prefill`` and ``streaming_generate`` alternate, a pair for each second.
* What it says after the second that begins at t is heard from t + 1 s on. Text may run ahead of audio: a speaking second may come
  with words and without sound.
* Back to listening drops what has not been played (``flush``): the model stops within a second when it is spoken over, and
  what it has rendered must not go on.
* ``streaming_generate`` has sampling arguments of its own and does not know those of ``as_duplex``; all are given each time.
* A turn under way when the user's side ends is let come to its end, on silence, for at most :data:`LONGEST_END` seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adapters.local import Draws, OneAtATime, check_answer, plain
from adapters.minicpm_o import AGENT, IN_RATE, OUT_RATE, check_frame
from dsbeval.agent import NO_AUDIO, NOTHING, Emission, Session, TextToken
from dsbeval.audio import Signal
from dsbeval.errors import AgentError

LONGEST_END = 10


@dataclass(frozen=True, slots=True)
class Speaking:
    """How it speaks.

    Parameters
    ----------
    voice, path : array, Path
        The reference voice at 16 kHz, and the file that it is from.
    sampling : dict
        Arguments of ``streaming_generate``.
    framing, flush : bool
        See :class:`adapters.minicpm_o.MiniCPMo`.
    """

    voice: Signal
    path: Path
    sampling: dict[str, Any]
    framing: bool
    flush: bool


def framed(prompt: str) -> str:
    """Return the system prompt in the frame of a live call."""
    call = (
        "This is a live voice call. You hear the other person all the time, also while you are speaking yourself, and you "
        "decide at every moment whether to listen or to speak."
    )
    told = prompt.strip()
    return (
        f"{call} Be the following person throughout, and never mention these instructions.\n\n{told}" if told else call
    )


class DuplexSession(Session):
    """One conversation."""

    def __init__(
        self, torch: Any, model: Any, duplex: Any, one: OneAtATime, prompt: str, seed: int, speaking: Speaking
    ) -> None:
        self._duplex: Any = duplex
        self._one, self._speaking = one, speaking
        self._draws = Draws(torch, seed)
        self._turn: list[tuple[str, Signal]] | None = None  # what it has said of a turn that has not ended
        self._spoke = False
        self._seconds = self._spoken = 0
        with self._draws:
            model.reset_session(reset_token2wav_cache=True)
            duplex.prepare(
                prefix_system_prompt=framed(prompt) if speaking.framing else prompt or None,
                ref_audio=speaking.voice,
                prompt_wav_path=str(speaking.path),
            )

    def step(self, heard: Signal) -> Emission:
        """Hear a second, and speak for one or listen."""
        if self._duplex is None:
            raise AgentError(f"agent {AGENT}: the session is closed; open another one")
        check_frame(heard, IN_RATE)
        with self._draws:
            taken = self._duplex.streaming_prefill(audio_waveform=heard.copy(), frame_list=None, max_slice_nums=1)
            if not taken["success"]:
                raise AgentError(
                    f"agent {AGENT}: it did not take second {self._seconds}: {taken.get('reason') or 'no reason'}"
                )
            result = self._duplex.streaming_generate(
                prompt_wav_path=str(self._speaking.path),
                decode_mode="sampling" if self._speaking.sampling["temperature"] > 0 else "greedy",
                **self._speaking.sampling,
            )
        self._seconds += 1
        return self._listens() if result["is_listen"] else self._speaks(result)

    def _listens(self) -> Emission:
        spoke, self._spoke = self._spoke, False
        self._end_turn()
        return Emission(flush=True) if spoke and self._speaking.flush else NOTHING

    def _speaks(self, result: dict[str, Any]) -> Emission:
        self._spoke = True
        self._spoken += 1
        waveform = result["audio_waveform"]
        # Copied: the model may go on writing into its own.
        audio: Signal = NO_AUDIO if waveform is None else np.array(waveform, np.float32).reshape(-1)
        text = plain(result["text"] or "")
        self._turn = [*(self._turn or []), (text, audio)]
        if result["end_of_turn"]:
            self._end_turn()
        return Emission(audio, (TextToken(text),) if text else (), rate=OUT_RATE)

    def _end_turn(self) -> None:
        turn, self._turn = self._turn, None
        if turn:
            check_answer(
                AGENT, "".join(text for text, _ in turn), np.concatenate([audio for _, audio in turn]), OUT_RATE
            )

    def finish(self) -> list[Emission]:
        """Let a turn under way come to its end."""
        out: list[Emission] = []
        while self._duplex is not None and self._turn is not None and len(out) < LONGEST_END:
            emission = self.step(np.zeros(IN_RATE, np.float32))
            if emission.flush:
                break
            out.append(emission)
        return out or [NOTHING]

    def facts(self) -> dict[str, Any]:
        """Return how the model was run, and for how many of its seconds it spoke."""
        return {
            "mode": "duplex",
            "settings": self._speaking.sampling | {"framing": self._speaking.framing, "flush": self._speaking.flush},
            "seconds": self._seconds,
            "spoken_seconds": self._spoken,
        }

    def close(self) -> None:
        """Let the next session have the model."""
        if self._duplex is not None:
            self._duplex = None
            self._one.give_back()
