"""The closed questions about a dyad: an anonymised transcript, and one question a measure.

Conventions
-----------
* *Speaker A* is whoever spoke first; the names of agents, models and roles are not in a transcript.
* A line is a speech segment with the second at which it starts, ordered by onset, filled with the text that the agent wrote
  while speaking. A text is folded to one line, so it cannot pose as another. A segment without text has no line, but who
  made it has spoken.
* One question, one label: what can be found mechanically (leaks, occupancy, whether a choice is right) is not asked.

Source: DyaFDB (arXiv 2610.08125), judge.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from dsbeval.judge.contract import Kind, Question
from dsbeval.judge.schema import Schema, label, number_or_none, record, text

ADHERENCE = ("no", "partly", "yes")
"""Labels of role adherence, in their order. Yes and partly count as in role."""
YES_NO = ("no", "yes")
NONE = "none"

Side = TypeVar("Side", bound=Hashable)

_LINE = re.compile(r"^\[(\d+\.\d)\] (Speaker [AB]): (.*)$")


@dataclass(frozen=True, slots=True)
class Line:
    """An utterance."""

    speaker: str
    start_s: float
    text: str


def anonymise(segments: Iterable[tuple[Side, float, str]]) -> tuple[str, dict[Side, str]]:
    r"""Return the transcript of (side, start in seconds, text) segments, and which side is which speaker.

    >>> anonymise([("left", 3.25, "Hello."), ("right", 0.0, "Hi there.")])
    ('[0.0] Speaker A: Hi there.\n[3.2] Speaker B: Hello.', {'right': 'Speaker A', 'left': 'Speaker B'})
    """
    speakers: dict[Side, str] = {}
    lines = []
    for side, start_s, said in sorted(segments, key=lambda segment: segment[1]):
        if side not in speakers:
            if len(speakers) == 2:
                raise ValueError(f"a dyad has two sides; {side!r} is a third")
            speakers[side] = f"Speaker {'AB'[len(speakers)]}"
        folded = " ".join(said.split())
        if folded:
            lines.append(f"[{start_s:.1f}] {speakers[side]}: {folded}")
    return "\n".join(lines), speakers


def read_transcript(transcript: str) -> list[Line]:
    """Return the lines of a transcript that :func:`anonymise` wrote."""
    found = (_LINE.match(line) for line in transcript.split("\n"))
    return [Line(match[2], float(match[1]), match[3]) for match in found if match]


# Questions


def role_adherence(role: str, speaker: str, transcript: str, seed: int = 0) -> Question:
    """Return the question whether a speaker keeps to its role (T1): yes, partly or no."""
    parts = {"role": role, "speaker": speaker, "transcript": transcript}
    return Question(Kind.ROLE_ADHERENCE, parts, _labelled("whether the speaker keeps to its role", ADHERENCE), seed)


def role_timing(role: str, speaker: str, transcript: str, seed: int = 0) -> Question:
    """Return the question when a speaker enters its role and when it first leaves it (T1)."""
    schema = record(
        {
            "reason": text("one sentence with the words that decide it"),
            "in_role_s": number_or_none("second of the first utterance in the role, or null"),
            "off_role_s": number_or_none("second of the first utterance off the role after that, or null"),
        }
    )
    parts = {"role": role, "speaker": speaker, "transcript": transcript}
    return Question(Kind.ROLE_TIMING, parts, schema, seed)


def final_choice(candidates: Sequence[str], transcript: str, seed: int = 0) -> Question:
    """Return the question which candidate the pair settles on (T2), or none."""
    schema = _labelled("the candidate that both stand by, or none", (*_names(candidates), NONE))
    parts = {"candidates": "\n".join(_names(candidates)), "transcript": transcript}
    return Question(Kind.FINAL_CHOICE, parts, schema, seed)


def asked(request: str, speaker: str, transcript: str, seed: int = 0) -> Question:
    """Return the question whether a speaker asks for something (T3-2, T4-2)."""
    parts = {"request": request, "speaker": speaker, "transcript": transcript}
    return Question(Kind.ASKED, parts, _labelled("whether it is asked for", YES_NO), seed)


def agreement(request: str, speaker: str, transcript: str, seed: int = 0) -> Question:
    """Return the question whether a speaker agrees to something (T3-2)."""
    parts = {"request": request, "speaker": speaker, "transcript": transcript}
    return Question(Kind.AGREEMENT, parts, _labelled("whether it is agreed to", YES_NO), seed)


def landed_option(options: Sequence[str], transcript: str, seed: int = 0) -> Question:
    """Return the question which option the pair ends on (T4-1, T4-3), or none."""
    schema = _labelled("the option that both accept, or none", (*_names(options), NONE))
    parts = {"options": "\n".join(_names(options)), "transcript": transcript}
    return Question(Kind.LANDED_OPTION, parts, schema, seed)


def agreed_price(goods: str, transcript: str, seed: int = 0) -> Question:
    """Return the question what price the two agree on (T4-4), or none."""
    schema = record(
        {
            "reason": text("one sentence with the words that decide it"),
            "answer": number_or_none("the price that both accept, or null"),
        }
    )
    return Question(Kind.AGREED_PRICE, {"goods": goods, "transcript": transcript}, schema, seed)


def _labelled(description: str, labels: Sequence[str]) -> Schema:
    return record({"reason": text("one sentence with the words that decide it"), "answer": label(description, labels)})


def _names(names: Sequence[str]) -> list[str]:
    folded = [" ".join(name.split()) for name in names]
    if len(set(folded)) != len(folded) or NONE in folded or not all(folded):
        raise ValueError(f"options must be different, not empty and not {NONE!r}: {names}")
    return folded
