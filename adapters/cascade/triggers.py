"""What the agent comes in on, found in recognised words: fixed phrases, and arithmetic that does not come out.

Conventions
-----------
* The text is what a recogniser returns: lower case, no punctuation, numbers as words.
* A trigger is found at the word where its phrase ends. The phrases are general English; nothing is known of a menu, a
  map or a drug list, so an item that is ambiguous only on somebody's menu is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from adapters.cascade.floor import Trigger
from adapters.cascade.quantities import number

NUMBER_WORD = (
    "(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|"
    "seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred)"
)

_RED_FLAGS = (
    r"chest(?: \w+){0,4} (?:tight\w*|pain\w*|pressure|heavy|hurt\w*|squeez\w+|crush\w+|ach\w+)",
    r"(?:tight\w*|pain\w*|pressure|heav\w+|squeez\w+|ach\w+)(?: \w+){0,4} chest",
    r"(?:arm|leg|hand|side|face|foot|fingers|lips|jaw)(?: \w+){0,4} (?:numb\w*|tingl\w+|weak\w*|droop\w*|limp|"
    r"paraly\w+|sagg\w+)",
    r"(?:numb\w*|tingl\w+|weakness|droop\w*)(?: \w+){0,4} (?:arm|leg|hand|side|face|foot|fingers|lips|jaw)",
    r"slurr\w+|(?:speech|words)(?: \w+){0,3} (?:slurred|garbled|jumbled)",
    r"(?:can't|cannot|couldn't|could not|hard to|trouble|struggling to) (?:breathe|breathing|catch my breath|"
    r"swallow)|short(?:ness)? of breath",
    r"pass(?:ed|ing) out|faint(?:ed|ing)|black(?:ed|ing) out|collaps\w+|unconscious|not breathing|seizure\w*",
    r"(?:cough\w*|vomit\w*|throw\w+|bring\w+) (?:up )?(?:some |of )?blood|blood in my",
    r"worst headache|vision (?:went|is|was|has|got)(?: \w+){0,2} (?:blur\w*|double|dark|black)|see(?:ing)? double",
    r"(?:throat|tongue)(?: \w+){0,3} (?:clos\w+|swell\w+|swollen)|suicid\w+|kill(?:ing)? (?:my|him|her)self|"
    r"end (?:it all|my life)|overdos\w+",
)
_DOSES = (
    r"(?:took|taken|take|had|swallowed|gave (?:him|her|them)|given)(?: \w+){0,2} (?:another|a second|two more|"
    r"a double|an extra|it again|them again|twice)",
    r"(?:doubl\w+|twice|double) (?:the|my|his|her|up|as much|that)(?: \w+){0,2}(?: (?:dose|tablets?|pills?|amount|"
    r"milligrams))?",
    r"(?:second|another|extra|double) (?:dose|one|pill|tablet|round)(?: \w+){0,3} (?:hour|hours|later|after|already|"
    r"today|again)",
    r"(?:(?:an|one|half an) hour|minutes) (?:later|after)(?: \w+){0,6} (?:another|again|second|more|extra)",
)
_CORRECTIONS = (
    r"(?:no|oh) wait|wait no|hang on|scratch that|strike that|correction|or rather|i (?:mean|meant)(?! you)",
    rf"make that|change that|sorry (?:no|not|it's|that's|i (?:mean|meant)|make|{NUMBER_WORD})|(?:no|not) (?:sorry|it's|that's)",
    r"let me (?:correct|start over|rephrase)|actually (?:no|it's|make|that's|it is)|that's wrong",
)
_AMBIGUITIES = (
    r"(?:or|and) maybe (?:it's|it was|the)|or (?:was|is) it|(?:i'm |am )?not (?:quite |really |totally )?sure (?:if|"
    r"which|whether)|one of (?:those|the two|them)|which(?:ever)? one|"
    r"(?:either|or) (?:one|something|whatever)|the (?:usual|regular|normal|other|big|small) one|"
    r"something like (?:that|the)|i think it's (?:either|maybe)|you know the one|that \w+ (?:one|thing)",
)
_NUMBER = rf"{NUMBER_WORD}(?: (?:and )?{NUMBER_WORD})*"
_SUM = re.compile(
    rf"\b(?P<a>{_NUMBER}) (?P<op>plus|minus|times|divided by) (?P<b>{_NUMBER}) (?:is|equals|makes|gives|"
    rf"comes to) (?P<c>{_NUMBER})(?= \w+|$)"
)
_PHRASES: dict[Trigger, re.Pattern[str]] = {
    trigger: re.compile(r"\b(?:" + "|".join(patterns) + r")(?!\w)")
    for trigger, patterns in (
        (Trigger.RED_FLAG, _RED_FLAGS),
        (Trigger.DOSE, _DOSES),
        (Trigger.CORRECTION, _CORRECTIONS),
        (Trigger.AMBIGUITY, _AMBIGUITIES),
    )
}


@dataclass(frozen=True, slots=True)
class Found:
    """A trigger and the number of words up to and including its last one."""

    trigger: Trigger
    words: int


def find_triggers(text: str, wanted: frozenset[Trigger]) -> Iterator[Found]:
    """Yield the triggers of ``wanted`` in ``text``, kind by kind in a fixed order."""
    for trigger in Trigger:
        if trigger not in wanted:
            continue
        matches = _wrong_sums(text) if trigger is Trigger.REASONING else _PHRASES[trigger].finditer(text)
        for match in matches:
            yield Found(trigger, len(text[: match.end()].split()))


def _wrong_sums(text: str) -> Iterator[re.Match[str]]:
    for match in _SUM.finditer(text):
        a, b, c = (number(match[name]) for name in "abc")
        right = {"plus": a + b, "minus": a - b, "times": a * b, "divided by": a / b if b else c}[match["op"]]
        if right != c:
            yield match
