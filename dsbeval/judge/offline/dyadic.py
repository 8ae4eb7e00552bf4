"""The closed questions of the dyads, offline: what can be said by looking for words in lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dsbeval.ifeval.leakage import content_words
from dsbeval.judge.contract import Kind, Question
from dsbeval.judge.dyadic import Line, read_transcript
from dsbeval.judge.offline import words as w
from dsbeval.judge.offline.figures import runs
from dsbeval.judge.offline.text import has, set_aside, words

ENOUGH_SHARE = 0.5
SOME_SHARE = 0.2
SHORT_LINE = 4
LONGEST_PRICE = 13


def answer_dyadic(question: Question) -> dict[str, Any]:
    """Return the answer to a dyadic question."""
    lines = [
        Line(line.speaker, line.start_s, said)
        for line in read_transcript(question.parts["transcript"])
        if (said := set_aside(line.text)[0])
    ]
    return {"reason": "offline proxy: words looked for in the lines", **_ANSWERS[question.kind](question, lines)}


def _own(question: Question, lines: list[Line]) -> list[Line]:
    return [line for line in lines if line.speaker == question.parts["speaker"]]


def _in_role(role: frozenset[str], line: Line) -> bool:
    return bool(content_words(line.text) & role)


def _adherence(question: Question, lines: list[Line]) -> dict[str, Any]:
    role = content_words(question.parts["role"])
    said = [line for line in _own(question, lines) if len(words(line.text)) > SHORT_LINE]
    share = sum(_in_role(role, line) for line in said) / len(said) if said else 0.0
    return {"answer": "yes" if share >= ENOUGH_SHARE else "partly" if share >= SOME_SHARE else "no"}


def _timing(question: Question, lines: list[Line]) -> dict[str, Any]:
    role = content_words(question.parts["role"])
    said = [line for line in _own(question, lines) if not _is_small_talk(line)]
    entry = next((line.start_s for line in said if _in_role(role, line)), None)
    left = next(
        (
            line.start_s
            for line in said
            if entry is not None
            and line.start_s > entry
            and len(words(line.text)) > SHORT_LINE
            and not _in_role(role, line)
        ),
        None,
    )
    return {"in_role_s": entry, "off_role_s": left}


def _is_small_talk(line: Line) -> bool:
    rest = " ".join(words(line.text))
    for phrase in sorted(has(line.text, w.SMALL_TALK), key=len, reverse=True):
        rest = rest.replace(phrase, "")
    return len(rest.split()) <= 2


def _choice(options: str, question: Question, lines: list[Line]) -> dict[str, Any]:
    """Return the option that both named last, or that one named last and the other then accepted."""
    names = tuple(name for name in question.parts[options].split("\n") if name)
    last: dict[str, str] = {}
    accepted = None
    for line in lines:
        named = _named_last(line.text, names)
        if named is not None:
            last[line.speaker] = named
            accepted = named if len(set(last.values())) == 1 and len(last) == 2 else None
        elif _agrees(line):
            others = [name for speaker, name in last.items() if speaker != line.speaker]
            if others:
                last[line.speaker] = others[0]
                accepted = others[0]
    return {"answer": accepted or "none"}


def _named_last(text: str, names: tuple[str, ...]) -> str | None:
    low = f" {' '.join(words(text))} "
    places = {name: low.rfind(f" {' '.join(words(name))} ") for name in names}
    found = {name: place for name, place in places.items() if place >= 0}
    return max(found, key=lambda name: found[name]) if found else None


def _agrees(line: Line) -> bool:
    return bool(has(line.text, w.AGREEING)) and not has(line.text, w.DECLINING)


def _asked(question: Question, lines: list[Line]) -> dict[str, Any]:
    request = content_words(question.parts["request"])
    asked = any(
        ("?" in line.text or has(line.text, w.ASKING))
        and len(content_words(line.text) & request) >= min(2, len(request))
        for line in _own(question, lines)
    )
    return {"answer": "yes" if asked else "no"}


def _agreement(question: Question, lines: list[Line]) -> dict[str, Any]:
    request, open_request, agreed = content_words(question.parts["request"]), False, False
    for line in lines:
        if line.speaker != question.parts["speaker"]:
            open_request = bool(content_words(line.text) & request) or open_request
        elif has(line.text, w.DECLINING):
            agreed = False
        elif open_request and has(line.text, w.AGREEING):
            agreed = True
    return {"answer": "yes" if agreed else "no"}


def _price(question: Question, lines: list[Line]) -> dict[str, Any]:
    """Return the last price that one named and the other named too or accepted next."""
    del question
    last: dict[str, float] = {}
    price: float | None = None
    for line in lines:
        named = [float(figure) for run in runs(line.text) for figure in run if len(figure) < LONGEST_PRICE]
        if named:
            last[line.speaker] = named[-1]
            others = [value for speaker, value in last.items() if speaker != line.speaker]
            price = named[-1] if named[-1] in others else None
        elif _agrees(line):
            others = [value for speaker, value in last.items() if speaker != line.speaker]
            price = others[0] if others else price
    return {"answer": price}


_ANSWERS: dict[Kind, Callable[[Question, list[Line]], dict[str, Any]]] = {
    Kind.ROLE_ADHERENCE: _adherence,
    Kind.ROLE_TIMING: _timing,
    Kind.FINAL_CHOICE: lambda question, lines: _choice("candidates", question, lines),
    Kind.LANDED_OPTION: lambda question, lines: _choice("options", question, lines),
    Kind.ASKED: _asked,
    Kind.AGREEMENT: _agreement,
    Kind.AGREED_PRICE: _price,
}
