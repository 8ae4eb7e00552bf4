"""The table of role words: all that a persona without stated rules can change.

A word counts wherever it stands, in any job: the table knows no jobs. ``docs/agents.md`` shows the same table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from adapters.cascade.floor import PROMPT_GAP_S, Floor, Tone, Trigger

STILL_GAP_S = 3.0
STILL_STEP_S = 1.0
STILL_MOST_S = 6.0


@dataclass(frozen=True, slots=True)
class RoleWords:
    """A row: what the words are about, the words (regular expressions of whole words), and what they do."""

    about: str
    words: tuple[str, ...]
    does: str

    def count(self, text: str) -> int:
        """Return how many different words of the row occur."""
        return sum(re.search(rf"\b(?:{word})\b", text) is not None for word in self.words)


STILLNESS = RoleWords(
    "stillness",
    (
        "stillness",
        "silences?",
        "quiet(?:ly)?",
        "unhurried",
        "slow(?:ly)?",
        "no hurry",
        "calm(?:ly)?",
        "ponder\\w*",
        "mourn\\w*",
    ),
    "gap 3 s, and 1 s more for each further word, 6 s at most",
)
HASTE = RoleWords(
    "haste",
    (
        "rush",
        "hurry",
        "fast",
        "quick(?:ly)?",
        "momentum",
        "brisk(?:ly)?",
        "urgent(?:ly)?",
        "busy",
        "dead air",
        "queue",
        "deadline",
    ),
    "gap 0.5 s",
)
RECORDS = RoleWords(
    "records",
    (
        "digits?",
        "charts?",
        "records?",
        "recorded",
        "typed",
        "tickets?",
        "spelling",
        "forms?",
        "written down",
        "dictat\\w+",
        "to the letter",
    ),
    "reads back what was dictated",
)
COMPANY = RoleWords(
    "company",
    ("warm(?:th)?", "company", "compassion(?:ate)?", "listener", "comfort(?:ing)?", "kind(?:ly)?", "empath\\w+"),
    "listening sounds, 3 a minute, in a gentle tone",
)
ALARM = RoleWords(
    "alarm",
    ("emergenc(?:y|ies)", "ambulances?", "symptoms?", "sick(?:est)?", "clinic(?:al)?", "paramedics?"),
    "comes in on red flags",
)
SLIPS = RoleWords(
    "slips",
    ("mistakes?", "errors?", "slips?", "wrong", "misheard", "ambiguous"),
    "comes in on corrections and ambiguity",
)
PLAY = RoleWords(
    "play",
    ("jokes?", "laugh(?:s|ter|ing)?", "stage", "playful", "comedy", "audience"),
    "listening sounds, 8 a minute, in a playful tone",
)

ROLE_WORDS = (STILLNESS, HASTE, RECORDS, COMPANY, ALARM, SLIPS, PLAY)


def from_persona(persona: str) -> Floor:
    """Return the floor that the words of a persona (lower case) set, row by row in the order of the table."""
    floor = Floor()
    still, haste = STILLNESS.count(persona), HASTE.count(persona)
    if still > haste:
        floor = replace(floor, gap_s=min(STILL_GAP_S + STILL_STEP_S * (still - 1), STILL_MOST_S), tone=Tone.GENTLE)
    elif haste > still:
        floor = replace(floor, gap_s=PROMPT_GAP_S, tone=Tone.BRISK)
    if RECORDS.count(persona):
        floor = replace(floor, read_back=True)
    if COMPANY.count(persona):
        floor = replace(floor, backchannels=True, answers_checks=True, tone=Tone.GENTLE)
    if ALARM.count(persona):
        floor = replace(floor, triggers=floor.triggers | {Trigger.RED_FLAG})
    if SLIPS.count(persona):
        floor = replace(floor, triggers=floor.triggers | {Trigger.CORRECTION, Trigger.AMBIGUITY})
    if PLAY.count(persona):
        floor = replace(floor, backchannels=True, answers_checks=True, backchannels_per_minute=8.0, tone=Tone.PLAYFUL)
    return floor
