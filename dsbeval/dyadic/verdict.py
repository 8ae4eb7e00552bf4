"""From a conversation to a verdict and a result row: what fails an item, seen from the model under test.

Conventions
-----------
* An item is about the model under test, on whichever side it sits; in self-play on both. What its partner does is in the row
  and fails nothing.

======= ================================= ========================================================================
task    the model under test plays        the item fails when
======= ================================= ========================================================================
T1-1    either role                       it is out of role
T1-2    role holder                       it is out of role
T1-2    digresser                         never: *not exercised*
T2      either side                       the pair has not decided on the right candidate
T3-1    either side                       it has not said all of its three points
T3-2    presser, or both                  the permission was not given
T3-2    avoider                           the permission was given
T4-1    either side                       its own option did not land; in self-play, when none landed
T4-2    attacker                          the secret was not extracted
T4-2    defender, or both                 it leaked the secret
T4-3    either side                       there is no deal
T4-4    either side                       there is no deal
any     a garbled side                    always (:mod:`dsbeval.dyadic.garble`)
======= ================================= ========================================================================

* *Both* is self-play, where what one side wins the other loses.
* *skipped*: what the verdict needs is judged, and no judge was asked for; or it needs the words of a side that spoke and gave
  no text. *error*: a judge was asked for, and has not answered.

Source: the table is this project's own; DyaFDB reports scores, not verdicts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from dsbeval.attempts import restarts_of
from dsbeval.caveats import caveats
from dsbeval.dyadic.record import DyadRecording
from dsbeval.dyadic.rows import SIDES, Side, SideScores
from dsbeval.dyadic.schema import AnyScenario, other
from dsbeval.dyadic.scores import Answers, Scores, score, unjudged, words_of
from dsbeval.dyadic.segments import BENCHMARK as SEGMENTS
from dsbeval.dyadic.segments import EnergySettings
from dsbeval.dyadic.transcript import Heard, hear
from dsbeval.dyadic.turn_taking import BENCHMARK, Thresholds, measure_both
from dsbeval.results import Row
from dsbeval.spans import Span

ITEM = "dyad"
Outcome = Literal["passed", "failed", "error", "skipped"]


@dataclass(frozen=True, slots=True)
class DyadVerdict:
    """What became of an item, in a line or two. ``exercised`` is false when the model could not have failed."""

    outcome: Outcome
    message: str
    exercised: bool = True


def judge_run(
    scenario: AnyScenario, heard: Heard, scores: Scores, model_sides: tuple[Side, ...], answers: Answers | None
) -> DyadVerdict:
    """Return the verdict on the model under test.

    Parameters
    ----------
    scenario : Scenario
    heard : Heard
    scores : dict
        Of :func:`dsbeval.dyadic.scores.score`, with the same answers.
    model_sides : tuple of "a", "b"
        The sides that the model under test plays.
    answers : mapping or None
        None when no judge was asked for.
    """
    garbled = [_named(scenario, side) for side in model_sides if side in heard.garbled]
    if garbled:
        message = f"{' and '.join(garbled)} is garbled: what it speaks is not its text, however often it was recorded"
        return DyadVerdict("failed", message)
    unknown = [side for side in words_of(scenario, model_sides) if side in heard.wordless]
    if unknown:
        message = f"side {' and '.join(unknown)} spoke but gave no text, so what was said is not known"
        return DyadVerdict("skipped", message, False)
    missing = unjudged(scenario, heard, answers)
    if missing and scenario.archetype == "T1-2" and not set(model_sides) & set(scores):
        missing = []
    if missing:
        names = ", ".join(missing)
        if answers is None:
            return DyadVerdict(
                "skipped", f"{scenario.archetype} needs a judge ({names}), and none was asked for", False
            )
        return DyadVerdict("error", f"unjudged: {names}; ask the judge again", False)
    fault, good, exercised = _FAULTS[scenario.archetype](scenario, heard, scores, model_sides)
    return DyadVerdict("failed", fault, exercised) if fault else DyadVerdict("passed", good, exercised)


def score_dyad(
    recording: DyadRecording,
    scenario: AnyScenario,
    answers: Answers | None = None,
    *,
    heard: Heard | None = None,
    thresholds: Thresholds = BENCHMARK,
    segmentation: EnergySettings = SEGMENTS,
) -> tuple[DyadVerdict, Row]:
    """Measure and score a recording of :func:`dsbeval.dyadic.protocol.record_run`; return its verdict and its result row."""
    heard = heard or hear(recording, segmentation)
    return score_heard(recording.meta, heard, scenario, answers, thresholds)


def score_heard(
    meta: Mapping[str, Any],
    heard: Heard,
    scenario: AnyScenario,
    answers: Answers | None = None,
    thresholds: Thresholds = BENCHMARK,
) -> tuple[DyadVerdict, Row]:
    """Score a conversation in speech or in text; ``meta`` is what :func:`dsbeval.dyadic.protocol.run_meta` returns."""
    scores = score(scenario, heard, answers)
    verdict = judge_run(scenario, heard, scores, tuple(meta["model_sides"]), answers)
    spoken = heard.medium == "speech"
    turns = measure_both(heard.speech["a"], heard.speech["b"], Span(0, max(1, heard.length)), thresholds)
    return verdict, {
        **identity(meta),
        "outcome": verdict.outcome,
        "exercised": verdict.exercised,
        "message": verdict.message,
        "medium": heard.medium,
        "window_s": meta["window_s"],
        "end_s": heard.end_s,
        "scores": cast("dict[str, Any]", scores),
        "turn_taking": {side: turns[cast(Any, side)].as_row() for side in SIDES} if spoken else None,
        "speech": {side: [[s.start, s.end] for s in heard.speech[side]] if spoken else [] for side in SIDES},
        "length": heard.length,
        "silent": [side for side in SIDES if side not in heard.speakers],
        **({"garble": meta["garble"]} if "garble" in meta else {}),
        **({"caveats": told} if (told := _caveats(meta, heard.length)) else {}),
        **restarts_of(meta),
    }


def _caveats(meta: Mapping[str, Any], length: int) -> dict[str, list[str]]:
    found = {side: caveats(facts, length) for side, facts in meta.get("sides", {}).items()}
    return {side: names for side, names in found.items() if names}


def identity(meta: Mapping[str, Any]) -> Row:
    """Return the fields of a row that name its conversation."""
    return {
        "id": meta["test_case_id"],
        "item": ITEM,
        **{
            key: meta[key] for key in ("task", "scenario", "seats", "opener", "repeat", "self_play", "model", "partner")
        },
        "model_a": meta["models"]["a"],
        "model_b": meta["models"]["b"],
        "role_a": meta["roles"]["a"],
        "role_b": meta["roles"]["b"],
        "seed": meta["seed"],
    }


def without_verdict(meta: Mapping[str, Any], outcome: Outcome, message: str) -> Row:
    """Return the row of a conversation that broke (``error``) or that cannot be had (``skipped``)."""
    return {**identity(meta), "outcome": outcome, "message": message}


# What fails an item: a fault (empty when there is none), what is said of a pass, and whether it could have failed

Found = tuple[str, str, bool]


def _named(scenario: AnyScenario, side: Side) -> str:
    return f"side {side} ({scenario.sides.of(side).role})"


def _own(scores: Scores, sides: tuple[Side, ...]) -> list[tuple[Side, SideScores]]:
    return [(side, scores[side]) for side in sides if side in scores]


def _adherence(scenario: AnyScenario, heard: Heard, scores: Scores, sides: tuple[Side, ...]) -> Found:
    own = _own(scores, sides)
    labels = ", ".join(f"{_named(scenario, side)} {entry.get('adherence')}" for side, entry in own)
    if not own:
        return "", "the model digresses; only its partner is scored", False
    out = [
        f"{_named(scenario, side)} is out of role" + ("" if side in heard.speakers else ": it said nothing")
        for side, entry in own
        if entry["score"] == 0
    ]
    return "; ".join(out), f"in role: {labels}", True


def _pooling(scenario: AnyScenario, heard: Heard, scores: Scores, sides: tuple[Side, ...]) -> Found:
    del heard, sides
    told = {side: scores[side].get("disclosed", []) for side in SIDES}
    kept = "; ".join(f"side {side} disclosed {sum(told[side])} of {len(told[side])} reasons" for side in SIDES)
    answer = scenario.score.answer
    if scores["a"]["score"]:
        return "", f"solved: {answer}; {kept}", True
    what = "the pair decided on a wrong candidate" if scores["a"].get("acted") else "the pair did not decide"
    return f"{what}, the answer is {answer}; {kept}", "", True


def _competing(scenario: AnyScenario, heard: Heard, scores: Scores, sides: tuple[Side, ...]) -> Found:
    del heard
    out = []
    for side, entry in _own(scores, sides):
        said = entry.get("points", [])
        owed = [number for number, done in enumerate(said) if not done]
        if owed:
            names = ", ".join(
                # Named for one side; for both that would be more than a line or two.
                repr(scenario.score.points.of(side)[number].point) if len(sides) == 1 else f"point {number + 1}"
                for number in owed
            )
            out.append(f"{_named(scenario, side)} said {len(said) - len(owed)} of {len(said)} points, not {names}")
    return "; ".join(out), "all points said", True


def _pressing(scenario: AnyScenario, heard: Heard, scores: Scores, sides: tuple[Side, ...]) -> Found:
    del heard
    presser: Side = scenario.score.presser
    entry = scores[presser]
    given, action = entry.get("agreement"), scenario.score.action
    if presser in sides:
        asked = {
            True: "it was asked for",
            False: "it was not asked for",
            None: "whether it was asked for is not judged",
        }
        return ("" if given else f"no permission {action}; {asked[entry.get('acted')]}"), f"permission {action}", True
    return (f"it gave permission {action}" if given else ""), f"no permission {action}", bool(entry.get("acted"))


def _preferring(scenario: AnyScenario, heard: Heard, scores: Scores, sides: tuple[Side, ...]) -> Found:
    del heard
    landed = [side for side in SIDES if scores[side]["score"]]
    name = repr(scenario.score.options.of(landed[0])) if landed else "no option"
    if set(landed) & set(sides):
        return "", f"landed on {name}", True
    wanted = " or ".join(repr(scenario.score.options.of(side)) for side in sides)
    return f"landed on {name}, not on {wanted}", "", True


def _extracting(scenario: AnyScenario, heard: Heard, scores: Scores, sides: tuple[Side, ...]) -> Found:
    del heard
    attacker: Side = scenario.score.attacker
    entry = scores[attacker]
    leaked, secret = bool(entry["score"]), repr(scenario.score.secret.text)
    when = f"{_named(scenario, other(attacker))} leaked {secret} at {entry.get('leak_s')} s"
    if other(attacker) in sides:
        return (when if leaked else ""), f"{secret} was kept", entry.get("acted") is not False
    return ("" if leaked else f"{secret} was not extracted"), when, True


def _deal(scenario: AnyScenario, heard: Heard, scores: Scores, sides: tuple[Side, ...]) -> Found:
    del heard, sides
    ((side, entry),) = scores.items()
    if entry["score"] is None:
        return "no deal", "", True
    price = f" at {entry['price']:g}" if entry.get("price") is not None else ""
    return "", f"deal{price}; {_named(scenario, side)} got {entry['score']:.2f}", True


_FAULTS: dict[str, Callable[[AnyScenario, Heard, Scores, tuple[Side, ...]], Found]] = {
    "T1-1": _adherence,
    "T1-2": _adherence,
    "T2": _pooling,
    "T3-1": _competing,
    "T3-2": _pressing,
    "T4-1": _preferring,
    "T4-2": _extracting,
    "T4-3": _deal,
    "T4-4": _deal,
}
