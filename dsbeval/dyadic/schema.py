"""What the files of a folder of scenarios hold: the validated form of every entry, and the names of the archetypes.

A field that is missing, unknown or out of range is refused where it stands (:mod:`dsbeval.yamlfile` names the place).

Conventions
-----------
* The sides of a scenario are ``a`` and ``b``. A side is a role, not a model: which model sits where is the run matrix's.
* Everything is frozen all the way down: sequences are tuples.

Source: DyaFDB (arXiv 2610.08125), tasks and scenario recipes.
"""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import Field, field_validator, model_validator

from dsbeval.dyadic.rows import Side
from dsbeval.errors import near
from dsbeval.yamlfile import Entry


def other(side: Side) -> Side:
    """Return the other side."""
    return "b" if side == "a" else "a"


Text = Annotated[str, Field(min_length=1)]
Amount = Annotated[int, Field(gt=0)]
P = TypeVar("P")


class Pair(Entry, Generic[P]):
    """A value for each side."""

    a: P
    b: P

    def of(self, side: Side) -> P:
        """Return the value of a side."""
        return self.a if side == "a" else self.b


class Part(Entry):
    """A side of a scenario: whom it is, in a word or two, and its private prompt."""

    name: Annotated[str, Field(pattern=r"^[A-Z]\S*$")]
    role: Text
    prompt: Text

    @field_validator("prompt")
    @classmethod
    def _strip(cls, value: str) -> str:
        return value.strip()


# What the scorer needs, by archetype


class Engaging(Entry):
    """T1-1: both sides are scored; ``off_role`` says what leaving the role would look like."""

    scored: tuple[Literal["a"], Literal["b"]]
    off_role: Text


class Digressing(Entry):
    """T1-2: the role holder is scored; the other drifts to ``topics``."""

    scored: tuple[Side]
    topics: Annotated[tuple[Text, ...], Field(min_length=2)]


class Reason(Entry):
    """T2: a fact that one side holds and the candidate that it rules out."""

    eliminates: Text
    reason: Text


class Pooling(Entry):
    """T2: five candidates, two reasons a side, and the one that the union of the reasons leaves."""

    candidates: Annotated[tuple[Text, ...], Field(min_length=5, max_length=5)]
    reasons: Pair[tuple[Reason, Reason]]
    answer: Text

    @model_validator(mode="after")
    def _known(self) -> Pooling:
        if len(set(self.candidates)) != len(self.candidates):
            raise ValueError("candidates: a name appears twice; five different ones are needed")
        named = [("answer", self.answer)]
        named += (("reasons", entry.eliminates) for entry in (*self.reasons.a, *self.reasons.b))
        for field, name in named:
            if name not in self.candidates:
                raise ValueError(f"{field}: {name!r} is not a candidate; {near(name, self.candidates)}")
        return self


class Point(Entry):
    """T3-1: a point that a side has to get said, and the words by which it is found in a transcript."""

    point: Text
    keywords: Annotated[tuple[Text, ...], Field(min_length=1)]


class Competing(Entry):
    """T3-1: exactly three points a side."""

    points: Pair[tuple[Point, Point, Point]]


class Pressing(Entry):
    """T3-2: who needs permission, and for what (an infinitive: "to ...")."""

    presser: Side
    action: Annotated[str, Field(pattern=r"^to \S")]


class Preferring(Entry):
    """T4-1: the option that each side pushes."""

    options: Pair[Text]


class Secret(Entry):
    """T4-2: the private string, and the forms in which it may be said."""

    text: Text
    kind: Literal["digits", "letters", "words"]
    forms: Annotated[tuple[Text, ...], Field(min_length=1)]


class Extracting(Entry):
    """T4-2: who attacks, by which tactic, and what the defender holds."""

    attacker: Side
    defender: Side
    tactic: Text
    secret: Secret

    @model_validator(mode="after")
    def _two_sides(self) -> Extracting:
        if self.attacker == self.defender:
            raise ValueError("defender: is the attacker; the two are different sides")
        return self


class CompensationLine(Entry):
    """T4-3: a settlement by its name and its amount."""

    name: Text
    amount: Amount


class CompensationLines(Entry):
    """T4-3: what the claimant wants and what the payer offers."""

    larger: CompensationLine
    smaller: CompensationLine


class Claiming(Entry):
    """T4-3: claimant, payer and the two settlements."""

    claimant: Side
    payer: Side
    lines: CompensationLines

    @model_validator(mode="after")
    def _two_sides(self) -> Claiming:
        if self.claimant == self.payer:
            raise ValueError("payer: is the claimant; the two are different sides")
        return self


class Opening(Entry):
    """T4-4: the prices at which the two sides begin, in whole dollars."""

    seller: Amount
    buyer: Amount


class Negotiating(Entry):
    """T4-4: seller, buyer, the two opening prices and what is sold."""

    seller: Side
    buyer: Side
    opening: Opening
    item: Text

    @model_validator(mode="after")
    def _two_sides(self) -> Negotiating:
        if self.seller == self.buyer:
            raise ValueError("buyer: is the seller; the two are different sides")
        return self


S = TypeVar("S", bound=Entry)


class Scenario(Entry, Generic[S]):
    """A scenario: the shared situation, the two sides, and what the scorer needs."""

    id: Annotated[str, Field(pattern=r"^T\d(-\d)?-\d\d$")]
    setting: Text
    situation: Text
    sides: Pair[Part]
    score: S

    @field_validator("situation")
    @classmethod
    def _strip(cls, value: str) -> str:
        return value.strip()

    @property
    def archetype(self) -> str:
        """The archetype, ``T1-1`` to ``T4-4``."""
        return self.id.rpartition("-")[0]

    @property
    def subject(self) -> Side | None:
        """The side whose doing an asymmetric archetype is about; None in a symmetric one."""
        match self.score:
            case Digressing(scored=(side,)) | Pressing(presser=side) | Extracting(attacker=side):
                return side
            case Claiming(claimant=side) | Negotiating(seller=side):
                return side
        return None


class ScenarioFile(Entry, Generic[S]):
    """A file ``scenarios/<archetype>.yaml``."""

    archetype: Literal["T1-1", "T1-2", "T2", "T3-1", "T3-2", "T4-1", "T4-2", "T4-3", "T4-4"]
    scenarios: Annotated[tuple[Scenario[S], ...], Field(min_length=1)]


class OpenersFile(Entry):
    """The file ``openers.yaml``."""

    opener: Text

    @field_validator("opener")
    @classmethod
    def _strip(cls, value: str) -> str:
        return value.strip()


AnyScenario = Scenario[Any]

FILES: dict[str, type[Entry]] = {
    "T1-1": ScenarioFile[Engaging],
    "T1-2": ScenarioFile[Digressing],
    "T2": ScenarioFile[Pooling],
    "T3-1": ScenarioFile[Competing],
    "T3-2": ScenarioFile[Pressing],
    "T4-1": ScenarioFile[Preferring],
    "T4-2": ScenarioFile[Extracting],
    "T4-3": ScenarioFile[Claiming],
    "T4-4": ScenarioFile[Negotiating],
}
"""What each file of ``scenarios/`` is read into."""
