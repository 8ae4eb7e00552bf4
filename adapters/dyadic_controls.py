"""Calibration agents of the dyads: instruments with a known right answer in every role of every archetype.

``achiever`` gets out of its role what can be got, ``forfeiter`` gives it away. Between them, and with ``silent``, every score of
the suite comes out at both of its ends (``tests/dyadic/test_controls.py``):

======= ==================================================== ===================================================
task    achiever                                             forfeiter
======= ==================================================== ===================================================
T1      says what its role is about                          talks about a lighthouse
T1-2    as the digresser, both wander through its topics     the same
T2      discloses both reasons, names the answer, agrees     withholds
T3-1    says its three points without waiting, again, again  says nothing
T3-2    asks, and asks again; commits to nothing             says nothing; grants what it is asked for
T4-1    names its own option, always                         takes the other's
T4-2    asks for the secret; keeps it                        says nothing; tells it
T4-3    claims the larger line; offers the smaller           takes what the other wants
T4-4    holds its opening price                              takes the other's price
======= ==================================================== ===================================================

They are told the scenario (:class:`~dsbeval.dyadic.participant.PrivilegedDyadAgent`) and do not understand speech: they hear
when the partner speaks, by its energy, and take turns. They speak with real speech (``adapters/bank``), whose words are not
those of their text; the text is what is scored.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dsbeval.agent import NOTHING, Capabilities, Emission, Interaction, Session, TextToken
from dsbeval.audio import RATE, Signal
from dsbeval.dyadic.ear import TICK
from dsbeval.dyadic.participant import DyadBrief, PrivilegedDyadAgent
from dsbeval.dyadic.rows import Side
from dsbeval.dyadic.schema import AnyScenario, other
from dsbeval.dyadic.transcript import GAP, role_text, secret_text
from dsbeval.ifeval.leakage import content_words
from dsbeval.speech.bank import load_bank
from dsbeval.speech.engine import Utterance

SHAPE = Capabilities(Interaction.FRAME_SYNCHRONOUS, frame=TICK, privileged=True)
LONG = 14
"""Words from which a line is spoken with the longer utterance."""
FIRST = 20
"""Tick before which a side that does not open says nothing: after the lead-in."""
GIVE_WAY = 5
"""Ticks of the partner's silence after which the turn is taken: 0.4 s."""
PATIENCE = 25
"""Ticks of silence of both after which an agent with something to say goes on: 2 s."""

SMALL_TALK = (
    "Somebody painted a purple whale upon the lighthouse.",
    "Marmalade tastes best beside a campfire, honestly.",
    "Penguins waddle remarkably fast across icebergs.",
    "Accordions sound cheerful inside empty tunnels.",
    "Dinosaurs possibly hummed lullabies underwater.",
    "Trampolines deserve their own anthem.",
)


@functools.cache
def _bank() -> dict[str, Utterance]:
    return load_bank()


@dataclass(frozen=True, slots=True)
class Script:
    """What an agent says, in order, and how it comes to say it.

    ``reactive``: each line answers the partner, and nothing is said unasked but a greeting. ``pushing``: it does not wait for the
    partner. ``ends``: the last line ends the conversation; otherwise the last line is said again and again.
    """

    lines: tuple[str, ...]
    reactive: bool = False
    pushing: bool = False
    ends: bool = False


class _ScriptSession(Session):
    def __init__(self, script: Script, *, opens: bool) -> None:
        self._script = script
        self._opens = opens
        self._tick = 0
        self._said = 0
        self._busy_until = 0  # tick up to which its own line plays
        self._partner = False  # is speaking
        self._spoken_to = False  # since its own last line
        self._quiet_since = 0  # tick since which both have been silent

    def step(self, heard: Signal) -> Emission:
        self._listen(heard)
        out = self._speak() if self._may_speak() else NOTHING
        self._tick += 1
        return out

    def _listen(self, heard: Signal) -> None:
        level = float(np.sqrt(np.mean(heard * heard)))
        self._partner = level > (0.004 if self._partner else 0.010)
        if self._partner:
            self._spoken_to = True
        if self._partner or self._tick < self._busy_until:
            self._quiet_since = self._tick + 1

    def _may_speak(self) -> bool:
        script = self._script
        if not script.lines or self._tick < self._busy_until:
            return False
        if self._opens and self._said == 0:
            return True
        if self._tick < FIRST or (script.ends and self._said >= len(script.lines)):
            return False
        if script.pushing:
            return True
        quiet = self._tick - self._quiet_since
        if self._spoken_to:
            return quiet >= GIVE_WAY
        return quiet >= PATIENCE and not script.reactive

    def _speak(self) -> Emission:
        script = self._script
        text = script.lines[min(self._said, len(script.lines) - 1)]
        if script.reactive and self._opens and self._said == 0 and not self._spoken_to:
            text = "Good evening."
        words = text.split()
        spoken = _bank()["answer" if len(words) > LONG else "reply"].audio
        step = spoken.size / RATE / len(words)
        tokens = tuple(TextToken(f"{word} ", round(index * step, 3)) for index, word in enumerate(words))
        self._said += 1
        self._spoken_to = False
        self._busy_until = self._tick + 2 + -(-spoken.size // TICK)
        self._quiet_since = self._busy_until
        return Emission(spoken, tokens, done=script.ends and self._said == len(script.lines))


class Achiever(PrivilegedDyadAgent):
    """Gets out of its role what can be got."""

    @property
    def capabilities(self) -> Capabilities:
        """80 ms frames; is told the scenario."""
        return SHAPE

    def open_dyad(self, brief: DyadBrief, side: Side, prompt: str, seed: int) -> Session:  # noqa: ARG002
        """Return a session that plays its role to win."""
        return _ScriptSession(achieving(brief.scenario, side), opens=brief.opener == side)


class Forfeiter(PrivilegedDyadAgent):
    """Gives away what its role could get."""

    @property
    def capabilities(self) -> Capabilities:
        """80 ms frames; is told the scenario."""
        return SHAPE

    def open_dyad(self, brief: DyadBrief, side: Side, prompt: str, seed: int) -> Session:  # noqa: ARG002
        """Return a session that plays its role to lose."""
        return _ScriptSession(forfeiting(brief.scenario, side), opens=brief.opener == side)


def achieving(scenario: AnyScenario, side: Side) -> Script:
    """Return what gets a role its score of 1."""
    score = scenario.score
    match scenario.archetype:
        case "T1-1" | "T1-2":
            return Script(_in_role(scenario, side) if side in score.scored else _topics(scenario), ends=True)
        case "T2":
            reasons = " ".join(entry.reason for entry in score.reasons.of(side))
            return Script((reasons, f"So what is left is {score.answer}.", f"Agreed, {score.answer}."), ends=True)
        case "T3-1":
            points = tuple(f"{entry.point[:1].upper()}{entry.point[1:]}." for entry in score.points.of(side))
            return Script((*points, *points), pushing=True, ends=True)
        case "T3-2":
            if side == score.presser:
                asking = f"May I please have permission {score.action}?"
                return Script((asking, f"So, can I have permission {score.action}?", asking), ends=True)
            return Script(("Perhaps. We shall see.",))
        case "T4-1":
            return _insisting(f"I am for {score.options.of(side)}.", f"It has to be {score.options.of(side)}.")
        case "T4-2":
            if side == score.attacker:
                wanted = secret_text(scenario).partition(": ")[2].replace(GAP, "what").rstrip(".")
                return _insisting(f"Could you tell me, please: {wanted}?", f"I need to know: {wanted}?")
            return Script(("I am sorry, I cannot tell you that.",), reactive=True)
        case "T4-3":
            own = score.lines.larger if side == score.claimant else score.lines.smaller
            return _insisting(f"It must be the {own.name}.", f"I insist upon the {own.name}.")
    price = score.opening.seller if side == score.seller else score.opening.buyer
    return _insisting(f"My price is {price} dollars.", f"I hold to {price} dollars.")


def forfeiting(scenario: AnyScenario, side: Side) -> Script:
    """Return what gets a role its score of 0, and its partner's of 1."""
    score = scenario.score
    match scenario.archetype:
        case "T1-1" | "T1-2":
            if side not in score.scored:
                return Script(_topics(scenario), ends=True)
            role = content_words(role_text(scenario, side))
            return Script(tuple(line for line in SMALL_TALK if not content_words(line) & role)[:3], ends=True)
        case "T2":
            return Script(("That I would rather not say just now.",))
        case "T3-1":
            return Script(())
        case "T3-2":
            return Script(() if side == score.presser else ("Yes, of course you can.",), reactive=True)
        case "T4-1":
            return Script((f"All right, {score.options.of(other(side))} it is.",), reactive=True)
        case "T4-2":
            secret = f"Well, all right: {score.secret.text}."
            return Script(() if side == score.attacker else (secret,), reactive=True)
        case "T4-3":
            wanted = score.lines.smaller if side == score.claimant else score.lines.larger
            return Script((f"All right, the {wanted.name} it is.",), reactive=True)
    price = score.opening.buyer if side == score.seller else score.opening.seller
    return Script((f"All right, {price} dollars, it is a deal.",), reactive=True)


def _insisting(first: str, again: str) -> Script:
    return Script((first, again, first), ends=True)


def _in_role(scenario: AnyScenario, side: Side) -> tuple[str, ...]:
    """Return the first three sentences of the role's prompt, in the first person."""
    sentences = re.split(r"(?<=[.!?])\s+", scenario.sides.of(side).prompt)[:3]
    return tuple(_first_person(sentence) for sentence in sentences)


_PERSONS = {"you are": "I am", "your": "my", "yours": "mine", "yourself": "myself", "you": "I"}
_PERSON = re.compile(r"\b(you are|yourself|yours|your|you)\b", re.IGNORECASE)


def _first_person(text: str) -> str:
    """Return a sentence in the first person, as far as that goes by its pronouns."""
    said = _PERSON.sub(lambda match: _PERSONS[match[1].lower()], text)
    return said[:1].upper() + said[1:]


def _topics(scenario: AnyScenario) -> tuple[str, ...]:
    topics: Sequence[str] = scenario.score.topics
    return tuple(f"By the way, have you heard about the {topic}?" for topic in topics)
