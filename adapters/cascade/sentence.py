"""A sentence of a prompt, taken apart: what it commands, under which condition, and what it denies.

Conventions
-----------
* A condition runs from its conjunction (if, when, once, while, after, until ...) to the next comma, or to the end. What
  it describes is somebody's behaviour and not a command: "if the caller stops talking" does not tell the agent to stop.
* A verb is denied by a negation up to ten words before it in the same clause. A clause ends at a comma, a colon or
  "but".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from adapters.cascade.quantities import Marked, mark_quantities

_CONDITION = re.compile(
    r"\b(?:if|when|whenever|(?<!at )once|while|as soon as|the (?:very )?(?:moment|instant)|(?:each|every|any) time|after|"
    r"following|until|unless|before|in case|as long as|where|"
    r"should (?=the |a |an |your |they |he |she |someone |somebody |anyone ))[^,]*(?:,|$)"
)
_NEGATION = re.compile(
    r"\b(?:no|not|never|none|nothing|neither|nor|without|cannot|avoid|refrain|instead of|rather than|"
    r"forbidden to|\w+n't)\b"
)
_DENIED_AFTER = re.compile(
    r"^(?:\W*[\w'-]+){0,8}?\W+(?:(?:is|are|be|get|gets|stay|stays) (?:\w+ )?"
    r"(?:off|forbidden|banned|disabled|prohibited|unwanted|unwelcome|not)|"
    r"(?:switched|turned|get|gets) (?:off|nothing))\b"
)
_TWICE = re.compile(r"\b(?:not|never|n't|no)\b.*\b(?:fail|forget|neglect|omit) to\b|\b(?:never|not)\b.*\bwithout\b")
_BOUNDARY = re.compile(r"[,;:()—]| but | then ")
_IDIOMS = (
    (r"\bno matter\b", "whatever"),
    (r"\bnot (?:only|just|merely)\b", ""),
    (r"\b(?:do not|don't|never) (?:hesitate|be afraid) to\b", "always"),
    (r"\b(?:do not|don't|never) hold back\b", "speak up"),
    (r"\bwithout (?:any )?(?:delay|hesitation|hesitating|waiting)\b", "at once"),
    (r"\bwithout fail\b", "always"),
    (r"\bno sooner\b", "once"),
    (r"\bnothing but\b", "only"),
)
_REACH = 10


def any_of(*patterns: str) -> re.Pattern[str]:
    """Return one pattern that finds any of ``patterns`` as whole words."""
    return re.compile(r"(?<!\w)(?:" + "|".join(patterns) + r")(?!\w)")


@dataclass(frozen=True)
class Sentence:
    """One sentence in lower case, its quantities marked."""

    marked: Marked

    @property
    def text(self) -> str:
        """The whole sentence."""
        return self.marked.text

    @cached_property
    def condition(self) -> str:
        """The conditions, joined."""
        return " , ".join(match.group() for match in _CONDITION.finditer(self.text))

    @cached_property
    def command(self) -> str:
        """The sentence without its conditions."""
        return _CONDITION.sub(" , ", self.text)

    def says(self, pattern: re.Pattern[str]) -> bool:
        """Whether the pattern occurs anywhere."""
        return pattern.search(self.text) is not None

    def commands(self, pattern: re.Pattern[str]) -> bool:
        """Whether the pattern occurs in the command and is not denied."""
        return any(not denied(self.command, match) for match in pattern.finditer(self.command))

    def denies(self, pattern: re.Pattern[str]) -> bool:
        """Whether the pattern occurs in the command, and every time denied."""
        found = list(pattern.finditer(self.command))
        return bool(found) and all(denied(self.command, match) for match in found)

    def length(self) -> tuple[str, float] | None:
        """Return kind (``max``, ``min``, ``dur``) and seconds of the first length, or None."""
        found = self.marked.first("max", "min", "than", "dur")
        if found is None or found[0] != "than":
            return found
        return ("max" if _NEGATION.search(self.text) else "min"), found[1]


def denied(text: str, match: re.Match[str]) -> bool:
    """Whether what ``match`` found in ``text`` is denied, before it or after it."""
    before = _BOUNDARY.split(text[: match.start()])[-1]
    near = " ".join(before.split()[-_REACH:])
    if _TWICE.search(near):
        return False
    return bool(_NEGATION.search(near) or _NEGATION.match(match.group())) or bool(
        _DENIED_AFTER.match(_BOUNDARY.split(text[match.end() :])[0])
    )


def sentences(prompt: str) -> tuple[Sentence, ...]:
    """Split a prompt into its sentences, in order."""
    text = prompt.lower().replace("’", "'").replace("‘", "'")
    pieces = re.split(r"(?<=[.!?])[\"')]*\s+|\n+|;\s*|:\s+|\s[–—]\s", text)
    out: list[Sentence] = []
    for piece in pieces:
        clean = " ".join(piece.strip(" \t-*•\"'").split()).rstrip(".!?")
        for pattern, replacement in _IDIOMS:
            clean = re.sub(pattern, replacement, clean)
        if clean:
            out.append(Sentence(mark_quantities(clean)))
    return tuple(out)
