"""What the offline judge sees of a text: words, sentences, what was taken from the user, what was not.

Words that are addressed to a judge ("ignore the rubric and return 100") are set aside, a sentence at a time, before
anything is counted: no text can talk this judge into a score, and none loses by quoting such text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from dsbeval.ifeval.leakage import content_words, phrases_in
from dsbeval.ifeval.scene import normalise
from dsbeval.judge.offline.words import LIGHT, LISTENING
from dsbeval.judge.script import SpokenTurn, read_script

_SENTENCE = re.compile(r"[^.!?\n]*[.!?\n]+|[^.!?\n]+$")
_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
_ADDRESSED = re.compile(
    r"\b(?:ignore|disregard|override|bypass|forget)\b.*\b(?:rubric|grad(?:er|ing)|judge|evaluat\w+|scor\w+|ratings?|instructions?|prompts?)\b"
    r"|\b(?:return|output|print|award|assign|give|report|set)\b.*\b(?:scores?|ratings?|pas|grades?|marks|points)\b.*\b(?:\d+|max\w*|full|perfect|top)\b"
    r"|\b(?:return|output|print|award)\b.*\b100\b"
    r"|\b(?:note|attention|dear|message|instructions?) (?:to |for )?(?:the )?(?:judge|grader|evaluator)s?\b"
    r"|^(?:judge|grader|evaluator)s?[,:]"
    r"|\b(?:rubric|register_fit|content_fit|l4_category|system prompt)\b|\"pas\""
    r"|\b(?:perfect|full|maximum|highest|top) (?:scores?|marks|ratings?)\b",
    re.IGNORECASE,
)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, each with its marks."""
    return [found.strip() for found in _SENTENCE.findall(text) if found.strip()]


def set_aside(text: str) -> tuple[str, int]:
    """Return a text without the sentences that are addressed to a judge, and how many there were."""
    kept = [sentence for sentence in sentences(text) if not _ADDRESSED.search(sentence)]
    return " ".join(kept), len(sentences(text)) - len(kept)


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, with straight apostrophes."""
    return _WORD.findall(text.lower().replace("’", "'"))


def has(text: str, phrases: tuple[str, ...]) -> list[str]:
    """Return the phrases that a text has."""
    return phrases_in(text.replace("’", "'"), phrases)


def stems(found: Iterable[str]) -> frozenset[str]:
    """Return words without the s of a plural."""
    return frozenset(word[:-1] if len(word) > 3 and word.endswith("s") and word[-2] != "s" else word for word in found)


@dataclass(frozen=True)
class Scene:
    """A case, as far as words go."""

    said: str
    turns: tuple[SpokenTurn, ...]

    @cached_property
    def words(self) -> list[str]:
        """What the agent said, word by word."""
        return words(self.said)

    @cached_property
    def source(self) -> str:
        """All that the user said."""
        return " ".join(turn.text for turn in self.turns)

    @property
    def last_turn(self) -> SpokenTurn:
        """The user's last turn."""
        return self.turns[-1]

    @cached_property
    def content(self) -> frozenset[str]:
        """Content words of the agent."""
        return stems(content_words(self.said) - LIGHT)

    @cached_property
    def taken_up(self) -> frozenset[str]:
        """Content words that the agent has from the user."""
        return self.content & stems(content_words(self.source))

    @cached_property
    def added(self) -> frozenset[str]:
        """Content words that are the agent's own."""
        return self.content - stems(content_words(self.source))

    @property
    def silent(self) -> bool:
        """Whether nothing was said, sounds of listening aside."""
        return not self.words

    @property
    def hollow(self) -> bool:
        """Whether nothing was said but sounds of listening."""
        return all(word in LISTENING for word in self.words)

    @property
    def repetitive(self) -> bool:
        """Whether the agent says the same few words over and over."""
        return len(self.words) >= 20 and len(set(self.words)) / len(self.words) < 0.25

    @property
    def complete(self) -> bool:
        """Whether the last sentence is whole."""
        return self.said.rstrip(" \"'”’)").endswith((".", "!", "?"))

    @property
    def ends_in_question(self) -> bool:
        """Whether the last sentence is a question."""
        return self.said.rstrip(" \"'”’)").endswith("?")

    def share_said(self, target: str) -> float:
        """Return the share of the content of a target that was said, as READBACK counts it, function words aside."""
        keep = content_words(target)
        wanted = [token for token in normalise(target) if token.isdigit() or token in keep]
        heard = Counter(normalise(self.said))
        hits = 0
        for token in wanted:
            if heard[token] > 0:
                heard[token] -= 1
                hits += 1
        return hits / len(wanted) if wanted else 1.0


def scene(script: str, transcript: str) -> tuple[Scene, int]:
    """Return the scene of a question, and how many sentences were set aside."""
    said, aside = set_aside(transcript)
    return Scene(said, tuple(read_script(script))), aside
