"""What is checked of each role: how well it sounds (register) and what it says (content).

A check gives a share between 0 and 1 and, where it is not full, a few words why. A check that *must* hold stands for a
"must never" of the role's content rule: when it is broken the case cannot pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from dsbeval.ifeval.leakage import content_words
from dsbeval.judge.offline import words as w
from dsbeval.judge.offline.figures import runs, unknown
from dsbeval.judge.offline.text import Scene, has

DICTATION_PAUSES = 2
"""A turn with so many pauses is a dictation, which R1, R3 and R6 confirm."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a check found: a share of what was looked for, and why it is not all."""

    share: float
    why: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """One check. Its weight counts among the checks that apply to the case."""

    look: Callable[[Scene], Found | None]
    weight: float = 1.0
    must: bool = False


@dataclass(frozen=True, slots=True)
class RoleChecks:
    """The checks of a role."""

    register: tuple[Check, ...]
    content: tuple[Check, ...]
    name: str = field(default="")


# Checks, each made for a role's words


def never(phrases: tuple[str, ...], what: str, *, said_by_user: bool = False) -> Check:
    """Return the check that none of the phrases is said; with ``said_by_user``, unless the user has it too."""

    def look(scene: Scene) -> Found:
        found = has(scene.said, phrases)
        if said_by_user:
            found = [phrase for phrase in found if phrase not in has(scene.source, phrases)]
        return Found(0.0, f"{what}: {_quoted(found)}") if found else Found(1.0)

    return Check(look, must=True)


def some(phrases: tuple[str, ...], enough: int, what: str, weight: float = 1.0) -> Check:
    """Return the check that at least ``enough`` of the phrases are said."""

    def look(scene: Scene) -> Found:
        share = min(1.0, len(has(scene.said, phrases)) / enough)
        return Found(share, "" if share == 1.0 else f"few {what}")

    return Check(look, weight)


def brief(ideal: int, limit: int, weight: float = 1.0) -> Check:
    """Return the check that no more than ``ideal`` words are said; ``limit`` words get nothing."""

    def look(scene: Scene) -> Found:
        count = len(scene.words)
        share = max(0.0, min(1.0, (limit - count) / (limit - ideal)))
        return Found(share, "" if share == 1.0 else f"long ({count} words)")

    return Check(look, weight)


def _on_subject(scene: Scene) -> Found:
    share = min(1.0, len(scene.taken_up) / 2)
    return Found(share, "" if share == 1.0 else "takes up little of what the user said")


def _no_new_figures(scene: Scene) -> Found:
    new = unknown(scene.said, scene.source)
    return Found(0.0, f"figures that nobody gave: {', '.join(new)}") if new else Found(1.0)


def _dictation(scene: Scene) -> Found | None:
    if scene.last_turn.pauses < DICTATION_PAUSES:
        return None
    share = scene.share_said(scene.last_turn.text)
    return Found(share, "" if share > 0.9 else f"confirms {100 * share:.0f} % of what was dictated")


def _order(scene: Scene) -> Found:
    share = scene.share_said(scene.last_turn.text)
    return Found(min(1.0, share / 0.6), "" if share >= 0.6 else f"confirms {100 * share:.0f} % of the order")


def _asks_or_acts(scene: Scene) -> Found:
    acts = "?" in scene.said or bool(has(scene.said, w.NEXT_STEP))
    return Found(1.0) if acts else Found(0.0, "no question and no next step")


def _urgent_first(scene: Scene) -> Found | None:
    signs = set(has(scene.source, w.URGENT))
    if not signs:
        return None
    return Found(1.0) if signs & set(has(scene.said, w.ALARM)) or "?" in scene.said else Found(0.0, "passes over the urgent sign")


def _asks(scene: Scene) -> Found:
    return Found(1.0) if "?" in scene.said else Found(0.0, "asks nothing")


def _ends_in_question(scene: Scene) -> Found:
    return Found(1.0) if scene.ends_in_question else Found(0.0, "does not end in a question")


def _keeps_answer_back(scene: Scene) -> Found:
    new = unknown(scene.said, scene.source)
    if new:
        return Found(0.0, f"gives figures that the student has not: {', '.join(new)}")
    given = has(scene.said, w.ANSWER_GIVEN)
    given = [phrase for phrase in given if phrase not in has(scene.source, w.ANSWER_GIVEN)]
    return Found(0.0, f"gives the step or the answer away: {_quoted(given)}") if given else Found(1.0)


def _few_questions(scene: Scene) -> Found:
    count = scene.said.count("?")
    return Found(1.0) if count <= 2 else Found(0.0, f"asks {count} questions")


def _with_the_user(scene: Scene) -> Found:
    if has(scene.said, w.PRESENCE):
        return Found(1.0)
    return _on_subject(scene)


def _answers_plainly(scene: Scene) -> Found | None:
    if not scene.last_turn.text.rstrip().endswith("?"):
        return None
    answered = bool(scene.words) and not scene.ends_in_question
    return Found(1.0) if answered else Found(0.0, "leaves a practical question unanswered")


def _nothing_added(scene: Scene) -> Found:
    if not scene.content:
        return Found(0.0, "renders nothing")
    share = len(scene.taken_up) / len(scene.content)
    return Found(share, "" if share > 0.8 else f"{100 * (1 - share):.0f} % of its words are not the source's")


def _all_rendered(scene: Scene) -> Found:
    share = scene.share_said(scene.source)
    return Found(min(1.0, share / 0.7), "" if share >= 0.7 else f"renders {100 * share:.0f} % of the source")


def _no_own_question(scene: Scene) -> Found:
    own = "?" in scene.said and "?" not in scene.source
    return Found(0.0, "asks a question of its own") if own else Found(1.0)


def _no_longer_than_source(scene: Scene) -> Found:
    from dsbeval.judge.offline.text import words

    ratio = len(scene.words) / max(1, len(words(scene.source)))
    return Found(1.0) if ratio <= 1.3 else Found(0.0, f"{ratio:.1f} times as long as the source")


def _even(scene: Scene) -> Found:
    return Found(0.0, "exclaims") if "!" in scene.said and "!" not in scene.source else Found(1.0)


def _builds(scene: Scene) -> Found:
    offer = content_words(scene.source)
    picked, new = len(scene.content & offer), len(scene.added)
    share = min(1.0, picked / 2) * min(1.0, new / 4)
    if share == 1.0:
        return Found(1.0)
    return Found(share, "does not pick up the offer" if picked < 2 else "adds nothing to the offer")


def _accepts(scene: Scene) -> Found:
    first = scene.words[0] if scene.words else ""
    blocked = has(scene.said, w.BLOCK) or (["no"] if first in ("no", "nope") else [])
    return Found(0.0, f"blocks the offer: {_quoted(blocked)}") if blocked else Found(1.0)


def _lively(scene: Scene) -> Found:
    lively = "!" in scene.said or len(has(scene.said, w.PLAYFUL)) >= 2
    return Found(1.0) if lively else Found(0.3, "little life in it")


def _quoted(phrases: list[str]) -> str:
    return ", ".join(f"'{phrase}'" for phrase in phrases[:3])


ON_SUBJECT = Check(_on_subject, 2.0)
NO_NEW_FIGURES = Check(_no_new_figures, must=True)
FIGURES_KNOWN = Check(lambda scene: _no_new_figures(scene) if runs(scene.source) else None)

NURSE = RoleChecks(
    register=(some(w.CALM_QUICK, 2, "calm and quick words"), brief(50, 130)),
    content=(
        Check(_asks_or_acts, 2.0), ON_SUBJECT, Check(_urgent_first, 2.0), Check(_dictation, 3.0), NO_NEW_FIGURES,
        never(w.MINIMISING, "plays it down"),
    ),
    name="triage nurse",
)  # fmt: skip
COUNSELOR = RoleChecks(
    register=(some(w.WARM, 2, "warm words", 2.0), brief(50, 130), Check(_few_questions)),
    content=(
        Check(_with_the_user, 2.0), ON_SUBJECT, never(w.ADVICE, "rushes to advice"), never(w.SILVER_LINING, "offers a silver lining"),
        never(w.DIAGNOSIS, "diagnoses"), never(w.OWN_STORY, "tells a story of its own"),
    ),
    name="counselor",
)  # fmt: skip
DISPATCHER = RoleChecks(
    register=(brief(35, 90, 2.0), some(w.PRACTICAL, 2, "practical words"), some(w.PRACTICAL, 1, "practical words")),
    content=(
        some(w.LOCATION, 1, "words about location or callback number", 2.0), ON_SUBJECT, Check(_dictation, 3.0), Check(_asks_or_acts),
        NO_NEW_FIGURES, never(w.SPECULATION, "speculates"), never(w.CHAT, "chats"),
    ),
    name="dispatcher",
)  # fmt: skip
INSTRUCTOR = RoleChecks(
    register=(some(w.GENTLE, 2, "gentle words", 2.0), brief(30, 80, 2.0), Check(_even)),
    content=(
        brief(40, 100, 2.0), Check(_answers_plainly, 2.0), Check(_with_the_user), never(w.ADVICE, "gives advice"),
        never(w.PRAISE_OR_ANALYSIS, "praises or analyzes"), never(w.CHAT, "chats"),
    ),
    name="meditation",
)  # fmt: skip
TUTOR = RoleChecks(
    register=(some(w.CURIOUS, 1, "curious words", 2.0), brief(45, 120)),
    content=(
        Check(_ends_in_question, 3.0), ON_SUBJECT, some(w.POINTING, 1, "words that point to a step"),
        Check(_keeps_answer_back, must=True),
    ),
    name="tutor",
)  # fmt: skip
ORDER_TAKER = RoleChecks(
    register=(brief(35, 90, 2.0), some(w.ORDER, 1, "words of the counter", 2.0)),
    content=(
        Check(_order, 3.0), ON_SUBJECT, some(w.ORDER, 1, "words of the counter"), NO_NEW_FIGURES, never(w.CHAT, "makes small talk"),
        never(w.ADVICE, "gives advice"),
    ),
    name="order taker",
)  # fmt: skip
INTERPRETER = RoleChecks(
    register=(Check(_no_longer_than_source, 2.0), Check(_even), Check(_no_own_question)),
    content=(
        Check(_nothing_added, 3.0), Check(_all_rendered, 3.0), NO_NEW_FIGURES,
        never(w.COMMENT, "speaks in its own right", said_by_user=True), Check(_no_own_question, must=True),
    ),
    name="interpreter",
)  # fmt: skip
IMPROVISER = RoleChecks(
    register=(Check(_lively, 2.0), brief(60, 150)),
    content=(Check(_builds, 3.0), Check(_accepts, must=True)),
    name="improv",
)
ANY_ROLE = RoleChecks(register=(brief(60, 150),), content=(ON_SUBJECT, FIGURES_KNOWN), name="any role")
"""For a role that these lists do not know: on the subject, no figures of its own, not long."""

BY_NAME: Mapping[str, RoleChecks] = MappingProxyType(
    {
        "triage": NURSE, "nurse": NURSE, "grief": COUNSELOR, "counselor": COUNSELOR, "911": DISPATCHER, "dispatcher": DISPATCHER,
        "meditation": INSTRUCTOR, "socratic": TUTOR, "tutor": TUTOR, "drive-thru": ORDER_TAKER, "order taker": ORDER_TAKER,
        "interpreter": INTERPRETER, "improv": IMPROVISER,
    }
)  # fmt: skip

NOT_AN_ASSISTANT = never(w.ASSISTANT, "speaks as an assistant")
"""Must hold in every role."""


def checks_of(role: str) -> RoleChecks:
    """Return the checks of a role by the words in its name; those of any role where none is known."""
    low = role.casefold()
    return next((checks for word, checks in BY_NAME.items() if word in low), ANY_ROLE)
