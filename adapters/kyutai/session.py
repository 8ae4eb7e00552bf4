"""A conversation with an engine: a frame in, a frame and the text beside it out."""

from __future__ import annotations

from typing import Any

from adapters.kyutai.engine import FRAME, RATE, Engine
from adapters.kyutai.text import Transcriber
from adapters.local import check_heard
from dsbeval.agent import Emission, Session
from dsbeval.audio import Signal
from dsbeval.errors import AgentError


class KyutaiSession(Session):
    """One conversation. A subclass says how it is prepared and how a frame's codes advance it.

    Parameters
    ----------
    engine : Engine
    tokenizer
        The model's sentencepiece model.
    seed : int
    """

    def __init__(self, engine: Engine, tokenizer: Any, seed: int) -> None:
        self.engine = engine
        self._text = Transcriber(tokenizer)
        engine.begin(self, seed)
        try:
            with engine.turn(self):
                self.prepare()
        except BaseException:
            engine.end(self)
            raise

    def prepare(self) -> None:
        """Play what comes before the first frame; nothing, where that is not overridden. Inside a turn of the engine."""

    def advance(self, codes: Any) -> Any | None:
        """Let the model take the codes of a frame; return its tokens for it. Inside a turn of the engine."""
        raise NotImplementedError

    def step(self, heard: Signal) -> Emission:
        """Hear one frame and return one."""
        agent = self.engine.agent
        check_heard(agent, heard, FRAME, RATE)
        with self.engine.turn(self):
            tokens = self.advance(self.engine.encode(heard))
            if tokens is None:
                raise AgentError(
                    f"agent {agent}: the model returned nothing for a frame; its delays are not as declared"
                )
            return Emission(self.engine.decode(tokens), self._text.read(int(tokens[0, 0, 0])))

    def close(self) -> None:
        """Give the engine back."""
        self.engine.end(self)
