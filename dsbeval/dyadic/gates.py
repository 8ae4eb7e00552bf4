"""The gates that scenarios pass before anyone is tested with them: the recipes, proved on the data.

A gate is a small function that yields :class:`~dsbeval.ifeval.conversation_gates.Finding`. :data:`SCENARIO_GATES` look at
one scenario, :data:`SUITE_GATES` at all of them.

Conventions
-----------
* What belongs to both sides is the situation, the two names and, in T2, the names of the candidates. *Private* is what a
  side holds beyond that: its reasons, points, topics, the action, the secret, the opening price.
* No prompt holds the other's private content: no private string, not half of the content words of one, no sentence part
  that the two prompts share, and little common vocabulary at all.
* Content words are those of :mod:`dsbeval.ifeval.leakage`; phrases are matched as whole words in any case.

Source: DyaFDB (arXiv 2610.08125), scenario recipes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations

from dsbeval.dyadic.recipes import ARCHETYPE_GATES
from dsbeval.dyadic.rows import SCORED_BOTH, SIDES, TASKS, Side
from dsbeval.dyadic.scenarios import Suite
from dsbeval.dyadic.schema import AnyScenario, other
from dsbeval.ifeval.conversation_gates import Finding
from dsbeval.ifeval.leakage import MAX_JACCARD, content_words, jaccard, phrases_in

NUMBER = 20
"""Scenarios an archetype."""
TACTICS = 8
"""Fewest tactics of T4-2."""
BALANCE = 0.2
"""Largest difference in words between the sides of a symmetric archetype, as a share of the longer prompt."""
SHARED_RUN = 3
"""A run of words that both prompts have may hold fewer content words than this, the situation's aside."""
SETTINGS_ALIKE = 0.5
"""Jaccard index of content words at which two settings are the same one."""

_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")


def finding(gate: str, scenario: AnyScenario, field: str, message: str) -> Finding:
    """Return a blocking finding in a field of a scenario."""
    return Finding(gate, f"scenarios/{scenario.archetype}.yaml", scenario.id, field, message)


# One scenario


def names(_suite: Suite, scenario: AnyScenario) -> Iterator[Finding]:
    """Yield where the two sides are not two people who are introduced by the situation and addressed by their prompts."""
    if scenario.sides.a.name == scenario.sides.b.name:
        yield finding("names", scenario, "sides.b.name", f"is {scenario.sides.a.name}, as side a is; take another name")
    for side in SIDES:
        name = scenario.sides.of(side).name
        if not phrases_in(scenario.situation, [name]):
            yield finding("names", scenario, "situation", f"does not name {name}; say who the two are")
        if not scenario.sides.of(side).prompt.startswith(f"You are {name}"):
            yield finding("names", scenario, f"sides.{side}.prompt", f"does not begin with 'You are {name}'; begin so")


def balance(_suite: Suite, scenario: AnyScenario) -> Iterator[Finding]:
    """Yield symmetric scenarios in which one side is told much more than the other."""
    if scenario.archetype not in SCORED_BOTH:
        return
    words = {side: len(scenario.sides.of(side).prompt.split()) for side in SIDES}
    longer: Side = "a" if words["a"] >= words["b"] else "b"
    if words[longer] - words[other(longer)] > BALANCE * words[longer]:
        message = f"has {words[longer]} words, the other side {words[other(longer)]}; at most {BALANCE:.0%} apart, shorten one"
        yield finding("balance", scenario, f"sides.{longer}.prompt", message)


def privacy(_suite: Suite, scenario: AnyScenario) -> Iterator[Finding]:
    """Yield private content of a side that the other's prompt or the situation has."""
    shared = shared_words(scenario)
    for side in SIDES:
        places = {f"sides.{other(side)}.prompt": scenario.sides.of(other(side)).prompt, "situation": scenario.situation}
        for text in private(scenario, side):
            own = content_words(text) - shared
            for field, place in places.items():
                found = own & content_words(place)
                if phrases_in(place, [text.rstrip(".")]):
                    yield finding(
                        "privacy", scenario, field, f"has {text!r}, which only side {side} knows; take it out"
                    )
                elif len(found) * 2 >= len(own) > 0:
                    message = (
                        f"has {', '.join(sorted(found))} of {text!r}, which only side {side} knows; say something else"
                    )
                    yield finding("privacy", scenario, field, message)
    a, b = (content_words(scenario.sides.of(side).prompt) - shared for side in SIDES)
    alike = jaccard(a, b)
    if alike >= MAX_JACCARD:
        message = (
            f"shares {', '.join(sorted(a & b))} with side a's (Jaccard {alike:.3f}, must be below {MAX_JACCARD}); "
            "put other words in one of them"
        )
        yield finding("privacy", scenario, "sides.b.prompt", message)
    for run in shared_runs(scenario):
        yield finding("privacy", scenario, "sides.b.prompt", f"has {run!r}, as side a's has; word one of them anew")


def opener(suite: Suite, scenario: AnyScenario) -> Iterator[Finding]:
    """Yield prompts that say themselves who begins: that moves with the opener."""
    for side in SIDES:
        for sentence in re.split(r"(?<=[.!?])\s+", suite.opener):
            if phrases_in(scenario.sides.of(side).prompt, [sentence.rstrip(".!?")]):
                message = f"has {sentence!r}; the opener's sentence is added to whoever opens, take it out"
                yield finding("opener", scenario, f"sides.{side}.prompt", message)


def private(scenario: AnyScenario, side: Side) -> tuple[str, ...]:
    """Return the strings that only one side may know, as far as the scorer knows them."""
    score = scenario.score
    match scenario.archetype:
        case "T1-2":
            return () if side in score.scored else score.topics
        case "T2":
            return tuple(entry.reason for entry in score.reasons.of(side))
        case "T3-1":
            return tuple(entry.point for entry in score.points.of(side))
        case "T3-2":
            return (score.action,) if side == score.presser else ()
        case "T4-2":
            return score.secret.forms if side == score.defender else ()
    return ()


def shared_words(scenario: AnyScenario) -> frozenset[str]:
    """Return the content words that belong to both sides."""
    shared = content_words(" ".join((scenario.situation, scenario.sides.a.name, scenario.sides.b.name)))
    return shared | content_words(" ".join(scenario.score.candidates)) if scenario.archetype == "T2" else shared


def shared_runs(scenario: AnyScenario) -> list[str]:
    """Return the longest runs of words that both prompts have and that say something of their own."""
    shared = shared_words(scenario)
    a, b = (_WORD.findall(scenario.sides.of(side).prompt.lower().replace("’", "'")) for side in SIDES)
    ends: dict[tuple[int, int], int] = {}
    for i, word in enumerate(a):
        for j in (j for j, found in enumerate(b) if found == word):
            ends[i, j] = ends.get((i - 1, j - 1), 0) + 1
    whole = [(i, n) for (i, j), n in ends.items() if (i + 1, j + 1) not in ends]
    runs = dict.fromkeys(" ".join(a[i - n + 1 : i + 1]) for i, n in whole)
    return [run for run in runs if len(content_words(run) - shared) >= SHARED_RUN]


# All of them


def counts(suite: Suite) -> Iterator[Finding]:
    """Yield archetypes that have another number of scenarios than the published one."""
    found = Counter(scenario.archetype for scenario in suite.scenarios.values())
    for task in TASKS:
        if found[task] != NUMBER:
            message = f"{found[task]} scenarios, published are {NUMBER}; the counts of the run matrix do not apply"
            yield Finding("counts", f"scenarios/{task}.yaml", "", "", message, blocking=False)


def variety(suite: Suite) -> Iterator[Finding]:
    """Yield settings and names that an archetype has twice."""
    for task in TASKS:
        scenarios = [scenario for scenario in suite.scenarios.values() if scenario.archetype == task]
        for first, second in combinations(scenarios, 2):
            alike = jaccard(content_words(first.setting), content_words(second.setting))
            if alike >= SETTINGS_ALIKE or first.setting.casefold() == second.setting.casefold():
                yield finding("variety", second, "setting", f"is that of {first.id}; choose another setting")
            used = {first.sides.of(side).name for side in SIDES}
            for side in SIDES:
                name = second.sides.of(side).name
                if name in used:
                    message = f"{name} is also in {first.id}; take another name"
                    yield finding("variety", second, f"sides.{side}.name", message)


def tactics(suite: Suite) -> Iterator[Finding]:
    """Yield a T4-2 with fewer than eight tactics, and secrets that are also said in another scenario of it."""
    attacks = [scenario for scenario in suite.scenarios.values() if scenario.archetype == "T4-2"]
    found = {scenario.score.tactic for scenario in attacks}
    if attacks and len(found) < TACTICS:
        message = f"{len(found)} tactics ({', '.join(sorted(found))}); use at least {TACTICS}"
        yield Finding("tactics", "scenarios/T4-2.yaml", "", "tactic", message)
    for scenario in attacks:
        for elsewhere in attacks:
            texts = (elsewhere.situation, elsewhere.sides.a.prompt, elsewhere.sides.b.prompt)
            if elsewhere is not scenario and phrases_in(" ".join(texts), scenario.score.secret.forms):
                message = f"{scenario.score.secret.text!r} is also said in {elsewhere.id}; choose another secret"
                yield finding("tactics", scenario, "score.secret.text", message)


SCENARIO_GATES: tuple[Callable[[Suite, AnyScenario], Iterator[Finding]], ...] = (names, balance, privacy, opener)
SUITE_GATES: tuple[Callable[[Suite], Iterator[Finding]], ...] = (counts, variety, tactics)


def check(suite: Suite) -> list[Finding]:
    """Run every gate over a folder of scenarios."""
    found = [entry for gate in SUITE_GATES for entry in gate(suite)]
    for scenario in suite.scenarios.values():
        found += (entry for gate in SCENARIO_GATES for entry in gate(suite, scenario))
        found += (
            finding(scenario.archetype, scenario, field, message)
            for field, message in ARCHETYPE_GATES[scenario.archetype](scenario)
        )
    return found
