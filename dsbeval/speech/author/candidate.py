"""A task, and what is checked of a candidate before a critic sees it: the schema, the word budget, the pack's gates."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dsbeval.ifeval.conversation_gates import check_recording
from dsbeval.ifeval.gates import duplicates
from dsbeval.ifeval.leakage import phrases_in
from dsbeval.ifeval.pack import Pack, Recording
from dsbeval.ifeval.schema import Register, Script, Slot, TurnRule, register_for
from dsbeval.replies import ReplyError, whole
from dsbeval.speech.author import prompts
from dsbeval.speech.author.notes import Notes
from dsbeval.speech.author.packfile import audio_key

ENGLISH_GATES = frozenset({"user_words", "turn1", "phone_numbers", "tts_text"})
"""Gates that know English words or letters only; a pack in another language goes without them here."""

_OURS = ("probe", "instance", "level", "register", "register_")
_TURN1_MIN = 26  # of about 32 words, as published: 12 s


@dataclass(frozen=True, slots=True)
class Task:
    """One script to be written: where it belongs, and what the writer is told."""

    role: str
    probe: str
    instance: int
    level: str | None
    pack: Pack
    """The pack whose rules hold. Its recordings need not contain this one."""
    taken: Mapping[str, Recording]
    """What the cell has already, by audio key; the new script must differ from all of it."""
    notes: Notes
    setting: str
    brief: prompts.Brief
    situation: str | None = None
    base: Script | None = None
    """At a level with a turn of its own: the conversation itself, whose turn 1 and situation it shares."""

    @property
    def key(self) -> str:
        """The audio key of the script."""
        return audio_key(self.role, self.probe, self.instance, self.level)

    @property
    def rule(self) -> TurnRule:
        """How turn 2 is built."""
        return self.pack.probes[self.probe].at(self.level or "")

    @property
    def has_target(self) -> bool:
        """Whether the script names the words that are to be read back."""
        return self.pack.probes[self.probe].readback == "target"

    def budget(self, seconds: float) -> tuple[int, int]:
        """Return the fewest and most words that a segment of a target duration may have."""
        least, most = self.notes.words_per_second
        return max(1, math.floor(seconds * least)), math.ceil(seconds * most)

    @property
    def turn1_budget(self) -> tuple[int, int]:
        """The fewest and most words of turn 1."""
        least, most = self.budget(self.pack.turn1_seconds)
        return (_TURN1_MIN if self.notes.english else least), most


def recording_of(task: Task, script: Script) -> Recording:
    """Return a script as the recording it would be in the pack."""
    return Recording(task.key, script, (task.role,), Path(f"{task.role}.yaml"))


def read_script(task: Task, reply: Mapping[str, Any]) -> Script:
    """Return the script that a reply holds. Raises :class:`ReplyError` with the first thing that is wrong."""
    for name in _OURS:
        if name in reply:
            raise ReplyError(f"{name}: is set by the data set; leave the field out")
    fields = {name: _tidied(value) for name, value in reply.items() if value is not None}
    register = register_for(task.key).model_dump(exclude_none=True)
    if task.base is not None:
        fields |= {"situation": task.base.situation, "turn1": task.base.turn1}
    identity = {"probe": task.probe, "instance": task.instance, "level": task.level, "register": register}
    try:
        script = Script.model_validate({**fields, **identity})
    except ValidationError as error:
        first = error.errors()[0]
        place = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
        known = {"missing": "is missing", "extra_forbidden": "is not a known field; leave it out"}
        problem = known.get(first["type"], str(first["msg"]).removeprefix("Value error, "))
        raise ReplyError(f"{place}: {problem}") from None
    if task.has_target != (script.target is not None):
        raise ReplyError(f"target: {'is missing' if task.has_target else 'is not used by this probe; leave it out'}")
    return script


def faults(task: Task, script: Script) -> list[str]:
    """Return what the local gates have against a script, each in one line; empty when it may go to the critic."""
    recording = recording_of(task, script)
    found = [f for f in check_recording(task.pack, recording) if f.blocking]
    cell = dataclasses.replace(task.pack, recordings={**task.taken, task.key: recording})
    found += [f for f in duplicates(cell) if f.blocking and _concerns(f.entry, f.message, task.key)]
    if not task.notes.english:
        found = [f for f in found if f.gate not in ENGLISH_GATES]
    lines = [f"{f.field}: {f.message}" for f in found]
    lines += _unwritable(script)
    if any(f.gate == "structure" for f in found):
        return lines  # a word budget belongs to a segment that is there
    return lines + _forbidden(task, script) + _budgets(task, script)


def _concerns(entry: str, message: str, key: str) -> bool:
    # What the cell had against itself before is not the new script's fault.
    return entry == key or re.search(rf"(?<![\w-]){re.escape(key)}(?![\w-])", message) is not None


# What YAML can hold, by its specification.
_UNWRITABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _unwritable(script: Script) -> list[str]:
    texts = {"situation": script.situation, "fact": script.fact, "turn1": script.turn1, "target": script.target or ""}
    texts["turn2"] = " ".join(s.speech or "" for s in script.turn2)
    return [
        f"{field}: has the character {found[0]!a}, which no text file holds; leave it out"
        for field, text in texts.items()
        if (found := _UNWRITABLE.search(text))
    ]


def _forbidden(task: Task, script: Script) -> list[str]:
    said = {"turn1": script.turn1, "turn2": " | ".join(s.speech or "" for s in script.turn2)}
    return [
        f"{field}: says {phrase!r}, which this pack does not allow the user; reword it"
        for field, text in said.items()
        for phrase in (phrases_in(text, task.notes.forbidden) if task.notes.forbidden else ())
    ]


def _budgets(task: Task, script: Script) -> list[str]:
    rows = [("turn1", script.turn1, task.turn1_budget)]
    for number, (segment, slot) in enumerate(zip(script.turn2, task.rule.turn2, strict=True), start=1):
        if segment.speech is not None and slot.seconds is not None:
            rows.append((f"turn2[{number}]", segment.speech, task.budget(slot.seconds)))
    return [
        f"{field}: has {words} words; write {least} to {most}"
        for field, text, (least, most) in rows
        if not least <= (words := len(text.split())) <= most
    ]


def _tidied(value: Any) -> Any:
    """Return a value with single spaces and straight apostrophes in its texts, and without fields that are null."""
    if isinstance(value, str):
        return " ".join(whole(value).replace("\u2019", "'").split())
    if isinstance(value, list):
        return [_tidied(item) for item in value]
    if isinstance(value, dict):
        return {name: _tidied(item) for name, item in value.items() if item is not None}
    return value


# The prompts of a task


def writer_prompts(task: Task, reasons: list[str]) -> tuple[str, str]:
    """Return the system and the user prompt for the writer; ``reasons`` are those of earlier tries."""
    language = task.notes.language
    ask = prompts.WRITER_TASK.format(
        setting=task.setting,
        register=_register(register_for(task.key), language),
        situation=_situation(task),
        realise=task.brief.realise,
        turn1_words="{} to {}".format(*task.turn1_budget),
        structure="\n".join(f"{k}. {_segment(task, slot)}" for k, slot in enumerate(task.rule.turn2, start=1)),
        target="The field target holds the words of the final order.\n" if task.has_target else "",
        taken="\n".join(f"- {r.script.situation} ({r.script.turn1})" for r in task.taken.values()) or "- none yet",
        example=json.dumps(_example(task), ensure_ascii=False, indent=1),
    )
    if reasons:
        ask += prompts.WRITER_AGAIN.format(reasons="\n".join(f"- {reason}" for reason in reasons))
    return prompts.WRITER.format(language=language), ask


def critic_prompts(task: Task, script: Script) -> tuple[str, str]:
    """Return the system and the user prompt for the critic."""
    shown = script.model_dump(by_alias=True, exclude_none=True, exclude={"probe", "instance", "level"})
    ask = prompts.CRITIC_TASK.format(
        setting=task.setting,
        realise=task.brief.realise,
        reject=task.brief.reject,
        script=json.dumps(shown, ensure_ascii=False, indent=1),
    )
    return prompts.CRITIC.format(language=task.notes.language), ask


def reply_schema(task: Task) -> dict[str, Any]:
    """Return the JSON schema of the writer's reply, for services that can be held to one."""
    text = {"type": "string"}
    speech = {"speech": text, "part": {"type": "string", "enum": sorted({s.part for s in task.rule.turn2 if s.part})}}
    silence = {"silence": {"type": "number"}}
    segments = [_object(speech), _object(silence)]
    fields: dict[str, Any] = {"situation": text, "fact": text, "turn1": text}
    fields["turn2"] = {"type": "array", "items": {"anyOf": segments}}
    return _object({**fields, "target": text} if task.has_target else fields)


VERDICT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"accept": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["accept", "reason"],
    "additionalProperties": False,
}
"""The JSON schema of the critic's reply."""


def _object(fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def _situation(task: Task) -> str:
    if task.base is not None:
        return f"The situation: {task.base.situation}\nTurn 1 is given, copy it: {task.base.turn1}"
    return f"The situation: {task.situation}" if task.situation else "The situation is yours to find."


def _segment(task: Task, slot: Slot) -> str:
    if slot.silence is not None:
        return f"a silence of {slot.silence} seconds"
    least, most = task.budget(slot.seconds or 0.0)
    return f"speech, part {slot.part}, {least} to {most} words"


def _example(task: Task) -> dict[str, Any]:
    turn2 = [
        {"silence": slot.silence} if slot.silence is not None else {"speech": "...", "part": slot.part}
        for slot in task.rule.turn2
    ]
    fields: dict[str, Any] = {"situation": "...", "fact": "...", "turn1": "...", "turn2": turn2}
    return {**fields, "target": "..."} if task.has_target else fields


def _register(register: Register, language: str) -> str:
    if register.age is not None:
        return f"aged {register.age}"
    where = "the United States" if language.casefold() == "english" else f"a country where {language} is spoken"
    return f"from the {register.region} of {where}"
