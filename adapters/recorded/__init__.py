"""``recorded``: recordings that somebody made already, in place of an agent.

``pytest cases/ --replay DIR`` scores, judges and reports the recordings of a folder (:mod:`dsbeval.replay`); nothing is
played to anybody. Named with a ``case``, it is an agent like any other, which says what was recorded there whatever it
hears: a fixed partner for a live conversation.

Conventions
-----------
* As an agent it plays channel 1 of its recording from the session's first sample on, in frames of 20 ms, and its text
  with it; after the end of the recording it is silent.
"""

from __future__ import annotations

from pathlib import Path

from dsbeval.agent import Agent, Capabilities, Emission, Interaction, Session, TextToken
from dsbeval.audio import RATE, Signal
from dsbeval.dyadic.record import KIND
from dsbeval.errors import AgentError
from dsbeval.recording import TimedText, read_session, read_tokens
from dsbeval.replay.grid import Grid

FRAME = 480


class Recorded(Agent):
    """The agent.

    Parameters
    ----------
    replay : str
        A run folder, or a folder of recordings.
    case : str
        The recording that it plays when it is stepped. A conversation of two agents has the side behind its id:
        ``DYA-T2-01-ab-oA-r1/a``.
    """

    name = "recorded"

    def __init__(self, replay: str = "", case: str = "") -> None:
        if not replay:
            raise AgentError("agent recorded: there is nothing to replay; run: pytest cases/ --replay DIR")
        self.grid = Grid(Path(replay))
        self._case = str(case)
        self._played: tuple[Signal, tuple[TimedText, ...]] | None = None

    @property
    def capabilities(self) -> Capabilities:
        """20 ms frames on the logical clock; it hears nothing, so what it says is not a frame late."""
        return Capabilities(
            Interaction.FRAME_SYNCHRONOUS, input_rate=RATE, output_rate=RATE, frame=FRAME, prompt=False, output_delay=0
        )

    def open(self, prompt: str, seed: int) -> Session:  # noqa: ARG002
        """Return a session that plays the recording from its start."""
        if self._played is None:
            self._played = self._read()
        return RecordedSession(*self._played)

    def _read(self) -> tuple[Signal, tuple[TimedText, ...]]:
        if not self._case:
            raise AgentError("agent recorded: is not live; name the recording that it plays: --model-arg case=ID")
        name, _, side = self._case.partition("/")
        self.grid.require(name)
        if not side:
            data, (_, model) = read_session(self.grid.folder, name, any_rate=True)
            return model, read_tokens(data["tokens"])
        if side not in ("a", "b"):
            raise AgentError(f"agent recorded: case {self._case!r}: the side is a or b: {name}/a")
        data, channels = read_session(self.grid.folder, name, KIND, any_rate=True)
        return channels["ab".index(side)], read_tokens(data["tokens"][side])


class RecordedSession(Session):
    """One playing of a recording."""

    def __init__(self, audio: Signal, text: tuple[TimedText, ...]) -> None:
        self._audio, self._text = audio, text
        self._now = 0

    def step(self, heard: Signal) -> Emission:  # noqa: ARG002
        """Return what was said in this frame."""
        start, self._now = self._now, self._now + FRAME
        text = tuple(
            TextToken(token.text, (token.sample - start) / RATE)
            for token in self._text
            if start <= token.sample < self._now
        )
        return Emission(self._audio[start : self._now].copy(), text)
