"""What judging costs, before and after."""

from __future__ import annotations

import pytest

from dsbeval.errors import OptionError
from dsbeval.judge.contract import Tokens
from dsbeval.judge.cost import PRICES, Price, dollars, estimate, known_price, parse_price, short, totals
from dsbeval.judge.prompts import render
from tests.judge.support import question


def test_a_price_is_read() -> None:
    assert parse_price("2.5,10") == Price(2.5, 10.0)
    assert parse_price(" 0 , 0.4 ") == Price(0.0, 0.4)
    assert parse_price("2.5,10").cost(Tokens(1_000_000, 100_000)) == pytest.approx(3.5)


@pytest.mark.parametrize("text", ["", "2.5", "2.5;10", "2.5,10,3", "-1,2", "a,b", "1,"])
def test_a_wrong_price_is_one_line(text: str) -> None:
    with pytest.raises(OptionError, match="is not IN,OUT"):
        parse_price(text)


def test_a_dated_release_costs_what_its_model_costs_and_another_model_is_unknown() -> None:
    assert known_price("openai", "gpt-4o-2024-08-06") == known_price("openai", "gpt-4o") == Price(2.5, 10.0)
    assert known_price("anthropic", "claude-haiku-4-5-20251001") == Price(1.0, 5.0)
    assert known_price("openai", "gpt-4o-mini") != known_price("openai", "gpt-4o")
    assert known_price("openai", "gpt-99") is None
    assert known_price("anthropic", "gpt-4o") is None
    assert all(0 < less <= more for less, more in PRICES.values())


def test_an_estimate_counts_calls_and_follows_the_length_of_the_prompt() -> None:
    short_one, long_one = question(said="Why?"), question(said="Why? " * 2000)
    one = estimate([short_one], Price(1.0, 1.0))
    assert one.calls == 1
    assert one.tokens.input >= len(render(short_one).user) // 4
    assert estimate([long_one], None).tokens.input - one.tokens.input == pytest.approx(2500, abs=5)
    assert estimate([short_one] * 3, Price(1.0, 1.0)).cost_usd == pytest.approx(3 * (one.cost_usd or 0))
    assert estimate([long_one], None).cost_usd is None
    assert str(estimate([], None)) == "0 calls"
    assert str(estimate([short_one], Price(100, 100))).startswith("1 call, about ")


def test_totals_count_what_was_asked_and_not_what_was_shared() -> None:
    row = {"attempts": 2, "tokens": {"input": 10, "output": 4}, "cost_usd": 0.5, "reused": False}
    shared = {"attempts": 0, "tokens": {"input": 0, "output": 0}, "cost_usd": 0.0, "reused": True}
    assert totals([row, row, shared]) == {
        "asked": 2,
        "attempts": 4,
        "tokens": {"input": 20, "output": 8},
        "cost_usd": 1.0,
    }
    assert totals([row, {**row, "cost_usd": None}])["cost_usd"] is None
    assert totals([])["cost_usd"] == 0


def test_amounts_are_not_rounded_away() -> None:
    assert [dollars(amount) for amount in (0, 0.00123, 0.5, 12.345)] == ["$0.00", "$0.0012", "$0.50", "$12.35"]
    assert [short(count) for count in (999, 1200, 3_400_000)] == ["999", "1.2 k", "3.4 M"]
