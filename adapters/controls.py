"""Calibration agents: instruments with a known right answer.

A number from the suite is believable because these come out right: ``oracle`` passes every case, ``contrarian`` none,
``silent`` passes what silence passes and is never exercised, ``turn_based`` gives the published signature of a system
that answers once after the full input, ``babbler`` never stops, ``echo`` returns what it hears. They speak with real
speech (``adapters/bank``), because the VAD must hear them.
"""

from __future__ import annotations

import functools

import numpy as np

from dsbeval.agent import (
    NOTHING,
    Agent,
    Brief,
    Capabilities,
    Emission,
    Interaction,
    PrivilegedAgent,
    PrivilegedSession,
    Session,
    TextToken,
)
from dsbeval.audio import RATE, Signal
from dsbeval.spans import Span, to_samples
from dsbeval.speech.bank import load_bank
from dsbeval.speech.engine import Utterance

FRAME = 480
REACTION = to_samples(0.4, RATE)
GIVE_WAY = to_samples(0.2, RATE)


@functools.cache
def _bank() -> dict[str, Utterance]:
    return load_bank()


def _tokens(spoken: Utterance, text: str | None = None) -> tuple[TextToken, ...]:
    """Return the words of an utterance with their times, or another text as a whole."""
    if text is not None:
        return (TextToken(text + " "),)
    return tuple(TextToken(w.word + " ", w.start / RATE) for w in spoken.words)


# Agents that know nothing of the case


class _SilentSession(Session):
    def step(self, heard: Signal) -> Emission:  # noqa: ARG002
        return NOTHING


class Silent(Agent):
    """Never says anything."""

    @property
    def capabilities(self) -> Capabilities:
        """Frame-synchronous, 20 ms frames."""
        return Capabilities(Interaction.FRAME_SYNCHRONOUS, frame=FRAME)

    def open(self, prompt: str, seed: int) -> Session:  # noqa: ARG002
        """Return a session that stays silent."""
        return _SilentSession()


class _TurnBasedSession(_SilentSession):
    def finish(self) -> Emission:
        answer = _bank()["answer"]
        return Emission(answer.audio, _tokens(answer))


class TurnBased(Agent):
    """Answers once, right after the full input, whatever it was."""

    @property
    def capabilities(self) -> Capabilities:
        """Turn-based; its answer begins where the input ends."""
        return Capabilities(Interaction.TURN_BASED, frame=FRAME)

    def open(self, prompt: str, seed: int) -> Session:  # noqa: ARG002
        """Return a session that answers at the end."""
        return _TurnBasedSession()


class _BabblerSession(Session):
    def __init__(self) -> None:
        self._at = 0

    def step(self, heard: Signal) -> Emission:
        speech = _bank()["monologue"].audio
        index = np.arange(self._at, self._at + heard.size) % speech.size
        self._at += heard.size
        return Emission(speech[index])


class Babbler(Agent):
    """Speaks from the first frame to the last."""

    @property
    def capabilities(self) -> Capabilities:
        """Frame-synchronous; gives no text."""
        return Capabilities(Interaction.FRAME_SYNCHRONOUS, frame=FRAME, text=False)

    def open(self, prompt: str, seed: int) -> Session:  # noqa: ARG002
        """Return a session that never stops."""
        return _BabblerSession()


class _EchoSession(Session):
    def step(self, heard: Signal) -> Emission:
        return Emission(heard)


class Echo(Agent):
    """Returns each frame that it hears, one frame later."""

    @property
    def capabilities(self) -> Capabilities:
        """Frame-synchronous; gives no text."""
        return Capabilities(Interaction.FRAME_SYNCHRONOUS, frame=FRAME, text=False)

    def open(self, prompt: str, seed: int) -> Session:  # noqa: ARG002
        """Return a session that echoes."""
        return _EchoSession()


# Agents that are told the case


class _CuedSession(PrivilegedSession):
    """Speaks at stated samples of the session clock, and falls silent at one."""

    def __init__(self, brief: Brief) -> None:
        self._brief = brief
        self._now = 0
        self._lines: list[tuple[int, str, str | None]] = []
        self._stop: int | None = None

    def say(self, entry: str, at: int, text: str | None = None) -> None:
        """Plan to say an entry of the bank at a sample of the session clock."""
        self._lines.append((at, entry, text))

    def stop(self, at: int) -> None:
        """Plan to fall silent at a sample of the session clock."""
        self._stop = at

    def cue(self, turn: int, span: Span) -> None:
        if turn == 1:
            self.after_turn1(span.end)
        else:
            self.in_turn2(self._brief.window.shift(span.start))

    def after_turn1(self, end: int) -> None:
        """Plan what is said after turn 1: as a rule a word, so that silence later is a choice."""
        self.say("ack", end + REACTION)

    def in_turn2(self, window: Span) -> None:
        """Plan what is said about the scored window."""
        raise NotImplementedError

    def step(self, heard: Signal) -> Emission:
        begin = self._now + 2 * heard.size  # the emission of this step is heard one frame later
        earliest = self._now + heard.size
        self._now += heard.size
        flush = self._stop is not None and earliest >= self._stop
        if flush:
            self._stop = None
        for line in self._lines:
            at, entry, text = line
            if at < begin:
                self._lines.remove(line)
                spoken = _bank()[entry]
                lead = max(0, at - earliest)
                tokens = tuple(TextToken(t.text, t.offset_s + lead / RATE) for t in _tokens(spoken, text))
                return Emission(np.concatenate([np.zeros(lead, np.float32), spoken.audio]), tokens, flush=flush)
        return Emission(flush=True) if flush else NOTHING


class _OracleSession(_CuedSession):
    def after_turn1(self, end: int) -> None:
        if self._brief.barge_in:
            self.say("monologue", end + REACTION)
        else:
            super().after_turn1(end)

    def in_turn2(self, window: Span) -> None:
        match self._brief.action:
            case "TAKE_TURN" | "INTERRUPT":
                self.say("reply", window.start + REACTION)
            case "BACKCHANNEL":
                self.say("ack", window.start + REACTION)
            case "READBACK":
                self.say("answer", window.start + REACTION, self._brief.readback_target)
            case "YIELD":
                self.stop(window.start + GIVE_WAY)


class _ContrarianSession(_CuedSession):
    def after_turn1(self, end: int) -> None:
        if self._brief.action in ("YIELD", "CONTINUE"):
            self.say("monologue", end + REACTION)
        else:
            super().after_turn1(end)

    def in_turn2(self, window: Span) -> None:
        match self._brief.action:
            case "LISTEN" | "NO_BACKCHANNEL":
                self.say("ack", window.start + REACTION)
            case "CONTINUE":
                self.stop(window.start + GIVE_WAY)


class Oracle(PrivilegedAgent):
    """Does what the case expects: passes every case at every level."""

    @property
    def capabilities(self) -> Capabilities:
        """Frame-synchronous; is told the case."""
        return Capabilities(Interaction.FRAME_SYNCHRONOUS, frame=FRAME, privileged=True)

    def open_case(self, brief: Brief, prompt: str, seed: int) -> PrivilegedSession:  # noqa: ARG002
        """Return a session that does the expected action."""
        return _OracleSession(brief)


class Contrarian(PrivilegedAgent):
    """Does the opposite of what the case expects: passes none."""

    @property
    def capabilities(self) -> Capabilities:
        """Frame-synchronous; is told the case."""
        return Capabilities(Interaction.FRAME_SYNCHRONOUS, frame=FRAME, privileged=True)

    def open_case(self, brief: Brief, prompt: str, seed: int) -> PrivilegedSession:  # noqa: ARG002
        """Return a session that does the opposite."""
        return _ContrarianSession(brief)
