"""What judging costs: an estimate before, the sum after.

Conventions
-----------
* Prices are US dollars a million tokens, (input, output). The table is small and dated (:data:`PRICES_OF`); prices change, so
  ``--price IN,OUT`` takes precedence, and without either no cost is stated.
* A price of the table holds at the service's own address only: the same model elsewhere costs what it costs there.
* Estimates count a token as four characters of the prompt, and the answers as long as ours usually are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dsbeval.errors import OptionError
from dsbeval.judge.contract import Kind, Question, Tokens
from dsbeval.judge.prompts import render
from dsbeval.judge.schema import on_wire

PRICES_OF = "2026-03"
PRICES: dict[str, tuple[float, float]] = {
    "openai:gpt-4o": (2.5, 10.0),
    "openai:gpt-4o-mini": (0.15, 0.6),
    "openai:gpt-4.1": (2.0, 8.0),
    "openai:gpt-4.1-mini": (0.4, 1.6),
    "openai:gpt-5": (1.25, 10.0),
    "openai:gpt-5-mini": (0.25, 2.0),
    "anthropic:claude-sonnet-4-5": (3.0, 15.0),
    "anthropic:claude-haiku-4-5": (1.0, 5.0),
}

CHARACTERS_A_TOKEN = 4
ANSWER_TOKENS = {Kind.PAS: 350}
SHORT_ANSWER_TOKENS = 60

_DATED = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars a million tokens."""

    input: float
    output: float

    def cost(self, tokens: Tokens) -> float:
        """Return what these tokens cost, in US dollars."""
        return (tokens.input * self.input + tokens.output * self.output) / 1e6


def parse_price(text: str) -> Price:
    """Read ``IN,OUT``. Raises :class:`OptionError`."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*,\s*(\d+(?:\.\d+)?)\s*", text)
    if match is None:
        raise OptionError(f"--price: {text!r} is not IN,OUT; give US dollars a million tokens, such as 2.5,10")
    return Price(float(match[1]), float(match[2]))


def known_price(provider: str, model: str) -> Price | None:
    """Return the price of a model at its own service; a dated release costs what its model costs."""
    found = PRICES.get(f"{provider}:{model}") or PRICES.get(f"{provider}:{_DATED.sub('', model)}")
    return Price(*found) if found else None


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is expected of calls that have not been made."""

    calls: int
    tokens: Tokens
    cost_usd: float | None

    def __str__(self) -> str:
        if not self.calls:
            return "0 calls"
        cost = "" if self.cost_usd is None else f", about {dollars(self.cost_usd)}"
        calls = "1 call" if self.calls == 1 else f"{self.calls} calls"
        return f"{calls}, about {short(self.tokens.input)} tokens in and {short(self.tokens.output)} out{cost}"


def estimate(questions: Iterable[Question], price: Price | None) -> Estimate:
    """Return what asking these questions once will take."""
    calls, total = 0, Tokens()
    for question in questions:
        prompt = render(question)
        characters = len(prompt.system) + len(prompt.user) + len(json.dumps(on_wire(question.schema)))
        total += Tokens(characters // CHARACTERS_A_TOKEN, ANSWER_TOKENS.get(question.kind, SHORT_ANSWER_TOKENS))
        calls += 1
    return Estimate(calls, total, None if price is None else price.cost(total))


def totals(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the asked rows of ``judgements.jsonl`` took: judgements, attempts, tokens and cost.

    The cost is None as soon as one of them has none, since a sum of some is not the sum.
    """
    asked = [row for row in rows if not row.get("reused")]
    costs = [row.get("cost_usd") for row in asked]
    known = [cost for cost in costs if cost is not None]
    return {
        "asked": len(asked),
        "attempts": sum(int(row["attempts"]) for row in asked),
        "tokens": {side: sum(int(row["tokens"][side]) for row in asked) for side in ("input", "output")},
        "cost_usd": round(sum(known), 6) if len(known) == len(costs) else None,
    }


def in_words(found: Mapping[str, Any]) -> str:
    """Return :func:`totals` as one line."""
    tokens, cost = found["tokens"], found["cost_usd"]
    price = "cost unknown (give --price IN,OUT)" if cost is None else dollars(cost)
    return (
        f"{found['asked']} questions asked in {found['attempts']} attempts, {short(tokens['input'])} tokens in, "
        f"{short(tokens['output'])} out, {price}"
    )


def dollars(amount: float) -> str:
    """Return an amount in a form that does not round a small one away."""
    return f"${amount:.2f}" if amount >= 0.1 or amount == 0 else f"${amount:.2g}"


def short(count: int) -> str:
    """Return a count in thousands or millions where it is long."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return str(count)
