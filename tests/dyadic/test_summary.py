"""The summary block of a run of dyads: whole, of part of the pairings, of nothing, and as JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from dsbeval.audio import RATE
from dsbeval.dyadic import published
from dsbeval.dyadic.rows import MAIN_TASKS, DyadRow
from dsbeval.dyadic.summary import summarise
from tests.dyadic.dyads import dyad, from_matrix

MODELS = published.MODELS


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    rng = np.random.default_rng(11)
    return summarise(
        {**row, **talk(row, number, rng)}
        for number, task in enumerate(MAIN_TASKS)
        for row in from_matrix(task, MODELS, published.scores(task), runs=20)
    )


def talk(row: DyadRow, number: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return long turns that overlap, and short utterances over the partner whose number is the model's habit."""
    speech = {}
    for side, model, shift in (("a", row["model_a"], 0.0), ("b", row["model_b"], 4.0)):
        turns = [(8 * k + shift, 8 * k + shift + 5) for k in range(7)]
        shorts = [start + 6 + float(rng.random()) for start, _ in turns[: 1 + 2 * MODELS.index(model)]]
        spans = sorted([*turns, *((start, start + 0.4) for start in shorts)])
        speech[side] = [[round(start * RATE), round(end * RATE)] for start, end in spans]
    made = dyad(row["task"], (row["model_a"], row["model_b"]), {}, speech=speech)
    return {"speech": speech, "turn_taking": made["turn_taking"], "repeat": number}


def test_nothing_has_a_block_all_the_same() -> None:
    assert summarise([]) == {"conversations": 0, "models": []}
    assert summarise([{"id": "x", "item": "floor"}]) == {"conversations": 0, "models": []}


def test_it_is_plain_json(whole: dict[str, Any]) -> None:
    assert json.loads(json.dumps(whole, allow_nan=False)) == whole


def test_the_matrices_and_their_decomposition(whole: dict[str, Any]) -> None:
    assert set(whole["matrices"]) == set(MAIN_TASKS)
    assert whole["models"] == sorted(MODELS)
    assert whole["matrices"]["T3-1"]["values"][0][0] == 0.5
    shares = whole["variance"]["tasks"]["T1-2"]["eta2"]
    # Twenty runs a cell: the cells are rounded to 0.05.
    assert shares["model"] == pytest.approx(published.MODEL_TERM["T1-2"], abs=0.05)
    assert whole["variance"]["tasks"]["T1-2"]["leading"] == "model"
    assert set(whole["variance"]["turn_taking"]) == {"tor_pause", "tor_end", "backchannels", "barge_in"}


def test_what_a_habit_decides_is_the_models(whole: dict[str, Any]) -> None:
    found = whole["variance"]["turn_taking"]["backchannels"]
    assert found["leading"] == "model"
    assert found["eta2"]["model"] > 0.9
    assert sum(found["eta2"].values()) == pytest.approx(1)
    matrix = whole["turn_taking"]["backchannels"]
    assert dict(zip(matrix["models"], matrix["row_average"], strict=True)) == pytest.approx(
        {"PP": 1, "MCPM": 3, "Raon": 5}, abs=0.7
    )
    assert set(whole["turn_taking"]) == {"tor_pause", "tor_end", "backchannels", "barge_in", "occupancy"}


def test_the_other_tables(whole: dict[str, Any]) -> None:
    assert whole["ratings"]["all"]["Raon"]["rating"] > 0
    assert set(whole["ratings"]) == {"all", "coordination", "conflict"}
    assert set(whole["robustness"]) == {"backchannel_s", "hold_s"}
    assert set(whole["profiles"]) == set(MODELS)
    assert set(whole["balance"]) == {"T3-2", "T4-2"}
    assert set(whole["factors"]) == {"T2", "T3-2", "T4-1", "T4-2"}
    assert list(whole["windows"]["T2"]) == ["60"]
    assert whole["published"]["scores"]["T2"][0] == [0.05, 0.07, 0.23]
    assert whole["counts"]["T1-1"] == 6 * 20
    assert whole["survival"]["entry"] == {}
    assert "text" not in whole


def test_self_play_alone_says_what_it_cannot_say() -> None:
    found = summarise([dyad("T1-1", ("x", "x"), {"a": 1.0, "b": 0.0})])
    assert found["matrices"]["T1-1"]["values"] == [[0.5]]
    assert found["variance"]["tasks"]["T1-1"] == {"reason": "needs two models or more"}
    assert found["ratings"]["all"] == {"reason": "no two models were paired in these tasks"}


def test_a_pairing_that_was_not_recorded_is_named_as_the_reason() -> None:
    rows = [
        dyad("T4-2", ("x", "y"), {"a": 1.0}),
        dyad("T4-2", ("y", "x"), {"a": 0.0}),
        dyad("T4-2", ("x", "x"), {"a": 0.0}),
        dyad("T4-2", ("v", "w"), {"a": 0.0}),
        dyad("T4-2", ("w", "v"), {"a": 0.0}),
    ]
    found = summarise(rows)
    assert "a cell has no runs" in found["variance"]["tasks"]["T4-2"]["reason"]
    assert "never paired" in found["ratings"]["conflict"]["reason"]


def test_windows_and_text_are_not_mixed_with_the_minute() -> None:
    rows = [
        dyad("T4-2", ("x", "y"), {"a": 1.0}, window_s=60.0),
        *(dyad("T4-2", ("x", "y"), {"a": 0.0}, window_s=30.0) for _ in range(3)),
        dyad("T4-2", ("x", "y"), {"a": 0.0}, medium="text"),
    ]
    found = summarise(rows)
    assert (found["conversations"], found["window_s"]) == (5, 60.0)
    assert found["matrices"]["T4-2"]["values"][0] == [None, 1.0]
    assert list(found["windows"]["T4-2"]) == ["30", "60"]
    assert found["text"]["matrices"]["T4-2"]["values"][0] == [None, 0.0]
    assert found["text"]["published"] == published.TEXT_PAIRS
    assert summarise(rows[1:4])["window_s"] == 30.0


def test_a_row_that_no_run_writes_is_refused() -> None:
    with pytest.raises(ValueError, match="task 'T7' is not one of"):
        summarise([{**dyad("T4-2", ("x", "y"), {"a": 1.0}), "task": "T7"}])
