"""The contract of every judge: a question goes in, a judgement comes out, or it is said why there is none.

Conventions
-----------
* A question holds what the judge may see and nothing else: no case id, no model name, no time, no verdict. What is not
  in it cannot leak.
* An answer has passed the schema of its question. A reply that has not is asked for again; after the last attempt it is
  :class:`Unjudged`, an error, never a score.
* :class:`JudgeError` is about the judge, not the question (no key, no such model): nothing else need be asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from dsbeval.errors import DsbevalError


class Kind(StrEnum):
    """What is asked."""

    PAS = "pas"
    ROLE_ADHERENCE = "role_adherence"
    ROLE_TIMING = "role_timing"
    FINAL_CHOICE = "final_choice"
    ASKED = "asked"
    AGREEMENT = "agreement"
    LANDED_OPTION = "landed_option"
    AGREED_PRICE = "agreed_price"


class JudgeError(DsbevalError):
    """The judge cannot be used: no key, no SDK, no such model, no service."""


class Stopped(DsbevalError):  # noqa: N818 - not an error of anything
    """A question was given up because the run is being stopped; it has no outcome."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question to a judge.

    Parameters
    ----------
    kind : Kind
    parts : mapping of str to str
        What the judge sees, by the names that the prompt of the kind uses.
    schema : mapping
        JSON schema of the answer (the subset of :mod:`dsbeval.judge.schema`).
    seed : int
        For services that take one.
    """

    kind: Kind
    parts: Mapping[str, str]
    schema: Mapping[str, Any]
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of all attempts together, as the service counted them."""

    input: int = 0
    output: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(self.input + other.input, self.output + other.output)


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that gave no answer: why, and the reply as far as there was one."""

    problem: str
    raw: str | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """An answer, and everything that is needed to audit it.

    ``failed`` are the attempts before the one that was accepted; ``attempts`` counts them all. ``sent`` holds the
    parameters that really went out (a service may refuse a temperature). ``cost_usd`` is None where no price is known.
    """

    kind: Kind
    answer: Mapping[str, Any]
    raw: str
    provider: str
    model: str
    prompt_hash: str
    prompt_version: str
    tokens: Tokens = Tokens()
    latency_s: float = 0.0
    attempts: int = 1
    failed: tuple[Attempt, ...] = ()
    sent: Mapping[str, Any] = field(default_factory=dict)
    cost_usd: float | None = None


class Unjudged(DsbevalError):  # noqa: N818 - the outcome's own name
    """No attempt gave an answer that can be used. ``unreachable`` says that no reply came at all."""

    def __init__(
        self,
        failed: tuple[Attempt, ...],
        *,
        tokens: Tokens = Tokens(),
        cost_usd: float | None = None,
        unreachable: bool = False,
    ) -> None:
        times = f"{len(failed)} attempt{'s' if len(failed) != 1 else ''}"
        super().__init__(f"unjudged after {times}: {failed[-1].problem if failed else 'no attempt was made'}")
        self.failed = failed
        self.tokens = tokens
        self.cost_usd = cost_usd
        self.unreachable = unreachable


@runtime_checkable
class Judge(Protocol):
    """Who answers questions. ``ask`` may be called from several threads at once."""

    @property
    def provider(self) -> str:
        """Who is behind it: offline, anthropic, openai."""

    @property
    def model(self) -> str:
        """The model's id."""

    @property
    def address(self) -> str | None:
        """Where it is asked, without credentials; None where nothing is sent anywhere."""

    @property
    def id(self) -> str:
        """Its name in files, tables and on the command line."""

    def ask(self, question: Question) -> Judgement:
        """Answer a question. Raises :class:`Unjudged`, :class:`JudgeError` or :class:`Stopped`."""

    def stop(self) -> None:
        """Make waiting attempts end at once with :class:`Stopped`. A stopped judge answers nothing more."""

    def close(self) -> None:
        """Let go of connections."""


def is_offline(judge_id: str) -> bool:
    """Return whether a judge is the offline proxy, whose scores are never mixed with those of a model."""
    return judge_id == "offline"
