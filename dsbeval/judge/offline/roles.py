"""What is checked of each role: how well it sounds (register) and what it says (content).

The roles are known by words in their names, so that the official release's are known too. A role that is not known is
judged by what holds in any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from dsbeval.judge.offline import checks as c
from dsbeval.judge.offline import words as w
from dsbeval.judge.offline.checks import Check, brief, never, some
from dsbeval.judge.offline.figures import runs


@dataclass(frozen=True, slots=True)
class RoleChecks:
    """The checks of a role. ``at_a_counter``: the tone of a help desk is its own."""

    name: str
    register: tuple[Check, ...]
    content: tuple[Check, ...]
    at_a_counter: bool = False


ON_SUBJECT = Check(c.on_subject, 2.0)
NO_NEW_FIGURES = Check(c.no_new_figures, must=True)
FIGURES_KNOWN = Check(lambda scene: c.no_new_figures(scene) if runs(scene.source) else None)

NURSE = RoleChecks(
    name="triage nurse",
    register=(some(w.CALM_QUICK, 2, "calm and quick words", 3.0), brief(50, 130)),
    content=(
        Check(c.asks_or_acts, 2.0),
        ON_SUBJECT,
        Check(c.urgent_first, 2.0),
        Check(c.dictation, 3.0),
        NO_NEW_FIGURES,
        never(w.MINIMISING, "plays it down"),
    ),
)
COUNSELOR = RoleChecks(
    name="counselor",
    register=(some(w.WARM, 2, "warm words", 3.0), brief(50, 130), Check(c.few_questions)),
    content=(
        Check(c.with_the_user, 2.0),
        ON_SUBJECT,
        never(w.ADVICE, "rushes to advice", but_urgent=True),
        never(w.SILVER_LINING, "offers a silver lining"),
        never(w.DIAGNOSIS, "diagnoses"),
        never(w.OWN_STORY, "tells a story of its own"),
    ),
)
DISPATCHER = RoleChecks(
    name="dispatcher",
    register=(brief(35, 90), some(w.PRACTICAL, 2, "practical words", 3.0)),
    content=(
        some(w.LOCATION, 1, "words about location or callback number", 3.0),
        ON_SUBJECT,
        Check(c.dictation, 3.0),
        Check(c.asks_or_acts),
        NO_NEW_FIGURES,
        never(w.SPECULATION, "speculates"),
        never(w.CHAT, "chats"),
    ),
)
INSTRUCTOR = RoleChecks(
    name="meditation",
    register=(some(w.GENTLE, 2, "gentle words", 3.0), brief(30, 80), Check(c.even)),
    content=(
        brief(40, 100),
        Check(c.answers_plainly, 2.0),
        some(w.GENTLE, 1, "gentle words", 2.0),
        Check(c.with_the_user),
        never(w.ADVICE, "gives advice"),
        never(w.PRAISE_OR_ANALYSIS, "praises or analyzes"),
        never(w.CHAT, "chats"),
    ),
)
TUTOR = RoleChecks(
    name="tutor",
    register=(some(w.CURIOUS, 1, "curious words", 3.0), brief(45, 120)),
    content=(
        Check(c.asks, must=True),
        Check(c.ends_in_question, 2.0),
        Check(c.points_to_the_work, 3.0),
        Check(c.keeps_answer_back, must=True),
    ),
)
ORDER_TAKER = RoleChecks(
    name="order taker",
    register=(brief(35, 90), some(w.ORDER, 1, "words of the counter", 3.0)),
    content=(
        Check(c.order, 3.0),
        ON_SUBJECT,
        some(w.ORDER, 1, "words of the counter"),
        NO_NEW_FIGURES,
        never(w.CHAT, "makes small talk"),
        never(w.ADVICE, "gives advice"),
    ),
    at_a_counter=True,
)
INTERPRETER = RoleChecks(
    name="interpreter",
    register=(Check(c.no_longer_than_source, 2.0), Check(c.even), Check(c.no_own_question)),
    content=(
        Check(c.nothing_added, 3.0),
        Check(c.all_rendered, 3.0),
        Check(c.no_figure_added, must=True),
        never(w.COMMENT, "speaks in its own right", said_by_user=True),
        Check(c.no_own_question, must=True),
    ),
)
IMPROVISER = RoleChecks(
    name="improv",
    register=(Check(c.lively, 3.0), brief(60, 150)),
    content=(Check(c.builds, 3.0), Check(c.accepts, must=True)),
)
ANY_ROLE = RoleChecks(name="any role", register=(brief(60, 150),), content=(ON_SUBJECT, FIGURES_KNOWN))
"""For a role that these lists do not know: on the subject, no figures of its own, not long."""

BY_NAME: Mapping[str, RoleChecks] = MappingProxyType(
    {
        "triage": NURSE,
        "nurse": NURSE,
        "grief": COUNSELOR,
        "counselor": COUNSELOR,
        "911": DISPATCHER,
        "dispatcher": DISPATCHER,
        "meditation": INSTRUCTOR,
        "socratic": TUTOR,
        "tutor": TUTOR,
        "drive-thru": ORDER_TAKER,
        "order taker": ORDER_TAKER,
        "interpreter": INTERPRETER,
        "improv": IMPROVISER,
    }
)

NOT_AN_ASSISTANT = never(w.ASSISTANT, "speaks as an assistant")
"""Must hold in every role."""


def checks_of(role: str) -> RoleChecks:
    """Return the checks of a role by the words in its name; those of any role where none is known."""
    low = role.casefold()
    return next((checks for word, checks in BY_NAME.items() if word in low), ANY_ROLE)
