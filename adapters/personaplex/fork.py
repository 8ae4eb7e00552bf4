"""PersonaPlex on NVIDIA's own package, which plays the prompt itself.

Alignment: the call that is given the user's frame t returns the model's frame t-1, which was decided with the user's frames
up to t-1. It can be heard from the start of frame t on: ``output_delay`` is 0, and a recording is that of the released
package. In a conversation of two agents nothing can be heard in the tick in which it is returned, so there it comes 80 ms
later, as from NVIDIA's server.
"""

from __future__ import annotations

from typing import Any

from adapters.kyutai.engine import Engine
from adapters.kyutai.session import KyutaiSession
from adapters.personaplex.prompt import SPACER
from adapters.personaplex.released import check_length
from adapters.personaplex.voices import Voice


class ForkSession(KyutaiSession):
    """One conversation on the fork."""

    def __init__(self, engine: Engine, tokenizer: Any, seed: int, voice: Voice, text: list[int], limit: int) -> None:
        self._voice, self._prompt, self._limit = voice, text, limit
        super().__init__(engine, tokenizer, seed)

    def prepare(self) -> None:
        """Hand the prompt over and let it be played."""
        lm_gen, voice = self.engine.lm_gen, self._voice
        frames = 0
        lm_gen.text_prompt_tokens = self._prompt  # an empty list is no text; None would not be taken
        lm_gen.voice_prompt_audio = lm_gen.voice_prompt_embeddings = lm_gen.voice_prompt_cache = None
        if voice.audio is not None:
            lm_gen.voice_prompt_audio = voice.audio[None]
            frames = len(voice.frames)
        elif voice.embeddings is not None:
            weight = lm_gen.lm_model.text_linear.weight
            lm_gen.voice_prompt_embeddings = voice.embeddings.to(device=weight.device, dtype=weight.dtype)
            lm_gen.voice_prompt_cache = voice.ring.to(weight.device)
            frames = len(voice.embeddings)
        check_length(self.engine.agent, frames + len(self._prompt) + 2 * SPACER, self._limit)
        self.engine.play_prompt()

    def advance(self, codes: Any) -> Any | None:
        """Take the codes of a frame."""
        return self.engine.step(codes)
