"""Rates, effects and their evidence: by hand, from the published tables, and on runs with known truth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dsbeval.ifeval import published
from dsbeval.ifeval.metrics import effects, gap, gap_family, ias, rate, summarise
from dsbeval.paired import holm, mcnemar
from dsbeval.stats import wilson
from reports.tables import percent, render

Row = dict[str, Any]


def row(number: int, level: str, passed: bool, **fields: Any) -> Row:
    return {
        "id": f"IFD-R1-C1-i{number}-{level}", "item": "floor", "outcome": "passed" if passed else "failed", "passed": passed,
        "level": level, "role": "R1", "probe": "C1", "action": "TAKE_TURN", "exercised": True, "matched": False,
        "borderline": False, "instance": number, **fields,
    }  # fmt: skip


def test_a_rate_has_its_interval_by_conversation() -> None:
    rows = [row(k, level, k % 3 > 0) for k in range(30) for level in ("L1", "L2")]
    cell = rate(rows)
    assert (cell["rate"], cell["passed"], cell["n"], cell["clusters"]) == (pytest.approx(2 / 3), 40, 60, 30)
    once = rate([r for r in rows if r["level"] == "L1"])
    assert once["ci95"] == wilson(20, 30).interval
    assert cell["ci95"][1] - cell["ci95"][0] > 0.9 * (
        once["ci95"][1] - once["ci95"][0]
    )  # the second level adds nothing
    assert rate([]) == {"rate": None, "passed": 0, "n": 0, "clusters": 0, "ci95": None}


def test_an_effect_has_its_pairs_and_mcnemars_p() -> None:
    """Forty conversations: 14 pass at L1 alone, 3 at L2 alone, the rest at both."""
    rows = [row(k, "L1", k >= 3) for k in range(40)] + [row(k, "L2", not 3 <= k < 17) for k in range(40)]
    found = gap(rows, "entailment_gap")
    assert (found["gap"], found["pairs"], found["gained"], found["lost"]) == (pytest.approx(11 / 40), 40, 14, 3)
    assert found["p"] == pytest.approx(mcnemar(14, 3))
    assert found["ci95"][0] < 11 / 40 < found["ci95"][1]
    assert gap(rows, "redundancy_gain")["pairs"] == 0
    assert gap(rows, "redundancy_gain")["p"] is None


def test_trials_of_a_conversation_are_one_unit() -> None:
    """Six conversations, ten trials of each: sixty pairs are no more evidence than six."""
    rows = [
        row(k, level, level == "L1") | {"id": f"IFD-R1-C1-i{k}-{level}" + (f"~t{t}" if t > 1 else "")}
        for k in range(6) for level in ("L1", "L2") for t in range(1, 11)
    ]  # fmt: skip
    found = gap(rows, "entailment_gap")
    assert (found["pairs"], found["gained"]) == (60, 60)
    assert found["p"] == pytest.approx(mcnemar(6, 0)) == pytest.approx(2 / 64)


def test_a_family_is_adjusted_together() -> None:
    rows = [
        row(k, level, level == "L1" or k >= lost, role=role) | {"id": f"IFD-{role}-C1-i{k}-{level}"}
        for role, lost in (("R1", 8), ("R2", 5), ("R3", 0)) for k in range(12) for level in ("L1", "L2")
    ]  # fmt: skip
    found = gap_family(rows, "role", ["R1", "R2", "R3", "R4"])
    assert list(found) == ["R1", "R2", "R3"]
    assert [cell["p_holm"] for cell in found.values()] == holm([cell["p"] for cell in found.values()])
    assert found["R1"]["p_holm"] == pytest.approx(3 * mcnemar(8, 0))


# The published tables


def as_rows(table: dict[str, float]) -> Iterator[Row]:
    """Yield rows with the published pass counts of a model: a rate of n cases is a whole number of passes over n."""
    for level in ("L1", "L2", "L3"):
        n = published.REACTIVE_CASES[level]
        passes = round(table[level] / 100 * n)
        assert 100 * passes / n == pytest.approx(table[level], abs=0.051)
        yield from (row(k, level, k < passes) for k in range(n))


@pytest.mark.parametrize("model", published.MODELS)
def test_the_published_effects_follow_from_the_published_tables(model: str) -> None:
    """To 0.1 point: the paper subtracts rates that it has rounded to one decimal."""
    found = effects(ias(list(as_rows(published.IAS[model]))))
    assert {name: 100 * found[name] for name in published.EFFECTS[model]} == pytest.approx(
        published.EFFECTS[model], abs=0.1
    )
    assert found["n"]["entailment_gap"] == [155, 155]


def test_the_published_tables_by_action_give_the_headline() -> None:
    """Reactive cells alone, as the headline: 661 cases."""
    cases = {"LISTEN": 273, "TAKE_TURN": 168, "YIELD": 126, "READBACK": 94}
    for model in ("Fun-Audio-Chat", "Moshi", "GPT-Realtime"):
        by_action = sum(published.BY_ACTION[model][action] / 100 * n for action, n in cases.items())
        headline = sum(published.IAS[model][level] / 100 * n for level, n in published.REACTIVE_CASES.items())
        assert by_action == pytest.approx(headline, abs=0.3)


# On runs with known truth


def simulated(rng: np.random.Generator, rates: dict[str, float], conversations: int = 60) -> list[Row]:
    """Return rows whose conversations differ in how hard they are: half the variance lies between them."""
    hard = rng.normal(0, 0.2, conversations)
    return [
        row(k, level, bool(rng.random() < np.clip(rate + hard[k], 0, 1)))
        for level, rate in rates.items()
        for k in range(conversations)
    ]


def test_rates_and_effects_cover_the_truth() -> None:
    rng, hits = np.random.default_rng(4), {"overall": 0, "L1": 0, "gap": 0}
    for _ in range(100):
        rows = simulated(rng, {"L1": 0.6, "L2": 0.4})
        limits = {
            "overall": (rate(rows)["ci95"], 0.5),
            "L1": (rate(rows[:60])["ci95"], 0.6),
            "gap": (gap(rows, "entailment_gap")["ci95"], 0.2),
        }
        for name, ((low, high), truth) in limits.items():
            hits[name] += low <= truth <= high
    assert all(count >= 88 for count in hits.values()), hits


# The tables


def test_a_rate_of_few_cases_is_shown_as_counts_and_one_of_many_with_its_interval() -> None:
    assert percent(rate([row(k, "L1", k < 4) for k in range(9)])) == "4/9"
    assert percent(rate([row(k, "L1", k < 5) for k in range(10)])) == "50.0 (5/10) [23.7, 76.3]"
    assert percent(rate([])) == "-"


def test_the_tables_show_effects_with_interval_pairs_and_p() -> None:
    rows = [row(k, "L1", k >= 3) for k in range(40)] + [row(k, "L2", not 3 <= k < 17) for k in range(40)]
    text = "\n".join(render(summarise(rows, [r["id"] for r in rows], {"agent": "x"})))
    assert "Entailment Gap (L1 - L2)" in text
    line = next(line.split() for line in text.splitlines() if line.strip().startswith("reactive "))
    assert line[:2] == ["reactive", "+27.5"]
    assert line[-4:] == ["40,", "40", "40", "0.013"]
    few = [r for r in rows if r["instance"] < 6]
    text = "\n".join(render(summarise(few, [r["id"] for r in few], {"agent": "x"})))
    line = next(line.split() for line in text.splitlines() if line.strip().startswith("reactive "))
    assert line == ["reactive", "+0/6", "-", "6,", "6", "6", "1.000"]  # three gained, three lost
