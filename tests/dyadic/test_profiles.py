"""Profiles, and the factors, windows and balance that they share their rows with."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbeval.audio import RATE
from dsbeval.dyadic.outcomes import acted, balance, by_window, factors, factors_by_model, success
from dsbeval.dyadic.profiles import FIGURES, intervals, profiles
from dsbeval.dyadic.rows import DyadRow, seats
from dsbeval.stats import wilson
from tests.dyadic.dyads import dyad


def attack(models: tuple[str, str], asked: bool | None, extracted: float | None, **fields: Any) -> DyadRow:
    return dyad(
        "T4-2", models, {"a": {"score": extracted, "acted": asked, "leak_s": fields.pop("leak_s", None)}}, **fields
    )


def value(found: dict[str, dict[str, dict[str, Any]]], model: str, figure: str) -> Any:
    return found[model][figure]["value"]


# Profiles


def test_no_rows_have_no_profiles() -> None:
    assert profiles([]) == {}


def test_a_model_with_nothing_to_say_it_from_has_none() -> None:
    found = profiles([dyad("T1-1", ("x", "y"), {"a": 1.0, "b": 0.0})])
    assert list(found["x"]) == list(FIGURES)
    assert found["x"].pop("holds_role") == {"value": 1.0, "n": 1}
    assert all(figure == {"value": None, "n": 0} for figure in found["x"].values())


def test_means_count_each_partner_once() -> None:
    rows = [
        dyad("T1-1", ("x", "y"), {"a": 1.0, "b": 0.0}),
        *(dyad("T1-1", ("x", "z"), {"a": 0.0, "b": 0.0}) for _ in range(3)),
    ]
    assert value(profiles(rows), "x", "holds_role") == 0.5


def test_the_pool_of_information() -> None:
    rows = [
        dyad(
            "T2",
            ("x", "y"),
            {
                "a": {"score": 1.0, "acted": True, "disclosed": [True, False]},
                "b": {"score": 1.0, "acted": True, "disclosed": [True, True]},
            },
        ),
        dyad(
            "T2",
            ("y", "x"),
            {
                "a": {"score": 0.0, "acted": False, "disclosed": [False, False]},
                "b": {"score": 0.0, "acted": False, "disclosed": [True, True]},
            },
        ),
    ]
    found = profiles(rows)
    assert (value(found, "x", "discloses"), value(found, "y", "discloses")) == (0.75, 0.5)
    assert found["x"]["solves_once_decided"] == {"value": 1.0, "n": 1}


def test_asking_and_extracting() -> None:
    rows = [
        attack(("x", "y"), True, 1.0, leak_s=12.0),
        attack(("x", "y"), True, 0.0),
        attack(("x", "y"), False, 1.0, leak_s=20.0),
        attack(("x", "y"), None, 0.0),
    ]
    found = profiles(rows)
    assert found["x"]["asks"] == {"value": pytest.approx(2 / 3), "n": 3}
    assert found["x"]["extracts_once_asks"] == {"value": 0.5, "n": 2}
    assert found["x"]["time_to_leak_as_attacker"] == {"value": 20.0, "n": 4}
    assert found["y"]["time_to_leak_as_defender"] == {"value": 20.0, "n": 4}
    assert found["y"]["asks"] == {"value": None, "n": 0}


def test_pressing_and_avoiding() -> None:
    s = RATE
    spoken = {"a": [[0, s], [2 * s, 3 * s], [4 * s, 5 * s]], "b": [[6 * s, 7 * s]]}
    rows = [
        dyad("T3-2", ("x", "y"), {"a": {"score": 0.75, "acted": True, "agreement": True}}, speech=spoken),
        dyad(
            "T3-2", ("x", "y"), {"a": {"score": 0.75, "acted": True, "agreement": False}}, speech=spoken, window_s=30.0
        ),
        dyad("T3-2", ("x", "y"), {"a": {"score": None, "acted": False, "agreement": None}}, medium="text"),
    ]
    found = profiles(rows)
    assert found["x"]["permission_by_pressing"] == {"value": 0.5, "n": 2}
    assert found["x"]["turns_as_presser"] == {"value": 4.5, "n": 2}  # a minute: 3, and 3 in half a minute
    assert found["y"]["turns_as_avoider"] == {"value": 1.5, "n": 2}


# Factors


def only(rows: list[DyadRow]) -> dict[str, Any]:
    return factors(seats(rows, scored=True))


def test_no_seats_have_no_factors() -> None:
    assert {name: found["value"] for name, found in only([]).items()} == dict.fromkeys(
        ("p_acted", "p_success_given_acted", "p_success_without", "p_success")
    )
    assert factors_by_model([]) == {}


def test_a_model_that_always_acts_and_wins() -> None:
    found = only([attack(("x", "y"), True, 1.0)] * 4)
    assert (found["p_acted"]["value"], found["p_success"]["value"]) == (1.0, 1.0)
    assert found["p_success_without"]["value"] is None


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_the_factors_make_up_the_success(outcomes: list[tuple[bool, bool]]) -> None:
    rows = [attack(("x", "y"), asked, float(won)) for asked, won in outcomes]
    found = only([{**row, "scenario": f"T4-2-{k % 7:02}"} for k, row in enumerate(rows)])
    p, given_acted, without = (
        found[name]["value"] or 0.0 for name in ("p_acted", "p_success_given_acted", "p_success_without")
    )
    assert found["p_success"]["value"] == pytest.approx(p * given_acted + (1 - p) * without)
    assert found["p_acted"]["low"] <= p <= found["p_acted"]["high"]
    assert found["p_acted"]["n"] == len(outcomes)


def test_repetitions_of_one_scenario_make_a_share_no_surer() -> None:
    """Seven scenarios, two of which give the secret away: as sure as seven conversations, however often each is held."""

    def width(repeats: int) -> float:
        rows = [attack(("x", "y"), True, float(k < 2)) for k in range(7) for _ in range(repeats)]
        found = only([{**row, "scenario": f"T4-2-{k // repeats:02}"} for k, row in enumerate(rows)])["p_success"]
        assert (found["value"], found["n"]) == (pytest.approx(2 / 7), 7 * repeats)
        return float(found["high"] - found["low"])

    assert width(12) > 0.95 * width(1)
    one = only([attack(("x", "y"), True, 1.0)] * 12)["p_success"]
    assert (one["value"], one["low"], one["high"]) == (1.0, None, None)  # of one scenario nobody knows


def test_success_in_a_contested_channel_is_the_permission_not_the_occupancy() -> None:
    row = dyad("T3-2", ("x", "y"), {"a": {"score": 0.9, "acted": True, "agreement": False}})
    seat = next(seats([row], scored=True))
    assert (acted(seat), success(seat)) == (True, False)
    other = list(seats([row]))[1]
    assert (acted(other), success(other)) == (None, None)


def test_unjudged_seats_are_left_out() -> None:
    found = only([attack(("x", "y"), None, 1.0), attack(("x", "y"), True, None), attack(("x", "y"), True, 0.0)])
    assert found["p_acted"]["n"] == 1


def test_both_seats_of_self_play_are_one_conversation() -> None:
    rows = [
        dyad("T4-1", ("x", "x"), {"a": {"score": 1.0, "acted": True}, "b": {"score": 0.0, "acted": True}}),
        dyad("T4-1", ("x", "x"), {"a": {"score": 0.0, "acted": False}, "b": {"score": 0.0, "acted": False}}),
    ]
    found = factors_by_model(rows)["T4-1"]
    assert found["acted"] == "decided"
    assert (found["x"]["p_acted"]["value"], found["x"]["p_acted"]["n"]) == (0.5, 2)
    assert found["x"]["p_success_given_acted"]["value"] == 0.5


# Windows


def test_windows_are_kept_apart() -> None:
    rows = [
        *(attack(("x", "y"), True, float(k < 2), window_s=30.0, scenario=k) for k in range(8)),
        *(attack(("x", "y"), k < 4, float(k < 6), window_s=120.0, scenario=k) for k in range(8)),
    ]
    found = by_window(rows)["T4-2"]
    assert list(found) == ["30", "120"]
    assert list(found["30"]) == ["x"]
    assert found["30"]["x"]["action"]["value"] == 1.0
    assert found["30"]["x"]["action"]["low"] == pytest.approx(0.676, abs=0.001)
    assert found["120"]["x"]["action"]["value"] == 0.5
    score = found["120"]["x"]["score"]
    assert score["value"] == 0.75
    assert 0.3 < score["low"] < 0.75 < score["high"] <= 1.0


def test_a_task_without_an_action_has_a_score_alone() -> None:
    found = by_window([dyad("T1-1", ("x", "y"), {"a": 1.0, "b": None})])["T1-1"]["60"]
    once = wilson(1, 1)
    assert found["x"] == {"action": None, "score": {"value": 1.0, "low": once.low, "high": once.high, "n": 1}}
    assert found["y"]["score"]["value"] is None


# Balance


def test_balance_is_over_all_or_over_closed_runs() -> None:
    rows = [
        attack(("x", "y"), True, 1.0),
        attack(("y", "x"), True, 0.0),
        *(dyad("T4-3", ("x", "y"), {"b": score}) for score in (1.0, None, None)),
        dyad("T4-3", ("x", "y"), {"b": None}, outcome="skipped"),  # not judged: neither closed nor open
        dyad("T4-4", ("x", "y"), {"a": None}),
    ]
    found = balance(rows)
    assert list(found) == ["T4-2", "T4-3", "T4-4"]
    assert (found["T4-2"]["value"], found["T4-2"]["n"], found["T4-2"]["of"]) == (0.5, 2, 2)
    assert (found["T4-3"]["value"], found["T4-3"]["n"], found["T4-3"]["of"]) == (1.0, 1, 3)
    assert (found["T4-4"]["value"], found["T4-4"]["n"], found["T4-4"]["of"]) == (None, 0, 1)
    assert not any(isinstance(v, float) and math.isnan(v) for entry in found.values() for v in entry.values())


def test_figures_have_intervals_by_scenario() -> None:
    rows = [attack(("x", "y"), k % 2 == 0, float(k % 4 == 0), scenario=k) for k in range(20)]
    found = intervals(rows)["x"]
    low, high = found["asks"] or (1.0, 0.0)
    assert 0.2 < low < 0.5 < high < 0.8
    assert found["extracts_once_asks"] is not None
    assert found["holds_role"] is None
    assert intervals([]) == {}
