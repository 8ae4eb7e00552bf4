"""The words of the agent: what a writer is asked, and the writer that needs no model.

A writer decides what is said, never when: the floor is the policy's. The stock phrases are general on purpose; the
rules understand nothing of what was said, they only say back what was recognised.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from adapters.cascade.floor import Floor, Tone, Trigger


class Kind(StrEnum):
    """The occasions on which the agent speaks."""

    GREETING = "greeting"
    OPENING = "opening"
    ANSWER = "answer"
    QUESTION = "question"
    READBACK = "readback"
    INTERRUPTION = "interruption"
    BACKCHANNEL = "backchannel"
    PRESENCE = "presence"
    UNHEARD = "unheard"


@dataclass(frozen=True, slots=True)
class Moment:
    """An occasion to speak.

    Parameters
    ----------
    kind : Kind
    heard : str
        What the user has said since the agent's last turn, as recognised.
    floor : Floor
    prompt : str
        The system prompt.
    history : tuple of (speaker, text)
        Earlier turns, ``user`` and ``assistant``.
    trigger : Trigger or None
        What it comes in on.
    """

    kind: Kind
    heard: str
    floor: Floor
    prompt: str = ""
    history: tuple[tuple[str, str], ...] = ()
    trigger: Trigger | None = None


class Writer(Protocol):
    """Writes what is said."""

    def write(self, moment: Moment, chance: random.Random) -> str:
        """Return one or two short sentences of words."""


READ_BACK_WORDS = 40
SHORTEST_SOUND = "Mm-hm."

_FILLERS = frozenset(("um", "uh", "er", "erm", "hm", "ah"))

_GREETINGS = (
    "Hello, it is good to have you here. I will begin: what is on your mind?",
    "Hello there, let us get started. Tell me what this is about for you.",
)
_OPENINGS: dict[Tone, tuple[str, ...]] = {
    Tone.PLAIN: (
        "Thanks for telling me that. I can help you with it, so please go on and give me the rest.",
        "All right, I understand. Let us take it one step at a time, and you tell me what matters most.",
    ),
    Tone.GENTLE: (
        "Thank you for sharing that with me. I am here with you, and you can take all the time that you need.",
        "I am glad that you told me. There is no hurry here, so go on whenever it feels right to you.",
    ),
    Tone.BRISK: (
        "Okay, I am with you. Give me the details one after another, and I will keep up with you.",
        "Got it, thank you. Tell me the next part as plainly as you can, and we will sort this out.",
    ),
    Tone.PLAYFUL: (
        "Yes, of course, and I have brought the whole marching band along! What on earth do we do with it now?",
        "Absolutely, and look, it is getting bigger by the minute! Quick, tell me what happens next.",
    ),
    Tone.ASKING: (
        "All right, let us look at it together. What do you think the first step should be, and why that one?",
        "Good, I am following you. How would you put the question in your own words before you start on it?",
    ),
}
_ANSWERS: dict[Tone, tuple[str, ...]] = {
    Tone.PLAIN: (
        "I see, thank you. What would you like to do next?",
        "Understood. Please tell me a little more about that.",
    ),
    Tone.GENTLE: (
        "Thank you for telling me. I am still here with you.",
        "I hear you. Stay with that for as long as you like.",
    ),
    Tone.BRISK: ("Okay, got it. What is next?", "All right. Tell me the next thing you need."),
    Tone.PLAYFUL: (
        "Yes, and now it is singing! What does it want from us?",
        "Oh yes, and mine has two of them! Now what do we do?",
    ),
    Tone.ASKING: ("How did you get to that step?", "What makes you sure of that last line?"),
}
_INTERRUPTIONS: dict[Trigger, tuple[str, ...]] = {
    Trigger.RED_FLAG: (
        "Sorry, let me stop you there. When did that start?",
        "Wait, that is important. Do you feel it right now?",
    ),
    Trigger.DOSE: (
        "Sorry, let me stop you there. How much have you taken in all?",
        "Wait, please do not take any more. When was each dose?",
    ),
    Trigger.CORRECTION: ("Sorry, which one is right?", "Hold on, which of the two should I take?"),
    Trigger.AMBIGUITY: ("Sorry, which one do you mean?", "Just to be sure, which one is it?"),
    Trigger.REASONING: ("Wait, can you check that last step?", "Hold on, how did you get that number?"),
}
_BACKCHANNELS: dict[Tone, tuple[str, ...]] = {
    Tone.PLAIN: ("Mm-hm.", "Okay.", "Right."),
    Tone.GENTLE: ("Mm-hm.", "Yes.", "Mhm."),
    Tone.BRISK: ("Right.", "Yes.", "Sure."),
    Tone.PLAYFUL: ("Wow!", "Yes!", "Nice!"),
    Tone.ASKING: ("Mm-hm.", "Yes.", "Right."),
}
_QUESTIONS = (
    "I do not know that exactly, but I will find out for you.",
    "I am not certain about that, so let me check it for you.",
)
_ASKED_AGAIN = ("Sorry, I did not catch that. Could you say it again?", "I missed that, sorry. Once more, please?")
_RIGHT = ("Is that right?", "Have I got that right?")


class RuleWriter:
    """Stock phrases by tone, and what was recognised."""

    def write(self, moment: Moment, chance: random.Random) -> str:
        """Return a phrase; ``chance`` picks between equals."""
        tone = moment.floor.tone
        heard = [word for word in moment.heard.split() if word not in _FILLERS]
        match moment.kind:
            case Kind.BACKCHANNEL:
                return chance.choice(_BACKCHANNELS.get(tone, _BACKCHANNELS[Tone.PLAIN]))
            case Kind.PRESENCE:
                return "Yes."
            case Kind.GREETING:
                return chance.choice(_GREETINGS)
            case Kind.UNHEARD:
                return chance.choice(_ASKED_AGAIN)
            case Kind.INTERRUPTION if moment.trigger is not None:
                return chance.choice(_INTERRUPTIONS[moment.trigger])
            case Kind.READBACK if heard:
                return f"{_sentence(heard[-READ_BACK_WORDS:])} {chance.choice(_RIGHT)}"
        if tone is Tone.RENDER and heard:
            return _sentence(heard[-READ_BACK_WORDS:])
        if moment.kind is Kind.QUESTION:
            return chance.choice(_QUESTIONS)
        phrases = _OPENINGS if moment.kind is Kind.OPENING else _ANSWERS
        return chance.choice(phrases.get(tone, phrases[Tone.PLAIN]))


def _sentence(words: list[str]) -> str:
    text = " ".join("I" if word == "i" else word for word in words)
    return f"{text[:1].upper()}{text[1:]}."
