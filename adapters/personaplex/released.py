"""PersonaPlex on the released package: the prompt is forced upon a model that has no notion of one.

Text and audio are overwritten through the generator's own hooks and arguments. A stored voice alone needs what the package
does not offer, the position and the token ring of the generator; their shapes are checked before they are touched, and the
package is of one version (:mod:`adapters.kyutai.package`).

Alignment: NVIDIA's package returns everything one call later. Its first frame of a conversation, which is the last silent
frame of the prompt, is returned here by the last call of the prompt and is not played.
"""

from __future__ import annotations

from typing import Any

from adapters.kyutai.engine import Engine
from adapters.kyutai.session import KyutaiSession
from adapters.personaplex.prompt import TONE, Call, calls, script
from adapters.personaplex.voices import Voice
from dsbeval.errors import AgentError


class Forcing:
    """The hooks of the generator: what is set is put in place of what was drawn."""

    def __init__(self) -> None:
        self.text: int | None = None
        self.rest: Any = None

    def on_text(self, drawn: Any) -> None:
        """Overwrite the text token, ``[1]``."""
        if self.text is not None:
            drawn.fill_(self.text)

    def on_audio(self, drawn: Any) -> None:
        """Overwrite all codebooks but the first, of ``[1, K]``."""
        if self.rest is not None:
            drawn[:, 1:] = self.rest

    def clear(self) -> None:
        """Leave everything to the model."""
        self.text = self.rest = None


class ReleasedSession(KyutaiSession):
    """One conversation on the released package."""

    def __init__(
        self, engine: Engine, tokenizer: Any, seed: int, forcing: Forcing, voice: Voice, text: list[int], limit: int
    ) -> None:
        self._forcing, self._voice, self._prompt, self._limit = forcing, voice, text, limit
        super().__init__(engine, tokenizer, seed)

    def prepare(self) -> None:
        """Play the prompt."""
        codebooks = self.engine.codebooks
        voice = self._voice
        if voice.audio is not None and not voice.codes:
            codes = [tuple(self.engine.encode(frame)[0, :, 0].tolist()) for frame in voice.frames]
            voice.codes.extend(codes)  # all of them or, when one breaks, none
            self.engine.reset_codec()
        frames = script(voice.codes, self._prompt, codebooks)
        stored = 0 if voice.embeddings is None else len(voice.embeddings)
        check_length(self.engine.agent, len(frames) + stored, self._limit)
        before = None if voice.embeddings is None else restore(self.engine, voice)
        try:
            tokens = self._play(calls(frames, before))
        finally:
            self._forcing.clear()
        if tokens is None:
            raise AgentError(f"agent {self.engine.agent}: the model returned nothing for its prompt")
        self.engine.decode(tokens)  # what is decoded next begins from it

    def advance(self, codes: Any) -> Any | None:
        """Take the codes of a frame."""
        return self.engine.step(codes)

    def _play(self, played: list[Call]) -> Any | None:
        tone = self.engine.codes(TONE[: self.engine.codebooks])
        tokens = None
        for call in played:
            self._forcing.text = call.text
            if call.first is None:
                self._forcing.rest = self.engine.codes(call.rest)[:, :, 0]
                tokens = self.engine.step(tone)
            else:  # nothing of it is the model's: the depth transformer is left out
                tokens = self.engine.step(tone, self.engine.codes((call.first, *call.rest)))
        return tokens


def check_length(agent: str, frames: int, limit: int) -> None:
    """Raise :class:`AgentError` for a prompt that leaves no room in the model's context."""
    if frames >= limit:
        raise AgentError(
            f"agent {agent}: the prompt takes {frames} frames, one a token and half a second twice, and the model looks back on "
            f"{limit}; give a shorter one"
        )


def restore(engine: Engine, voice: Voice) -> tuple[int, ...]:
    """Play a stored voice into the model; return the agent's last codes, those that are a position late."""
    lm_gen = engine.lm_gen
    lm, state = lm_gen.lm_model, lm_gen._streaming_state
    embeddings = voice.embeddings.to(device=lm.device, dtype=lm.dtype)
    ring = voice.ring.to(lm.device)
    count = len(embeddings)
    streams, codebooks = 1 + int(lm.n_q), int(lm.dep_q)
    # NVIDIA's ring has a place more than the released one; a stream of a position is at that position modulo its length.
    wanted = {
        "embeddings": (tuple(embeddings.shape), (count, 1, 1, int(lm.dim))),
        "cache": (tuple(ring.shape), (1, streams, 4)),
        "the generator's ring": (tuple(state.cache.shape), (1, streams, 3)),
        "the generator's position": (tuple(state.offsets.shape), (1,)),
    }
    for what, (found, needed) in wanted.items():
        if found != needed:
            raise AgentError(
                f"agent {engine.agent}: --model-arg voice={voice.name}: {what} has the shape {found}; {needed} is needed"
            )
    for embedding in embeddings:
        lm.transformer(embedding)
    state.offsets[:] = count
    state.offset_cpu = count
    for position in (count, count + 1):
        state.cache[:, :, position % 3] = ring[:, :, position % 4]
    late = ring[0, 2 : 1 + codebooks, (count + 1) % 4]
    return tuple(int(code) for code in late)
