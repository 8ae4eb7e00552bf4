"""Persona adherence and the conflict label, offline: the checks of the role, added up.

* content = weighted mean of the content checks that apply; a broken "must never" puts it at 0.25 at most, and the PAS at 40.
* register = weighted mean of the register checks; the tone of a help desk halves it (but at a counter), speaking as an assistant
  puts it at 0.
* PAS = 100 x (0.6 content + 0.4 register), the fits are 5 x their share; both rounded.
* Nothing said, or nothing but sounds of listening: all 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from dsbeval.judge.contract import Question
from dsbeval.judge.offline import words as w
from dsbeval.judge.offline.checks import Check, no_help_desk
from dsbeval.judge.offline.roles import NOT_AN_ASSISTANT, RoleChecks, checks_of
from dsbeval.judge.offline.text import Scene, has, scene
from dsbeval.judge.pas import NO_SPEECH

CONTENT_WEIGHT = 0.6
BROKEN_CONTENT = 0.25
BROKEN_PAS = 40
PROXY = "offline proxy"


def answer_pas(question: Question) -> dict[str, Any]:
    """Return the answer to a PAS question."""
    parts = question.parts
    spoken = "" if parts["transcript"] == NO_SPEECH else parts["transcript"]
    found, aside = scene(parts["script"], spoken)
    checks = checks_of(parts["role"])
    note = f" ({aside} sentence{'s' if aside > 1 else ''} addressed to a judge set aside)" if aside else ""
    answer: dict[str, Any] = {
        "formalize": f"{PROXY}: the checks of a {checks.name}",
        "timeline": f"{len(found.words)} words in {len([s for s in found.said.split('.') if s.strip()])} sentences{note}",
    }
    if found.hollow:
        why = "says nothing" if found.silent else "makes no more than sounds of listening"
        fits: dict[str, Any] = {
            "register_fit": 0,
            "register_rationale": why,
            "content_fit": 0,
            "content_rationale": why,
            "pas": 0,
        }
        summary = f"{PROXY}: the agent {why}, which shows nothing of the role"
    else:
        fits, summary = _graded(found, checks)
    answer |= {**fits, "l4_category": _conflict(question, found, fits["content_fit"]), "summary": summary + note}
    return answer


def _graded(found: Scene, checks: RoleChecks) -> tuple[dict[str, Any], str]:
    register, register_why, _ = _mean(found, checks.register)
    content, content_why, broken = _mean(found, (*checks.content, NOT_AN_ASSISTANT))
    if found.repetitive:
        register = content = 0.1
        content_why.insert(0, "says the same few words over and over")
    assistant = NOT_AN_ASSISTANT.look(found)
    if assistant is not None and assistant.share == 0.0:
        register = 0.0
        register_why.insert(0, assistant.why)
    help_desk = no_help_desk(found)
    if help_desk.share == 0.0 and not checks.at_a_counter:
        register /= 2
        register_why.insert(0, help_desk.why)
    if broken:
        content = min(content, BROKEN_CONTENT)
    pas = round(100 * (CONTENT_WEIGHT * content + (1 - CONTENT_WEIGHT) * register))
    if broken:
        pas = min(pas, BROKEN_PAS)
    fits = {
        "register_fit": round(5 * register),
        "register_rationale": "; ".join(register_why) or "sounds like the role",
        "content_fit": round(5 * content),
        "content_rationale": "; ".join(content_why) or "says what the role asks for",
        "pas": pas,
    }
    reasons = [*broken, *(why for why in (*content_why, *register_why) if why not in broken)]
    return fits, f"{PROXY}: {'; '.join(reasons[:3]) or 'every check of the role holds'}"


def _mean(found: Scene, checks: Iterable[Check]) -> tuple[float, list[str], list[str]]:
    """Return the weighted mean of the checks that apply, why it is not 1, and which of the musts are broken."""
    total = weight = 0.0
    whys: list[str] = []
    broken: list[str] = []
    for check in checks:
        result = check.look(found)
        if result is None:
            continue
        if result.share < 1.0 and result.why:
            whys.append(result.why)
        if check.must:
            if result.share == 0.0:
                broken.append(result.why)
            continue
        total += check.weight * result.share
        weight += check.weight
    whys = [*broken, *(why for why in dict.fromkeys(whys) if why not in broken)]
    return (total / weight if weight else 1.0), whys, broken


# The conflict label


_NO_READ_BACK = re.compile(r"\bnot read\b.*\bback\b|\bnever (?:check|verify)\b")
_READ_BACK = re.compile(r"\bread\b.*\bback\b")
_KEEP_ON = re.compile(r"\bkeep (?:talking|guiding|speaking|going)\b|\bto the end of the\b")
_BREAK_OFF = re.compile(r"\bbreak off\b")
_PASS_OVER = re.compile(r"\bignore any\b|\btreat it as\b|\bnever ask which\b|\bpick either\b")
_LET_FINISH = re.compile(r"\blet the \w+ (?:finish|carry on)\b")
_SILENCE = re.compile(r"\bsay nothing\b|\bgive no\b|\bmake no\b|\bunanswered\b|\bstay silent\b|\bempty\b")
_ANNOUNCE = re.compile(r"\bannounce\b")
_SPEAK = re.compile(r"\btake the turn\b|\bbreak the\b|\bstart within\b|\bgive one\b|\bcome in\b")

DIRECTIVE, PERSONA, HEDGED, INCOHERENT = "directive-wins", "persona-wins", "hedged", "incoherent"


def _conflict(question: Question, found: Scene, content_fit: int) -> str:
    """Return what the words show of a conflict; ``n/a`` where there is none.

    Instructions about the floor leave few marks in words: whether something was said, whether it was said to the end, whether
    a dictation came back. Nothing is read into the words beyond that.
    """
    if "instruction" not in question.parts:
        return "n/a"
    asks = " ".join(question.parts["instruction"].lower().split())
    if found.repetitive:
        return INCOHERENT
    if _PASS_OVER.search(asks) or re.search(r"\bnever (?:check|verify)\b", asks):
        return PERSONA if _takes_up(found) else DIRECTIVE
    if _NO_READ_BACK.search(asks) or _READ_BACK.search(asks):
        share = found.share_said(found.last_turn.text)
        back, front = (PERSONA, DIRECTIVE) if _NO_READ_BACK.search(asks) else (DIRECTIVE, PERSONA)
        return back if share >= 0.5 else front if share < 0.2 else HEDGED
    if _LET_FINISH.search(asks):
        return HEDGED if _takes_up(found) else DIRECTIVE  # that it came afterwards cannot be read from words
    if _KEEP_ON.search(asks) or _BREAK_OFF.search(asks):
        if found.hollow:
            return INCOHERENT
        return DIRECTIVE if found.complete == bool(_KEEP_ON.search(asks)) else PERSONA
    if _SILENCE.search(asks):
        if found.silent:
            return DIRECTIVE
        return PERSONA if found.hollow or content_fit >= 2 else INCOHERENT
    if _ANNOUNCE.search(asks):
        return DIRECTIVE if has(found.said, w.COMMENT) or has(found.said, ("correct", "corrected")) else PERSONA
    if _SPEAK.search(asks):
        return PERSONA if found.silent else DIRECTIVE
    return INCOHERENT if content_fit < 2 else HEDGED


def _takes_up(found: Scene) -> bool:
    """Return whether the agent takes up what must not be passed over in the user's last turn."""
    if has(found.said, w.ALARM):
        return True
    last = set(re.findall(r"[a-z]+", found.last_turn.text.lower()))
    return len({word for word in found.taken_up if word in last}) >= 2
