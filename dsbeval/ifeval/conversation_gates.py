"""The gates on one conversation: what the user says, and how it is cut into segments.

A new conversation can be checked before it is in a pack (:func:`check_recording`).

Conventions
-----------
* A finding is one line that names file, entry and field, says what is wrong and how to mend it. A finding that is not
  blocking says what could not be checked.
* Word counts are white-space tokens. Words are matched whole and in any case.

Source: DSB-IFEval (arXiv 2609.03423), hard gates; the word lists are ours.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dsbeval.ifeval.leakage import phrases_in
from dsbeval.ifeval.pack import Pack, Recording
from dsbeval.ifeval.scene import normalise
from dsbeval.ifeval.schema import Action, Register, register_for
from dsbeval.ifeval.similarity import spoken

OPEN_ENDED = frozenset({"R3_B_caller_trails_off"})
"""Probes whose last segment must break off in mid-sentence."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a gate found: where, what, and how to mend it."""

    gate: str
    file: str
    entry: str
    field: str
    message: str
    blocking: bool = True

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.entry, self.field, self.message) if part)


def finding_at(gate: str, recording: Recording, field: str, message: str) -> Finding:
    """Return a blocking finding in a field of a conversation."""
    return Finding(gate, f"conversations/{recording.source.name}", recording.audio_key, field, message)


def user_texts(recording: Recording) -> Iterator[tuple[str, str]]:
    """Yield (field, text) of all that the user says."""
    yield "turn1", recording.script.turn1
    for number, segment in enumerate(recording.script.turn2, start=1):
        if segment.speech is not None:
            yield f"turn2[{number}]", segment.speech


def structure(pack: Pack, recording: Recording) -> Iterator[Finding]:
    """Yield where a silence has no speech on both sides of it, or turn 2 is not built as its probe says."""
    script = recording.script
    rule = pack.probes[script.probe].at(script.level or "").turn2
    for number, segment in enumerate(script.turn2, start=1):
        around = script.turn2[max(0, number - 2) : number + 1]
        if segment.silence is not None and sum(s.speech is not None for s in around) != 2:
            yield finding_at(
                "structure", recording, f"turn2[{number}]", "is a silence without speech on both sides; add it"
            )
    if [(s.part, s.silence) for s in script.turn2] != [(s.part, s.silence) for s in rule]:
        wanted = ", ".join(s.part or f"silence {s.silence} s" for s in rule)
        yield finding_at("structure", recording, "turn2", f"is not built as {script.probe} is; make it: {wanted}")


_USER_WORDS = (
    "nurse", "nurses", "counselor", "counselors", "therapist", "therapists", "dispatcher", "dispatchers", "operator",
    "operators", "instructor", "instructors", "teacher", "teachers", "tutor", "tutors", "cashier", "cashiers",
    "order taker", "order takers", "interpreter", "interpreters", "translator", "translators", "improv",
    "scene partner", "assistant", "assistants", "interrupt", "interrupts", "interrupted", "interrupting", "wait",
    "waits", "waited", "waiting", "pause", "pauses", "paused", "pausing", "hold on", "holding on", "hang on", "yield",
    "yields", "yielded", "yielding", "respond", "responds", "responded", "responding", "reply", "replies", "replied",
    "replying", "speak", "speaks", "speaking", "spoke", "spoken", "talk", "talks", "talked", "talking", "silent",
    "silently", "silence", "quiet", "quietly", "listen", "listens", "listened", "listening", "your turn", "my turn",
    "let me finish", "jump in", "cut in", "say it back", "repeat", "repeats", "repeated", "repeating", "read back",
    "go ahead", "stop", "stops", "stopped", "stopping",
)  # fmt: skip
_AI = re.compile(r"\bA\.?I\b")


def user_words(pack: Pack, recording: Recording) -> Iterator[Finding]:
    """Yield where the user names the agent's role or job, or how turns are taken."""
    phrases = (*_USER_WORDS, *(role.name for role in pack.roles.values()))
    for field, text in user_texts(recording):
        for phrase in phrases_in(text, phrases) + _AI.findall(text):
            message = f"says {phrase!r}; the user names neither the agent's job nor turn-taking, reword it"
            yield finding_at("user_words", recording, field, message)


MAX_CHECK_WORDS, MAX_TRIGGER_WORDS = 6, 14


def isolation(_pack: Pack, recording: Recording) -> Iterator[Finding]:
    """Yield where a trigger or check phrase is not a segment of its own."""
    script = recording.script
    for number, segment in enumerate(script.turn2, start=1):
        field = f"turn2[{number}]"
        if segment.part not in ("check", "trigger") or segment.speech is None:
            if segment.speech and "?" in segment.speech and any(s.part == "check" for s in script.turn2):
                yield finding_at(
                    "isolation", recording, field, "asks a question beside the check phrase; move it there"
                )
            continue
        limit = MAX_CHECK_WORDS if segment.part == "check" else MAX_TRIGGER_WORDS
        words = len(segment.speech.split())
        if words > limit:
            message = f"the {segment.part} has {words} words, more than {limit}; keep the phrase alone in its segment"
            yield finding_at("isolation", recording, field, message)
        if re.search(r"[.?!]\s", segment.speech):
            message = f"the {segment.part} holds more than one sentence; keep the phrase alone in its segment"
            yield finding_at("isolation", recording, field, message)
        if segment.part == "check" and not segment.speech.endswith("?"):
            yield finding_at("isolation", recording, field, "the check is not a question; end it with a question mark")
        others = " | ".join(text for place, text in user_texts(recording) if place != field)
        if phrases_in(others, [segment.speech.rstrip(",.?!")]):
            message = f"the {segment.part} is said elsewhere too; say it once, in its own segment"
            yield finding_at("isolation", recording, field, message)


_ANAPHORS = frozenset(
    ("and", "but", "or", "then", "because", "he", "she", "they", "him", "them", "his", "their", "hers", "theirs")
)
MIN_TURN1_WORDS = 10


def turn1(_pack: Pack, recording: Recording) -> Iterator[Finding]:
    """Yield where turn 1 does not stand alone."""
    text = recording.script.turn1
    words = text.split()
    if len(words) < MIN_TURN1_WORDS:
        message = f"has {len(words)} words; say who, where and why in {MIN_TURN1_WORDS} words or more"
        yield finding_at("turn1", recording, "turn1", message)
    if not text.rstrip().endswith((".", "?", "!")):
        yield finding_at(
            "turn1", recording, "turn1", "does not end a sentence; end it with a full stop or a question mark"
        )
    if words and words[0].strip(",.").lower() in _ANAPHORS:
        message = f"begins with {words[0]!r}, which refers to nothing yet; begin with the person or thing itself"
        yield finding_at("turn1", recording, "turn1", message)


def register(_pack: Pack, recording: Recording) -> Iterator[Finding]:
    """Yield where the register attribute is not the one that the hash of the audio key chooses."""
    wanted = register_for(recording.audio_key)
    if recording.script.register_ != wanted:
        message = f"is {_register(recording.script.register_)}; the key's hash chooses {_register(wanted)}, write that"
        yield finding_at("register", recording, "register", message)


def _register(value: Register) -> str:
    return f"{{age: {value.age}}}" if value.age else f"{{region: {value.region}}}"


_FILLERS = frozenset(("um", "uh", "er", "hmm"))


def readback(pack: Pack, recording: Recording) -> Iterator[Finding]:
    """Yield where a word that must be read back is not said, or could not be read back by anyone."""
    script = recording.script
    probe = pack.probes[script.probe]
    if probe.readback is None:
        return
    said, field = spoken(recording), "target" if probe.readback == "target" else "turn2"
    target = script.target or "" if probe.readback == "target" else said
    missing = Counter(normalise(target)) - Counter(normalise(said))
    if not normalise(target):
        yield finding_at("readback", recording, field, "has no words; give the words that must be read back")
    for token, count in missing.items():
        message = f"has {token!r} {count} time(s) more than turn 2 says it; use only words that are spoken"
        yield finding_at("readback", recording, field, message)
    if any(pack.cells.get((role, script.probe)) is Action.READBACK for role in recording.roles):
        for filler in sorted(_FILLERS & set(normalise(target))):
            yield finding_at("readback", recording, field, f"has {filler!r}, which nobody reads back; leave it out")


_DIGIT = re.compile(r"^\d$")
_FICTIONAL = re.compile(r"55501\d\d$")


def phone_numbers(_pack: Pack, recording: Recording) -> Iterator[Finding]:
    """Yield telephone numbers that could be somebody's: seven spoken digits in a row, or 555 with others after it."""
    for field, text in user_texts(recording):
        marks = "".join(token if _DIGIT.match(token) else " " for token in normalise(text))
        for run in marks.split():
            if (len(run) >= 7 or run.startswith("555")) and not _FICTIONAL.search(run):
                message = f"says the number {run}; say a fictional one, five five five, zero one and two more digits"
                yield finding_at("phone_numbers", recording, field, message)


_SPEAKABLE = re.compile(r"[^A-Za-z ,.?!'-]")
_ABBREVIATION = re.compile(r"\b(?:Dr|Mr|Mrs|Ms|St|Rd|Ave|vs|etc|approx|mg|ml|lbs?|oz|[A-Z]{2,})\b")
_SPACING = re.compile(r"  |^ | $| [,.?!]|[,.?!][,.?!A-Za-z]")


def tts_text(_pack: Pack, recording: Recording) -> Iterator[Finding]:
    """Yield characters that a synthesiser reads in its own way, and stops where the voice goes on."""
    for field, text in user_texts(recording):
        for character in dict.fromkeys(_SPEAKABLE.findall(text)):
            message = f"has {character!a}; use ASCII letters and , . ? ! ' - only, and write numbers in words"
            yield finding_at("tts_text", recording, field, message)
        for short in dict.fromkeys(_ABBREVIATION.findall(text)):
            yield finding_at(
                "tts_text", recording, field, f"has {short!r}; write it in full, letters that are spelled apart"
            )
        if _SPACING.search(text):
            yield finding_at("tts_text", recording, field, "has a space or a stop too many or too few; set one of each")
    turn2 = recording.script.turn2
    for number, segment in enumerate(turn2, start=1):
        if segment.speech is None or segment.part == "check":
            continue
        closed = segment.speech.endswith((".", "?", "!"))
        if closed != (number == len(turn2) and recording.script.probe not in OPEN_ENDED):
            message = "ends the turn without a stop; end the sentence"
            if closed:
                message = "ends with a stop although the voice goes on or breaks off; end it with a comma or nothing"
            yield finding_at("tts_text", recording, f"turn2[{number}]", message)


RECORDING_GATES: tuple[Callable[[Pack, Recording], Iterator[Finding]], ...] = (
    structure,
    user_words,
    isolation,
    turn1,
    register,
    readback,
    phone_numbers,
    tts_text,
)


def check_recording(pack: Pack, recording: Recording) -> list[Finding]:
    """Run the gates for one conversation. It need not be in the pack, whose roles and probes it is checked against."""
    return [finding for gate in RECORDING_GATES for finding in gate(pack, recording)]
