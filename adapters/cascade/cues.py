"""What the last words of the user call for: a sign of attention, an answer, more time, or a read-back.

The text is a recogniser's: lower case, no punctuation. The patterns are general English.
"""

from __future__ import annotations

import re

from adapters.cascade.triggers import NUMBER_WORD

_CHECK = re.compile(
    r"\b(?:are you (?:still )?(?:there|with me|here|listening|following)|"
    r"(?:do )?you (?:know|now|see|follow|get it|understand)(?: what i(?:'m| am)? (?:mean|mean to say|saying))?|"
    r"(?:does|did|is) (?:that|this|it) (?:make (?:any )?sense|clear|work|sound (?:right|okay))|"
    r"(?:can|do) you hear me|you (?:still )?(?:there|with me)|(?:\w+ ){3}(?:okay|right)|got (?:that|it)|"
    r"you (?:got|get) (?:that|it|me)|if (?:that|you know what i)(?: \w+){0,2} (?:sense|mean)|anyone there|"
    r"with me so far)$"
)  # "you now" is how "you know" is often recognised
_PRESENCE = re.compile(r"\b(?:there|hear me|listening)$")
_QUESTION = re.compile(
    r"\b(?:how (?:long|much|many|far|late|often|do|does|can|should|would|is|are)|what(?:'s| is| are| time| do| does|"
    r" should| if)|when (?:do|does|is|will|are|can|should)|"
    r"where (?:do|does|is|are|can|should)|(?:can|could|should|may|shall|do|will|would|am) (?:i|we|you)|(?:is|are|"
    r"will|does) (?:there|it|this|that|we|you|the))\b"
)
_HANGING = re.compile(
    r"\b(?:and|or|but|so|the|a|an|of|to|with|at|in|on|for|my|your|because|if|that|is|are|was|i|we|it's|um|uh|er|from|"
    r"by|than|as)$"
)
_DICTATED = re.compile(
    rf"\b(?:{NUMBER_WORD}|oh|double|milligrams?|micrograms?|tablets?|street|avenue|road|lane|drive|number|large|"
    rf"medium|small|extra|o'clock|a\.?m\.?|p\.?m\.?|"
    r"monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|april|june|july|august|"
    r"september|october|november|december|"
    r"hundred|percent|dollars?|half|first|second|third)\b"
)


def is_check(text: str) -> bool:
    """Whether the last words ask for a sign of attention: "you know", "does that make sense", "are you still there"."""
    return _CHECK.search(text) is not None


def asks_presence(text: str) -> bool:
    """Whether the check is about being there at all."""
    return is_check(text) and _PRESENCE.search(text) is not None


def is_question(text: str) -> bool:
    """Whether the last dozen words hold a question to the listener."""
    return not is_check(text) and _QUESTION.search(" ".join(text.split()[-12:])) is not None


def is_hanging(text: str) -> bool:
    """Whether the last word leaves a sentence open."""
    return _HANGING.search(text) is not None


def is_dictation(text: str) -> bool:
    """Whether the words hold at least three numbers, measures, sizes or days."""
    return sum(1 for _ in _DICTATED.finditer(text)) >= 3
