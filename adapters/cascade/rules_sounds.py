"""Rules of a prompt about listening sounds, checks of attention, saying things back, and manner.

They take and return what the rules of :mod:`adapters.cascade.rules_turns` do.
"""

from __future__ import annotations

import re
from dataclasses import replace

from adapters.cascade.floor import Floor, Tone
from adapters.cascade.sentence import Sentence, any_of

# Listening sounds ----------------------------------------------------------------------------------------------------

_SOUNDS = any_of(
    r"back-?channel\w*",
    r"(?:listening|reaction|attention|acknowledg\w+) (?:sound|noise|token|signal|word)s?",
    "acknowledge?ments?",
    r"(?:small|short|brief|little|tiny|verbal|quick|soft|single|vocal) (?:\w+ )?"
    r"(?:sounds?|noises?|nods?|acknowledg\w+|reactions?|tokens?|murmurs?)",
    "m+[- ]?hm+",
    "uh[- ]?huh",
    "mm",
    r"(?:an?|no|nor|or|and|any|your|neither) (?:\w+ )?(?:hum|murmur)s?",
    r"signs? (?:of attention|that you (?:are )?(?:follow|listen|with)\w*)",
    "active[- ]listening",
    "(?:verbal|vocal) sign",
)
_AMOUNTS: tuple[tuple[re.Pattern[str], float], ...] = (
    (any_of("minimal(?:ly)?", "rare(?:ly)?", "sparing(?:ly)?", "few", "occasional(?:ly)?", "terse", "seldom"), 2.0),
    (any_of("moderate(?:ly)?", "some", "regular(?:ly)?", "now and then"), 3.0),
    (any_of("warm(?:ly)?", "soft(?:ly)?", "gentle", "gently"), 4.0),
    (any_of("brisk(?:ly)?", "frequent(?:ly)?", "often", "lively"), 6.0),
    (any_of("heav(?:y|ily)", "constant(?:ly)?", "plenty", "lots", "many"), 12.0),
)
"""Listening sounds a minute, where the prompt gives no number."""


def sounds(s: Sentence, floor: Floor) -> Floor | None:
    """As in "Give short backchannels, two to six a minute"; "no listening sounds"."""
    if s.denies(_SOUNDS):
        return replace(floor, backchannels=False, answers_checks=False)
    if not s.commands(_SOUNDS):
        return None
    rate = s.marked.first("rate")
    amount = next((value for pattern, value in _AMOUNTS if s.says(pattern)), floor.backchannels_per_minute)
    length = s.length()
    return replace(
        floor,
        backchannels=True,
        answers_checks=True,
        backchannels_per_minute=rate[1] if rate else amount,
        backchannel_s=length[1] if length is not None and length[0] == "max" else floor.backchannel_s,
        tone=_tone(s.text, floor.tone),
    )


# Checks of attention -------------------------------------------------------------------------------------------------

_CHECKS = any_of(
    r"(?:check|test|ask|wonder|look|fish)\w*(?: \w+){0,4} (?:if|whether|that|for) (?:\w+ ){0,3}"
    "(?:you|anyone|everyone|somebody|audience|sign|one|it)",
    "(?:attention|presence|understanding) checks?",
    r"check(?:s|ing phrases?)?\b(?= (?:from|such|for|by|of)\b)",
    "checking phrases?",
    "are you (?:still )?there",
    "does that make sense",
)
_ATTENTION = any_of(
    "you (?:are |were |really )?(?:still )?(?:there|follow(?:ing)?|listening|with (?:them|him|her)|understand)"
)
_SILENCED = any_of("nothing", "no", "not", "never", "silent", "silence", "ignored?", "unanswered", "hanging", "without")
_ATTENDS = any_of(
    r"(?:give|answer|offer|say|add|respond|reply|reassure|confirm|acknowledge|meet|get|let them know|token|brief)\w*"
)


def checks(s: Sentence, floor: Floor) -> Floor | None:
    """As in "When they check that you follow, give one short sign"; "leave such checks unanswered"."""
    if not s.says(_CHECKS) and not _ATTENTION.search(s.condition):
        return None
    if _SILENCED.search(s.command):
        return replace(floor, backchannels=False, answers_checks=False)
    return replace(floor, answers_checks=True) if s.commands(_ATTENDS) else None


# Saying it back ------------------------------------------------------------------------------------------------------

_BACK = any_of(
    r"read(?:s|ing)? (?:[\w,'-]+ ){0,8}?back",
    r"say(?:s|ing)? (?:[\w,'-]+ ){0,8}?(?:back|again)",
    r"(?:repeat|recite|echo)(?:s|ed|ing)?\b(?! (?:yourself|the question))",
    r"(?:re)?confirm(?:s|ed|ing)? (?:[\w,'-]+ ){0,6}?(?:aloud|by voice|out loud|verbally|back|to them|every|each|all)",
    "(?:spoken|verbal) confirmation",
    "repetition",
    r"(?:play|check) (?:\w+ ){0,4}back",
)
_NO_BACK = any_of(r"no (?:\w+ ){0,2}(?:confirmation|echo|read-?back)")


def back(s: Sentence, floor: Floor) -> Floor | None:
    """As in "Read every number back"; "never repeat what they dictate"."""
    if s.denies(_BACK) or _NO_BACK.search(s.command):
        return replace(floor, read_back=False)
    return replace(floor, read_back=True) if s.commands(_BACK) else None


# Manner --------------------------------------------------------------------------------------------------------------

_RENDERS = any_of(
    r"(?:interpret|translate|render)(?:s|ed|ing)?\b(?= (?:what|the|every|each|them|their|is)\b)", "about to interpret"
)
_ASKS = any_of(
    r"(?:only|always) (?:\w+ ){0,3}(?:as |with |through |in )?(?:a |an )?questions?",
    r"(?:guide|lead|teach|answer) (?:\w+ ){0,3}(?:with|by|through) (?:a |asking )?questions?",
)
_TONES: tuple[tuple[re.Pattern[str], Tone], ...] = (
    (any_of("in[- ]character", "playful", "funny", "silly"), Tone.PLAYFUL),
    (any_of(r"(?:warm|soft|gentle|gently|kind|tender)\w*"), Tone.GENTLE),
    (any_of(r"(?:terse|brisk|quick)\w*"), Tone.BRISK),
)


def manner(s: Sentence, floor: Floor) -> Floor | None:
    """As in "Render what they say"; "answer only with a question"."""
    if s.says(_RENDERS):
        return replace(floor, tone=Tone.RENDER)
    return replace(floor, tone=Tone.ASKING) if s.commands(_ASKS) else None


def _tone(text: str, tone: Tone) -> Tone:
    if tone is not Tone.PLAIN:
        return tone
    return next((found for pattern, found in _TONES if pattern.search(text)), tone)
