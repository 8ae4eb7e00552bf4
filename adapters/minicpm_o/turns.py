"""MiniCPM-o, turn-based: it hears a second at a time and answers once, when the user's side has ended.

Conventions
-----------
* The order of calls: ``reset_session``, ``init_token2wav_cache``, the system message, the user's audio in pieces of exactly
  16,000 samples of which the last is padded with silence and marked, ``streaming_generate`` to its end. A new session
  has a new ``session_id``.
* A piece goes in when another sample is there to follow it, because the last one must be known to be the last.
* A text is placed where the piece of audio that came with it begins.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from adapters.local import Draws, OneAtATime, as_signal, check_answer, plain
from adapters.minicpm_o import AGENT, IN_RATE, OUT_RATE, TURN_FRAME, check_frame
from dsbeval.agent import NO_AUDIO, NOTHING, Emission, Session, TextToken
from dsbeval.audio import Signal
from dsbeval.errors import AgentError

PIECE = IN_RATE
_sessions = itertools.count()


class TurnSession(Session):
    """One conversation, that has one answer."""

    def __init__(
        self,
        torch: Any,
        model: Any,
        one: OneAtATime,
        prompt: str,
        seed: int,
        voice: Signal,
        settings: dict[str, Any],
    ) -> None:
        self._model: Any = model
        self._one, self._settings = one, settings
        self._draws = Draws(torch, seed)
        self._id = f"dsbeval-{next(_sessions)}"
        self._held = NO_AUDIO
        message = model.get_sys_prompt(ref_audio=voice, mode="audio_assistant", language="en")
        if prompt.strip():
            message = message | {"content": [*message["content"], prompt]}
        with self._draws:
            model.reset_session(reset_token2wav_cache=True)
            model.init_token2wav_cache(prompt_speech_16k=voice)
            self._prefill(message, last=True)

    def step(self, heard: Signal) -> Emission:
        """Hear a frame."""
        if self._model is None:
            raise AgentError(f"agent {AGENT}: the session is closed; open another one")
        check_frame(heard, TURN_FRAME)
        self._held = np.concatenate([self._held, heard])
        while self._held.size > PIECE:
            self._hear(self._held[:PIECE], last=False)
            self._held = self._held[PIECE:]
        return NOTHING

    def finish(self) -> Emission:
        """Answer what was heard; nothing where that is nothing."""
        if self._model is None or not self._held.size:
            return NOTHING
        self._hear(np.pad(self._held, (0, PIECE - self._held.size)), last=True)
        self._held = NO_AUDIO
        pieces: list[Signal] = []
        text: list[TextToken] = []
        with self._draws:
            for waveform, words in self._model.streaming_generate(
                session_id=self._id,
                generate_audio=True,
                use_tts_template=True,
                enable_thinking=False,
                do_sample=self._settings["temperature"] > 0,
                **self._settings,
            ):
                if said := plain(words or ""):
                    text.append(TextToken(said, sum(piece.size for piece in pieces) / OUT_RATE))
                if waveform is not None:
                    pieces.append(as_signal(waveform))
        audio = np.concatenate([NO_AUDIO, *pieces])
        check_answer(AGENT, "".join(token.text for token in text), audio, OUT_RATE)
        return Emission(audio, tuple(text), rate=OUT_RATE)

    def _hear(self, piece: Signal, *, last: bool) -> None:
        with self._draws:
            self._prefill({"role": "user", "content": [piece.copy()]}, last=last)

    def _prefill(self, message: dict[str, Any], *, last: bool) -> None:
        self._model.streaming_prefill(session_id=self._id, msgs=[message], omni_mode=False, is_last_chunk=last)

    def facts(self) -> dict[str, Any]:
        """Return how the model was run."""
        return {"mode": "turns", "settings": self._settings}

    def close(self) -> None:
        """Let the next session have the model."""
        if self._model is not None:
            self._model = None
            self._one.give_back()
