"""Reading a system prompt into floor parameters: rules that are stated, then a small table of words for what is not.

Conventions
-----------
* A stated rule is a sentence that commands something of the floor (:mod:`adapters.cascade.rules_opening`,
  :mod:`adapters.cascade.rules_turns`, :mod:`adapters.cascade.rules_sounds`). Rules are applied in the order in which
  they stand: a later one wins over an earlier one, so a contradiction after a rule is followed.
* Sentences that state no rule are the persona. The words of :data:`adapters.cascade.role_words.ROLE_WORDS` in them set
  the parameters that the rules start from. Nothing else about a persona is understood, and no job is looked up by name.
* A sentence that cannot be read changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from adapters.cascade.floor import Floor
from adapters.cascade.role_words import from_persona
from adapters.cascade.rules_opening import opening
from adapters.cascade.rules_sounds import back, checks, manner, sounds
from adapters.cascade.rules_turns import interruptions, overlap, questions, silence, turn_length
from adapters.cascade.sentence import Sentence, sentences

_RULES: tuple[tuple[Callable[[Sentence, Floor], Floor | None], bool], ...] = (
    # the rule, and whether a sentence that states it states nothing that comes after it here
    (opening, True),
    (manner, False),
    (turn_length, True),
    (questions, True),
    (checks, True),
    (overlap, True),
    (sounds, True),
    (back, False),
    (interruptions, False),
    (silence, False),
)


def read_prompt(prompt: str) -> Floor:
    """Return the floor parameters that ``prompt`` sets; those of a plain assistant where it is empty.

    >>> read_prompt("Leave at least six seconds of silence before you answer.").gap_s
    9.0
    """
    stated: list[Sentence] = []
    persona: list[str] = []
    for sentence in sentences(prompt):
        if _apply(sentence, Floor()) is None:
            persona.append(sentence.text)
        else:
            stated.append(sentence)
    floor = from_persona(" ".join(persona))
    for sentence in stated:
        floor = _apply(sentence, floor) or floor
    return floor


def _apply(sentence: Sentence, floor: Floor) -> Floor | None:
    """Return the floor after every rule that the sentence states, or None when it states none."""
    result: Floor | None = None
    for rule, alone in _RULES:
        changed = rule(sentence, result or floor)
        if changed is not None:
            result = changed
            if alone:
                break
    return result
