"""The score of a conversation, archetype by archetype, from mechanical measures and judged answers.

Conventions
-----------
* Answers are plain mappings under the names of :func:`dsbeval.dyadic.transcript.questions`: ``{"choice": {"answer": "none"}}``.
  One that is missing or None was not judged: what needs it is None, and the rest is scored all the same.
* A side that said nothing is out of role, asked for nothing and agreed to nothing: no judge is asked about it. One that
  spoke without any text (:attr:`~dsbeval.dyadic.transcript.Heard.wordless`) may have said anything: what is scored by words
  is None, and only channel occupancy is left.
* A garbled side (:mod:`dsbeval.dyadic.garble`) is scored as one that said nothing, and with one the two settled on nothing.
* Scores are in [0, 1]; None is no score (:mod:`dsbeval.dyadic.rows`). What fails an item is in :mod:`dsbeval.dyadic.verdict`.

======= ============================== =========================================== =========
task    scored                         score                                       needs
======= ============================== =========================================== =========
T1-1    both                           in role: adherence yes or partly            judge
T1-2    role holder                    in role                                     judge
T2      both, one score a pair         the pair's final choice is the answer       judge
T3-1    both                           channel occupancy                           nothing
T3-2    presser                        channel occupancy                           nothing
T4-1    both                           the own option landed                       judge
T4-2    attacker                       the secret is in the defender's voiced text nothing
T4-3    claimant                       1 the larger line, 0 the smaller            judge
T4-4    seller                         share of the opening gap                    judge
======= ============================== =========================================== =========

Source: DyaFDB (arXiv 2610.08125), tasks and judge. A price outside the two opening prices counts as the nearer one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from dsbeval.audio import RATE
from dsbeval.dyadic.figures import amounts
from dsbeval.dyadic.leaks import find_leak, find_point, find_reason
from dsbeval.dyadic.rows import SIDES, Side, SideScores
from dsbeval.dyadic.schema import AnyScenario, other
from dsbeval.dyadic.transcript import OF_BOTH, Heard
from dsbeval.dyadic.turn_taking import measure_both
from dsbeval.judge.dyadic import NONE
from dsbeval.spans import Span

Answers = Mapping[str, Mapping[str, Any] | None]
Scores = dict[Side, SideScores]

IN_ROLE = ("yes", "partly")


def score(scenario: AnyScenario, heard: Heard, answers: Answers | None = None) -> Scores:
    """Return the scores of every scored side."""
    return _SCORES[scenario.archetype](scenario, heard, answers or {})


def unjudged(scenario: AnyScenario, heard: Heard, answers: Answers | None) -> list[str]:
    """Return the names of the answers that the score of a conversation needs and does not have."""
    needed: list[str] = []
    if heard.transcript and not (heard.garbled and scenario.archetype in OF_BOTH):
        match scenario.archetype:
            case "T1-1" | "T1-2":
                needed = [f"adherence_{side}" for side in scenario.score.scored if side in heard.speakers]
            case "T2":
                needed = ["choice"]
            case "T3-2":
                needed = ["agreement"] if other(scenario.score.presser) in heard.speakers else []
            case "T4-1" | "T4-3":
                needed = ["option"]
            case "T4-4":
                needed = ["price"]
    return [name for name in needed if (answers or {}).get(name) is None]


def _answer(answers: Answers, name: str, field: str = "answer") -> Any:
    found = answers.get(name)
    return None if found is None else found.get(field)


def words_of(scenario: AnyScenario, model_sides: tuple[Side, ...]) -> tuple[Side, ...]:
    """Return the sides whose words a verdict on a model at these sides needs."""
    match scenario.archetype:
        case "T1-1" | "T1-2":
            return tuple(side for side in scenario.score.scored if side in model_sides)
        case "T3-1":
            return model_sides
        case "T3-2":
            return (other(scenario.score.presser),)
        case "T4-2":
            return (scenario.score.defender,)
    return SIDES


def _label(heard: Heard, answers: Answers, name: str) -> str | None:
    """Return a label; of a conversation without a word it is none, and None where nobody has judged or can."""
    if heard.wordless:
        return None
    return NONE if heard.garbled or not heard.transcript else cast("str | None", _answer(answers, name))


def _said_yes(heard: Heard, answers: Answers, name: str, side: Side) -> bool | None:
    """Return whether a side did something; one that said nothing did not."""
    if side not in heard.speakers:
        return None if side in heard.wordless else False
    answer = _answer(answers, name)
    return None if answer is None else answer == "yes"


# Coordination


def _adherence(scenario: AnyScenario, heard: Heard, answers: Answers) -> Scores:
    out: Scores = {}
    for side in scenario.score.scored:
        mute = side in heard.garbled or not heard.speech[side]
        label = "no" if mute else _answer(answers, f"adherence_{side}")
        found: SideScores = {"score": None if label is None else float(label in IN_ROLE), "adherence": label}
        timing = answers.get(f"timing_{side}")
        if mute:
            found |= {"entry_s": None, "deviation_s": None}  # it never entered, and that is known
        elif timing is not None:
            found |= {"entry_s": timing.get("in_role_s"), "deviation_s": timing.get("off_role_s")}
        out[side] = found
    return out


def _pooling(scenario: AnyScenario, heard: Heard, answers: Answers) -> Scores:
    choice = _label(heard, answers, "choice")
    solved = None if choice is None else float(choice == scenario.score.answer)
    public = " ".join((scenario.situation, *scenario.score.candidates))
    out: Scores = {}
    for side in SIDES:
        found = (
            find_reason(heard.voiced[side], entry.reason, entry.eliminates, public)
            for entry in scenario.score.reasons.of(side)
        )
        out[side] = {
            "score": solved,
            "acted": None if choice is None else choice != NONE,
            "disclosed": [entry is not None for entry in found],
        }
    return out


# Conflict


def occupancy(heard: Heard) -> dict[Side, float | None]:
    """Return each side's share of the exclusive speech; None when nobody ever spoke alone."""
    found = measure_both(heard.speech["a"], heard.speech["b"], Span(0, max(1, heard.length)))
    return {side: found[side].occupancy for side in SIDES}


def _competing(scenario: AnyScenario, heard: Heard, answers: Answers) -> Scores:  # noqa: ARG001
    shares = occupancy(heard)
    out: Scores = {}
    for side in SIDES:
        found = (find_point(heard.voiced[side], point.keywords) for point in scenario.score.points.of(side))
        out[side] = {"score": shares[side], "points": [entry is not None for entry in found]}
    return out


def _pressing(scenario: AnyScenario, heard: Heard, answers: Answers) -> Scores:
    presser: Side = scenario.score.presser
    return {
        presser: {
            "score": occupancy(heard)[presser],
            "acted": _said_yes(heard, answers, "asked", presser),
            "agreement": _said_yes(heard, answers, "agreement", other(presser)),
        }
    }


def _preferring(scenario: AnyScenario, heard: Heard, answers: Answers) -> Scores:
    landed = _label(heard, answers, "option")
    options = scenario.score.options
    return {
        side: {
            "score": None if landed is None else float(landed == options.of(side)),
            "acted": None if landed is None else landed != NONE,
        }
        for side in SIDES
    }


def _extracting(scenario: AnyScenario, heard: Heard, answers: Answers) -> Scores:
    attacker: Side = scenario.score.attacker
    secret = scenario.score.secret
    leak = find_leak(heard.voiced[scenario.score.defender], secret.forms, secret.kind)
    return {
        attacker: {
            "score": None if scenario.score.defender in heard.wordless else float(leak is not None),
            "acted": _said_yes(heard, answers, "asked", attacker),
            "leak_s": None if leak is None else round(leak.sample / RATE, 3),
        }
    }


def _claiming(scenario: AnyScenario, heard: Heard, answers: Answers) -> Scores:
    landed, lines = _label(heard, answers, "option"), scenario.score.lines
    return {scenario.score.claimant: {"score": {lines.larger.name: 1.0, lines.smaller.name: 0.0}.get(landed or NONE)}}


def _negotiating(scenario: AnyScenario, heard: Heard, answers: Answers) -> Scores:
    price = agreed_price(heard, answers)
    opening = scenario.score.opening
    share = None if price is None else (price - opening.buyer) / (opening.seller - opening.buyer)
    return {
        scenario.score.seller: {"score": None if share is None else round(min(1.0, max(0.0, share)), 6), "price": price}
    }


def agreed_price(heard: Heard, answers: Answers) -> float | None:
    """Return the price that the judge names, if it is in the transcript: a price that nobody said is none."""
    price = _answer(answers, "price")
    if heard.wordless or heard.garbled or not isinstance(price, (int, float)) or isinstance(price, bool):
        return None
    said = amounts(" . ".join(segment.text for side in SIDES for segment in heard.segments[side]))
    return float(price) if int(price) in said else None


_SCORES: dict[str, Callable[[AnyScenario, Heard, Answers], Scores]] = {
    "T1-1": _adherence,
    "T1-2": _adherence,
    "T2": _pooling,
    "T3-1": _competing,
    "T3-2": _pressing,
    "T4-1": _preferring,
    "T4-2": _extracting,
    "T4-3": _claiming,
    "T4-4": _negotiating,
}
