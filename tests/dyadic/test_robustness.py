"""The turn-taking pattern under other thresholds, from rows alone."""

from __future__ import annotations

import pytest

from dsbeval.audio import RATE
from dsbeval.dyadic.robustness import SWEEPS, measured, sweep, tau
from dsbeval.dyadic.rows import DyadRow
from dsbeval.dyadic.turn_taking import Thresholds
from tests.dyadic.dyads import dyad


def talk(models: tuple[str, str], a: list[tuple[float, float]], b: list[tuple[float, float]]) -> DyadRow:
    speech = {
        side: [[round(start * RATE), round(end * RATE)] for start, end in spans] for side, spans in (("a", a), ("b", b))
    }
    return dyad("T2", models, {"a": 0.0, "b": 0.0}, speech=speech)


SHORT = [(float(k), k + 0.3) for k in range(2, 50, 3)]
LONGER = [(float(k), k + 0.9) for k in range(2, 50, 6)]


def test_no_rows_have_nothing_to_sweep() -> None:
    found = sweep([])
    assert {name: list(values) for name, values in found.items()} == {
        name: [f"{value:g}" for value in values] for name, values in SWEEPS.items()
    }
    assert all(m == {"by_model": {}, "tau": None} for v in found.values() for s in v.values() for m in s.values())


def test_a_row_is_measured_as_it_was_and_anew() -> None:
    row = talk(("x", "y"), LONGER, [(0.0, 60.0)])
    assert row["turn_taking"] is not None
    assert measured(row)["a"].as_row() == row["turn_taking"]["a"]
    assert measured(row)["a"].backchannels == 8
    assert measured(row, Thresholds(backchannel_s=0.5))["a"].backchannels == 0


def test_a_pattern_that_hangs_on_the_length_is_seen_to() -> None:
    """One model backchannels often and briefly, the other seldom but longer: no length from 1 s up turns them over."""
    rows = [talk(("x", "z"), SHORT, [(0.0, 60.0)]), talk(("y", "z"), LONGER, [(0.0, 60.0)])]
    found = sweep(rows)
    at_default = found["backchannel_s"]["1"]["backchannels"]
    assert at_default == {"by_model": {"x": 16.0, "y": 8.0, "z": 0.0}, "tau": 1.0}
    assert found["backchannel_s"]["0.5"]["backchannels"]["by_model"] == {"x": 16.0, "y": 0.0, "z": 0.0}
    assert found["backchannel_s"]["0.5"]["backchannels"]["tau"] == pytest.approx(0.8165, abs=1e-4)
    assert found["backchannel_s"]["0.5"]["barge_in"]["by_model"] == {"x": None, "y": 0.0, "z": None}
    assert found["hold_s"]["0.5"]["backchannels"] == at_default


def test_text_has_no_channel_to_sweep() -> None:
    row = talk(("x", "y"), SHORT, [(0.0, 60.0)])
    row["medium"] = "text"
    assert sweep([row])["hold_s"]["0.5"]["backchannels"]["by_model"] == {}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({"x": 1.0, "y": 2.0, "z": 3.0}, {"x": 5.0, "y": 6.0, "z": 7.0}, 1.0),
        ({"x": 1.0, "y": 2.0, "z": 3.0}, {"x": 3.0, "y": 2.0, "z": 1.0}, -1.0),
        ({"x": 1.0, "y": 2.0, "z": None}, {"x": 1.0, "y": 3.0, "z": 2.0}, 1.0),
        ({"x": 1.0, "y": 1.0}, {"x": 1.0, "y": 3.0}, None),
        ({"x": 1.0}, {"x": 1.0}, None),
        ({}, {}, None),
    ],
)
def test_tau_of_two_orders(
    one: dict[str, float | None], other: dict[str, float | None], expected: float | None
) -> None:
    assert tau(one, other) == (None if expected is None else pytest.approx(expected))
