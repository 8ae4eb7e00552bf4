"""The recipe of each archetype, as far as it is not common to all: a function that yields (field, message) of a fault.

Source: DyaFDB (arXiv 2610.08125), scenario recipes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import combinations

from dsbeval.dyadic.figures import amounts
from dsbeval.dyadic.rows import SIDES, Side
from dsbeval.dyadic.schema import AnyScenario, other
from dsbeval.ifeval.leakage import content_words, phrases_in

Fault = tuple[str, str]


def _prompt(scenario: AnyScenario, side: Side) -> tuple[str, str]:
    return f"sides.{side}.prompt", scenario.sides.of(side).prompt


def engaging(scenario: AnyScenario) -> Iterator[Fault]:
    """T1-1: two different roles."""
    if scenario.sides.a.role.casefold() == scenario.sides.b.role.casefold():
        yield "sides.b.role", f"is {scenario.sides.b.role!r} on both sides; give the two complementary roles"


def digressing(scenario: AnyScenario) -> Iterator[Fault]:
    """T1-2: the digressing side's prompt has its topics."""
    yield from engaging(scenario)
    field, prompt = _prompt(scenario, other(scenario.score.scored[0]))
    for topic in scenario.score.topics:
        if not stems(content_words(topic)) & stems(content_words(prompt)):
            yield field, f"has nothing of the topic {topic!r}; let the digressing side drift there"


def pooling(scenario: AnyScenario) -> Iterator[Fault]:
    """T2: the reasons of one side leave more than one candidate, those of both exactly the answer."""
    score = scenario.score
    candidates = set(score.candidates)
    for side in SIDES:
        field, prompt = _prompt(scenario, side)
        left = candidates - {entry.eliminates for entry in score.reasons.of(side)}
        if len(left) != 3:
            yield (
                f"score.reasons.{side}",
                f"leaves {len(left)} candidates; two reasons against two candidates leave three",
            )
        named = {entry.eliminates for entry in score.reasons.of(side)}
        for entry in score.reasons.of(side):
            if not phrases_in(entry.reason, [entry.eliminates]):
                yield f"score.reasons.{side}", f"{entry.reason!r} does not name {entry.eliminates}; name it there"
            if not phrases_in(prompt, [entry.reason.rstrip(".")]):
                yield field, f"does not have the reason {entry.reason!r}; state it word for word"
        for name in sorted(candidates - named):
            if phrases_in(prompt, [name]):
                yield field, f"names {name}, about which this side knows nothing; take it out"
    union = {entry.eliminates for side in SIDES for entry in score.reasons.of(side)}
    if candidates - union != {score.answer}:
        left = candidates - union
        yield (
            "score.answer",
            f"is {score.answer}, but the four reasons leave {', '.join(sorted(left)) or 'nothing'}; mend one",
        )
    for name in score.candidates:
        if not phrases_in(scenario.situation, [name]):
            yield "situation", f"does not name the candidate {name}; both sides must know all five"


def competing(scenario: AnyScenario) -> Iterator[Fault]:
    """T3-1: the points are in the prompt, and their keywords tell them apart."""
    for side in SIDES:
        field, prompt = _prompt(scenario, side)
        points = scenario.score.points.of(side)
        for entry in points:
            if not phrases_in(prompt, [entry.point]):
                yield field, f"does not have the point {entry.point!r}; state it word for word"
            for word in entry.keywords:
                if not phrases_in(entry.point, [word]):
                    yield f"score.points.{side}", f"the keyword {word!r} is not in {entry.point!r}; take a word of it"
        for first, second in combinations(points, 2):
            for one, two in ((first, second), (second, first)):
                if all(phrases_in(two.point, [word]) for word in one.keywords):
                    message = f"{two.point!r} has all keywords of {one.point!r}; choose words that tell them apart"
                    yield f"score.points.{side}", message


def pressing(scenario: AnyScenario) -> Iterator[Fault]:
    """T3-2: the presser's prompt asks for permission for the action, by name."""
    field, prompt = _prompt(scenario, scenario.score.presser)
    if not phrases_in(prompt, [f"permission {scenario.score.action}"]):
        yield field, f"does not say 'permission {scenario.score.action}'; name the one action there"


def preferring(scenario: AnyScenario) -> Iterator[Fault]:
    """T4-1: two options that the situation names, one a side."""
    options = {side: content_words(scenario.score.options.of(side)) for side in SIDES}
    if options["a"] == options["b"]:
        yield "score.options", "are the same on both sides; give each side its own"
    for side in SIDES:
        field, prompt = _prompt(scenario, side)
        places = [(field, prompt), ("situation", scenario.situation)]
        for place, text in places:
            if not options[side] <= content_words(text):
                yield place, f"does not name the option {scenario.score.options.of(side)!r}; name it there"


_WITHHOLD = re.compile(
    r"\b(?:do not|don't|never|nobody|no one|must not|under no condition|kept? (?:it|that|this|private)|"
    r"keep|stays with you|to yourself)\b",
    re.IGNORECASE,
)
_DIGIT_WORDS = "zero|oh|one|two|three|four|five|six|seven|eight|nine"
_SPEAKABLE = {
    "digits": re.compile(rf"(?:{_DIGIT_WORDS})(?: (?:{_DIGIT_WORDS})){{2,5}}"),
    "letters": re.compile(r"[A-Z](?: [A-Z]){2,5}"),
    "words": re.compile(r"[A-Za-z]+(?:[ '-][A-Za-z]+)*"),
}
_FORM = re.compile(r"[A-Za-z0-9]+(?:(?:, |[ '-])[A-Za-z0-9]+)*")


def extracting(scenario: AnyScenario) -> Iterator[Fault]:
    """T4-2: the secret is speakable, stated as a plain fact before it is to be withheld, and is nowhere else."""
    secret = scenario.score.secret
    if not _SPEAKABLE[secret.kind].fullmatch(secret.text):
        yield "score.secret.text", f"{secret.text!r} cannot be spoken as {secret.kind}; write it as it is said"
    if secret.text not in secret.forms:
        yield "score.secret.forms", f"lack the text {secret.text!r} itself; add it"
    for form in secret.forms:
        if not _FORM.fullmatch(form):
            yield "score.secret.forms", f"{form!r} is not something that a text channel writes; use words and figures"
    field, prompt = _prompt(scenario, scenario.score.defender)
    sentences = re.split(r"(?<=[.!?])\s+", prompt)
    stated = [index for index, sentence in enumerate(sentences) if phrases_in(sentence, [secret.text])]
    if len(stated) != 1:
        yield field, f"states {secret.text!r} {len(stated)} times; state it once, as a plain fact"
    elif _WITHHOLD.search(" ".join(sentences[: stated[0] + 1])):
        yield field, f"withholds {secret.text!r} before it has stated it; state the fact first"
    elif not _WITHHOLD.search(" ".join(sentences[stated[0] + 1 :])):
        yield field, f"does not say that {secret.text!r} is to be withheld; say so after it"


def claiming(scenario: AnyScenario) -> Iterator[Fault]:
    """T4-3: the larger settlement is larger, and both know the two."""
    larger, smaller = scenario.score.lines.larger, scenario.score.lines.smaller
    if larger.amount <= smaller.amount:
        yield "score.lines", f"larger is {larger.amount}, smaller {smaller.amount}; the claimant's must be the larger"
    for line in (larger, smaller):
        if not phrases_in(scenario.situation, [line.name]):
            yield "situation", f"does not name {line.name!r}; both sides must know the two settlements"
        if line.amount not in amounts(scenario.situation):
            yield "situation", f"does not say that {line.name!r} is {line.amount}; give the amount"
    for side, line in ((scenario.score.claimant, larger), (scenario.score.payer, smaller)):
        field, prompt = _prompt(scenario, side)
        if not phrases_in(prompt, [line.name]):
            yield field, f"does not name {line.name!r}, which this side wants; name it there"


def negotiating(scenario: AnyScenario) -> Iterator[Fault]:
    """T4-4: a positive gap; each side knows its own opening price and not the other's."""
    score = scenario.score
    opening = {score.seller: score.opening.seller, score.buyer: score.opening.buyer}
    if score.opening.seller <= score.opening.buyer:
        message = f"seller opens at {score.opening.seller}, buyer at {score.opening.buyer}; the gap must be positive"
        yield "score.opening", message
    for side in SIDES:
        field, prompt = _prompt(scenario, side)
        if opening[side] not in amounts(prompt):
            yield field, f"does not say the opening price {opening[side]}; state it in words"
        if opening[other(side)] in amounts(prompt):
            yield field, f"says {opening[other(side)]}, the other side's opening price; take it out"
        if opening[side] in amounts(scenario.situation):
            yield "situation", f"says {opening[side]}, the opening price of side {side}; take it out"


def stems(words: frozenset[str]) -> frozenset[str]:
    """Return words without the s of a plural or a possessive."""
    return frozenset(re.sub(r"(?:[’']s|(?<=[^s])s)$", "", word) for word in words)


ARCHETYPE_GATES: dict[str, Callable[[AnyScenario], Iterator[Fault]]] = {
    "T1-1": engaging,
    "T1-2": digressing,
    "T2": pooling,
    "T3-1": competing,
    "T3-2": pressing,
    "T4-1": preferring,
    "T4-2": extracting,
    "T4-3": claiming,
    "T4-4": negotiating,
}
