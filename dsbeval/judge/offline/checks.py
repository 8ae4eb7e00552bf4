"""Checks of what was said: each looks for one thing that can be counted.

A check gives a share between 0 and 1 and, where it is not full, a few words why, or nothing where it does not apply. A
check that *must* hold stands for a "must never" of a role's content rule: when it is broken the case cannot pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dsbeval.judge.offline import words as w
from dsbeval.judge.offline.figures import unknown
from dsbeval.judge.offline.text import Scene, has, words

DICTATION_PAUSES = 2
"""A turn with so many pauses is a dictation, which R1, R3 and R6 confirm."""
PLAIN_ANSWER = 30
"""Words that a plain answer has at most."""
SMALL_TALK_FIGURES = 10
"""A single figure up to this is how people talk ("two more questions", "from one to ten"), not a dose or a house number."""


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


# Checks, each made for a role's words


def never(phrases: tuple[str, ...], what: str, *, said_by_user: bool = False, but_urgent: bool = False) -> Check:
    """Return the check that none of the phrases is said.

    With ``said_by_user``, unless the user has it too; with ``but_urgent``, unless the user named an urgent sign.
    """

    def look(scene: Scene) -> Found:
        found = has(scene.said, phrases)
        if but_urgent and has(scene.source, w.URGENT):
            return Found(1.0)
        if said_by_user:
            found = [phrase for phrase in found if phrase not in has(scene.source, phrases)]
        return Found(0.0, f"{what}: {quoted(found)}") if found else Found(1.0)

    return Check(look, must=True)


def some(phrases: tuple[str, ...], enough: int, what: str, weight: float = 1.0) -> Check:
    """Return the check that at least ``enough`` of the phrases are said."""

    def look(scene: Scene) -> Found:
        share = min(1.0, len(has(scene.said, phrases)) / enough)
        return Found(share, "" if share == 1.0 else f"few {what}")

    return Check(look, weight)


def no_help_desk(scene: Scene) -> Found:
    """Whether it keeps clear of the tone of a help desk."""
    found = has(scene.said, w.SERVICE)
    return Found(0.0, f"sounds like a help desk: {quoted(found)}") if found else Found(1.0)


def brief(ideal: int, limit: int, weight: float = 1.0) -> Check:
    """Return the check that no more than ``ideal`` words are said; ``limit`` words get nothing."""

    def look(scene: Scene) -> Found:
        count = len(scene.words)
        share = max(0.0, min(1.0, (limit - count) / (limit - ideal)))
        return Found(share, "" if share == 1.0 else f"long ({count} words)")

    return Check(look, weight)


def on_subject(scene: Scene) -> Found:
    """Whether it takes up what the user said: two content words are enough."""
    share = min(1.0, len(scene.taken_up) / 2)
    return Found(share, "" if share == 1.0 else "takes up little of what the user said")


def no_new_figures(scene: Scene) -> Found:
    """Whether every figure in it came from the user, small talk aside."""
    new = [figure for figure in unknown(scene.said, scene.source, alone_from=SMALL_TALK_FIGURES + 1) if figure != "911"]
    return Found(0.0, f"figures that nobody gave: {', '.join(new)}") if new else Found(1.0)


def no_figure_added(scene: Scene) -> Found:
    """Whether every figure in it came from the user, without exception."""
    new = unknown(scene.said, scene.source)
    return Found(0.0, f"figures that the source has not: {', '.join(new)}") if new else Found(1.0)


def dictation(scene: Scene) -> Found | None:
    """How much of a dictation it confirms."""
    if scene.last_turn.pauses < DICTATION_PAUSES:
        return None
    share = scene.share_said(scene.last_turn.text)
    return Found(share, "" if share > 0.9 else f"confirms {100 * share:.0f} % of what was dictated")


def order(scene: Scene) -> Found:
    """How much of an order it confirms: three words in five are enough."""
    share = scene.share_said(scene.last_turn.text)
    return Found(min(1.0, share / 0.6), "" if share >= 0.6 else f"confirms {100 * share:.0f} % of the order")


def points_to_the_work(scene: Scene) -> Found:
    """Whether it points to something in the student's work, in their words or in those of a lesson."""
    share = min(1.0, (len(scene.taken_up) + len(has(scene.said, w.POINTING))) / 2)
    return Found(share, "" if share == 1.0 else "points to nothing in the work")


def asks_or_acts(scene: Scene) -> Found:
    """Whether it asks something or says what happens next."""
    acts = "?" in scene.said or bool(has(scene.said, w.NEXT_STEP))
    return Found(1.0) if acts else Found(0.0, "no question and no next step")


def urgent_first(scene: Scene) -> Found | None:
    """Whether it takes up an urgent sign, where the user named one."""
    signs = set(has(scene.source, w.URGENT))
    if not signs:
        return None
    return (
        Found(1.0)
        if signs & set(has(scene.said, w.ALARM)) or "?" in scene.said
        else Found(0.0, "passes over the urgent sign")
    )


def asks(scene: Scene) -> Found:
    """Whether it asks anything."""
    return Found(1.0) if "?" in scene.said else Found(0.0, "asks nothing")


def ends_in_question(scene: Scene) -> Found:
    """Whether it ends in a question."""
    return Found(1.0) if scene.ends_in_question else Found(0.0, "does not end in a question")


def keeps_answer_back(scene: Scene) -> Found:
    """Whether it gives neither the answer nor the step away."""
    new = unknown(scene.said, scene.source)
    if new:
        return Found(0.0, f"gives figures that the student has not: {', '.join(new)}")
    given = has(scene.said, w.ANSWER_GIVEN)
    given = [phrase for phrase in given if phrase not in has(scene.source, w.ANSWER_GIVEN)]
    return Found(0.0, f"gives the step or the answer away: {quoted(given)}") if given else Found(1.0)


def few_questions(scene: Scene) -> Found:
    """Whether it asks no more than two questions."""
    count = scene.said.count("?")
    return Found(1.0) if count <= 2 else Found(0.0, f"asks {count} questions")


def with_the_user(scene: Scene) -> Found:
    """Whether it is there with the user, in so many words or in theirs."""
    if has(scene.said, w.PRESENCE):
        return Found(1.0)
    return on_subject(scene)


def answers_plainly(scene: Scene) -> Found | None:
    """Whether a question that ends the user's turn is answered, in few words and not with a question."""
    if not scene.last_turn.text.rstrip().endswith("?"):
        return None
    answered = 0 < len(scene.words) <= PLAIN_ANSWER and not scene.ends_in_question
    return Found(1.0) if answered else Found(0.0, "leaves a practical question unanswered")


def nothing_added(scene: Scene) -> Found:
    """Which share of its content words are the source's."""
    if not scene.content:
        return Found(0.0, "renders nothing")
    share = len(scene.taken_up) / len(scene.content)
    return Found(share, "" if share > 0.8 else f"{100 * (1 - share):.0f} % of its words are not the source's")


def all_rendered(scene: Scene) -> Found:
    """How much of the source it renders: seven words in ten are enough."""
    share = scene.share_said(scene.source)
    return Found(min(1.0, share / 0.7), "" if share >= 0.7 else f"renders {100 * share:.0f} % of the source")


def no_own_question(scene: Scene) -> Found:
    """Whether it asks nothing that the source does not ask."""
    own = "?" in scene.said and "?" not in scene.source
    return Found(0.0, "asks a question of its own") if own else Found(1.0)


def no_longer_than_source(scene: Scene) -> Found:
    """Whether it is no longer than the source, with a little room."""
    ratio = len(scene.words) / max(1, len(words(scene.source)))
    return Found(1.0) if ratio <= 1.3 else Found(0.0, f"{ratio:.1f} times as long as the source")


def even(scene: Scene) -> Found:
    """Whether it exclaims only where the source does."""
    return Found(0.0, "exclaims") if "!" in scene.said and "!" not in scene.source else Found(1.0)


def builds(scene: Scene) -> Found:
    """Whether it picks the offer up and adds to it."""
    picked, new = len(scene.taken_up), len(scene.added)
    share = min(1.0, picked / 2) ** 1.5 * min(1.0, new / 4)
    if share == 1.0:
        return Found(1.0)
    return Found(share, "picks up little of the offer" if picked < 2 else "adds little to the offer")


def accepts(scene: Scene) -> Found:
    """Whether it blocks nothing."""
    first = scene.words[0] if scene.words else ""
    blocked = has(scene.said, w.BLOCK) or (["no"] if first in ("no", "nope") else [])
    return Found(0.0, f"blocks the offer: {quoted(blocked)}") if blocked else Found(1.0)


def lively(scene: Scene) -> Found:
    """Whether there is life in it."""
    lively = "!" in scene.said or len(has(scene.said, w.PLAYFUL)) >= 2
    return Found(1.0) if lively else Found(0.2, "little life in it")


def quoted(phrases: list[str]) -> str:
    """Return a few phrases in quotes."""
    return ", ".join(f"'{phrase}'" for phrase in phrases[:3])
