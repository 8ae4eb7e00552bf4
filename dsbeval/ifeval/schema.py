"""What the files of a pack hold: the validated form of every entry.

A field that is missing, unknown or out of range is refused where it stands (:mod:`dsbeval.yamlfile` names the place).
"""

from __future__ import annotations

import hashlib
import re
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from dsbeval.yamlfile import Entry


class Action(StrEnum):
    """What the floor behaviour of a cell should be."""

    LISTEN = "LISTEN"
    NO_BACKCHANNEL = "NO_BACKCHANNEL"
    TAKE_TURN = "TAKE_TURN"
    BACKCHANNEL = "BACKCHANNEL"
    INTERRUPT = "INTERRUPT"
    READBACK = "READBACK"
    YIELD = "YIELD"
    CONTINUE = "CONTINUE"
    ACCEPT_OVERLAP = "ACCEPT_OVERLAP"


REACTIVE = frozenset({Action.LISTEN, Action.TAKE_TURN, Action.YIELD, Action.READBACK})
"""Actions of the 31 cells behind the published headline; the other 17 cells need speech over the user."""

Text = Annotated[str, Field(min_length=1)]
Seconds = Annotated[float, Field(gt=0, le=120)]


# Roles


class Role(Entry):
    """A role: who the agent is told to be, the explicit floor rules, and what the judge checks."""

    id: Annotated[str, Field(pattern=r"^R[1-9]\d*$")]
    name: Text
    persona: Text
    directive: Text
    content_rule: Text

    @field_validator("persona", "directive", "content_rule")
    @classmethod
    def _strip(cls, value: str) -> str:
        return value.strip()


class RolesFile(Entry):
    """The file ``roles.yaml``."""

    roles: list[Role]


# Probes


class Slot(Entry):
    """One segment of a probe's second turn: a named speech part with its target duration, or a silence."""

    part: Literal["lead", "resume", "chunk", "check", "trigger", "continuation", "whole", "barge"] | None = None
    seconds: Seconds | None = None
    silence: Seconds | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Slot:
        if (self.silence is None) == (self.part is None) or (self.part is None) != (self.seconds is None):
            raise ValueError("is either {part, seconds} or {silence}")
        return self


_EDGE = re.compile(r"^s(?P<segment>\d+)\.(?P<edge>on|off)(?:\s*\+\s*(?P<plus>\d+(?:\.\d+)?))?$")


class Edge(Entry):
    """A boundary by construction: an edge of the k-th segment of turn 2, plus seconds."""

    segment: int
    edge: Literal["on", "off"]
    plus: float = 0.0


class WindowRule(Entry):
    """The scored window of a probe in the notation ``s2.on`` / ``s5.off + 10.0``."""

    start: Edge
    end: Edge

    @field_validator("start", "end", mode="before")
    @classmethod
    def _parse(cls, value: object) -> object:
        match = _EDGE.match(value) if isinstance(value, str) else None
        if match is None:
            raise ValueError(f"{value!r} is not a boundary such as 's2.on', 's2.off' or 's5.off + 10.0'")
        return {"segment": int(match["segment"]), "edge": match["edge"], "plus": float(match["plus"] or 0.0)}


class TurnRule(Entry):
    """Structure of turn 2 and the window that is scored in it."""

    turn2: Annotated[list[Slot], Field(min_length=1)]
    window: WindowRule

    @model_validator(mode="after")
    def _structure(self) -> TurnRule:
        for index, slot in enumerate(self.turn2):
            following = self.turn2[index + 1] if index + 1 < len(self.turn2) else None
            if slot.silence is not None and (following is None or following.silence is not None):
                raise ValueError(
                    f"turn2[{index + 1}] is a silence of {slot.silence} s with no speech after it; "
                    "end the turn with speech"
                )
        if self.turn2[0].silence is not None:
            raise ValueError("turn2[1] is a silence; a turn begins with speech")
        for edge in (self.window.start, self.window.end):
            if not 1 <= edge.segment <= len(self.turn2):
                raise ValueError(f"window names s{edge.segment}; turn2 has s1 to s{len(self.turn2)}")
        return self


class Probe(TurnRule):
    """A probe: how turn 2 is built, delivered and scored."""

    id: Text
    name: Text
    barge_in_after_s: Seconds | None = None
    readback: list[int] | Literal["target"] | None = None
    l4b: TurnRule | None = None

    def at(self, level: str) -> TurnRule:
        """Return the structure that holds at a level (R2_B has its own at L4b)."""
        return self.l4b if level == "L4b" and self.l4b is not None else self


class ProbesFile(Entry):
    """The file ``probes.yaml``."""

    turn1_seconds: Seconds
    probes: list[Probe]


# Cells


class ScoredAs(Entry):
    """An action scored in place of the base action."""

    action: Action
    max_latency_ms: float


class CellsFile(Entry):
    """The file ``cells.yaml``."""

    cells: dict[str, dict[str, Action]]
    thresholds: dict[Action, dict[str, dict[str, float]]] = Field(default_factory=dict)
    l4b_scored_as: dict[str, ScoredAs] = Field(default_factory=dict)


class Contradiction(Entry):
    """What a conflicting system prompt demands in a cell, in five surface variants."""

    role: str
    probe: str
    target: Text
    resolved_action: Action
    variants: Annotated[list[Text], Field(min_length=5, max_length=5)]
    l4b: Text | None = None


class ContradictionsFile(Entry):
    """The file ``contradictions.yaml``."""

    contradictions: list[Contradiction]


# Conversations


class Segment(Entry):
    """One segment of what the user says: speech (its text and part) or an exact silence."""

    speech: Text | None = None
    part: str | None = None
    silence: Seconds | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Segment:
        if (self.speech is None) == (self.silence is None):
            raise ValueError("is either {speech, part} or {silence}")
        if (self.speech is None) != (self.part is None):
            raise ValueError("speech needs its part, and silence has none")
        return self


class Register(Entry):
    """The one register attribute of a speaker."""

    age: Literal["18-24", "25-34", "35-44", "45-54", "55-64", "65-74", "75+"] | None = None
    region: Literal["Northeast", "Midwest", "South", "West"] | None = None

    @model_validator(mode="after")
    def _one(self) -> Register:
        if (self.age is None) == (self.region is None):
            raise ValueError("has either age or region")
        return self


REGISTERS: tuple[dict[str, str], ...] = (
    *({"age": age} for age in ("18-24", "25-34", "35-44", "45-54", "55-64", "65-74", "75+")),
    *({"region": region} for region in ("Northeast", "Midwest", "South", "West")),
)


def register_for(audio_key: str) -> Register:
    """Return the register attribute that the hash of a conversation's audio key chooses."""
    return Register.model_validate(REGISTERS[int(hashlib.sha256(audio_key.encode()).hexdigest(), 16) % len(REGISTERS)])


class Script(Entry):
    """What one user says: turn 1 for context, turn 2 with the probe."""

    probe: str
    instance: Annotated[int, Field(ge=1)]
    level: Literal["L4b"] | None = None
    situation: Text
    register_: Annotated[Register, Field(alias="register")]
    fact: Text
    turn1: Text
    turn2: Annotated[list[Segment], Field(min_length=1)]
    target: Text | None = None

    @field_validator("turn1")
    @classmethod
    def _fold(cls, value: str) -> str:
        return " ".join(value.split())


class ConversationsFile(Entry):
    """The file ``conversations/*.yaml``."""

    role: str | None = None
    roles: list[str] | None = None
    conversations: list[Script]

    @model_validator(mode="after")
    def _owner(self) -> ConversationsFile:
        if (self.role is None) == (self.roles is None):
            raise ValueError("a conversation file has either role or roles (matched audio)")
        return self
