"""Score matrices: cells, averages over pairings, the pinned cell, closed runs; the published averages."""

from __future__ import annotations

import numpy as np
import pytest

from dsbeval.dyadic import published
from dsbeval.dyadic.matrices import (
    average_interval,
    matrix,
    models_of,
    row_intervals,
    score_intervals,
    score_matrices,
    score_matrix,
)
from dsbeval.dyadic.rows import seats, validate
from tests.dyadic.dyads import dyad, from_matrix

MODELS = published.MODELS


def test_no_rows_have_no_matrices() -> None:
    assert score_matrices([]) == {}
    assert models_of([]) == ()
    empty = matrix({}, ["x"])
    assert empty.as_dict()["values"] == [[None]]
    assert empty.row_average("x") == (None, 0)
    assert not empty.complete
    assert not matrix({}, []).complete


@pytest.mark.parametrize("task", sorted(published.SCORES))
def test_rows_made_from_a_published_matrix_give_it_back(task: str) -> None:
    table = published.scores(task)
    found = score_matrix(from_matrix(task, MODELS, table), task, MODELS)
    assert found.complete
    np.testing.assert_allclose(found.values, table, atol=1e-12)


def test_a_symmetric_conversation_scores_both_sides_and_self_play_twice() -> None:
    rows = [
        dyad("T1-1", ("x", "y"), {"a": 1.0, "b": 0.0}),
        dyad("T1-1", ("y", "x"), {"a": 1.0, "b": 1.0}),
        dyad("T1-1", ("x", "x"), {"a": 1.0, "b": 0.0}),
    ]
    found = score_matrix(rows, "T1-1").as_dict()
    assert found["models"] == ["x", "y"]
    assert found["values"] == [[0.5, 1.0], [0.5, None]]
    assert found["n"] == [[2, 2], [2, 0]]
    assert (found["row_average"], found["row_cells"]) == ([0.75, 0.5], [2, 1])
    assert (found["column_average"], found["column_cells"]) == ([0.5, 1.0], [2, 1])


def test_an_asymmetric_conversation_scores_the_role_holder_alone() -> None:
    rows = [dyad("T4-2", ("x", "y"), {"a": 1.0}), dyad("T4-2", ("x", "y"), {"b": 0.0})]
    assert score_matrix(rows, "T4-2").as_dict()["values"] == [[None, 1.0], [0.0, None]]
    assert [seat.side for seat in seats(rows, scored=True)] == ["a", "b"]
    assert len(list(seats(rows))) == 4


def test_open_runs_are_not_in_a_cell() -> None:
    rows = [dyad("T4-4", ("x", "y"), {"a": score}) for score in (0.25, None, 0.75)]
    found = score_matrix(rows, "T4-4", ["x", "y"])
    assert found.as_dict()["values"][0] == [None, 0.5]
    assert found.counts[0, 1] == 2


def test_occupancy_in_self_play_is_pinned_and_out_of_the_averages() -> None:
    rows = [
        dyad("T3-1", ("x", "x"), {"a": 0.9, "b": 0.9}),
        dyad("T3-1", ("x", "y"), {"a": 0.8, "b": 0.2}),
        dyad("T3-1", ("y", "y"), {"a": None, "b": None}),
    ]
    found = score_matrix(rows, "T3-1")
    assert found.as_dict()["values"] == [[0.5, 0.8], [0.2, None]]
    assert found.row_average("x") == (0.8, 1)
    assert found.column_average("x") == (0.2, 1)
    # In T3-2 self-play is a score like any other.
    assert score_matrix([dyad("T3-2", ("x", "x"), {"a": 0.9})], "T3-2").row_average("x") == (0.9, 1)


@pytest.mark.parametrize(("task", "figure"), [("T1-1", "holds_role"), ("T4-1", "wins_choice")])
def test_row_averages_of_the_published_matrices_are_the_published_profiles(task: str, figure: str) -> None:
    found = score_matrix(from_matrix(task, MODELS, published.scores(task)), task, MODELS)
    for model in MODELS:
        average, cells = found.row_average(model)
        assert cells == 3
        # Two roundings apart: of the cells and of the figure.
        assert average == pytest.approx(published.PROFILES[figure][model], abs=0.01)


def test_a_new_model_adds_a_row_and_a_column_and_changes_no_old_cell() -> None:
    four = (*MODELS, published.FOURTH)
    old = from_matrix("T4-2", MODELS, published.scores("T4-2"))
    rows = from_matrix("T4-2", four, published.scores("T4-2", fourth=True))
    new = [row for row in rows if published.FOURTH in (row["model_a"], row["model_b"])]
    found = score_matrix(old + new, "T4-2", four)
    np.testing.assert_allclose(found.values[:3, :3], published.scores("T4-2"), atol=1e-12)
    assert found.row_average(published.FOURTH)[0] == pytest.approx(np.mean(published.FOURTH_ROW["T4-2"]))


# Rows


def test_only_rows_that_were_measured_are_taken() -> None:
    row = dyad("T2", ("x", "y"), {"a": 1.0, "b": 1.0})
    unjudged = dyad("T2", ("x", "y"), {"a": None, "b": None}, outcome="skipped")
    others = [{"id": "1", "item": "floor"}, {"id": "2", "item": "dyad", "outcome": "error", "message": "gone"}]
    assert validate([row, *others, unjudged]) == [row, unjudged]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"outcome": "won"}, "outcome 'won' is not one of"),
        ({"outcome": "error", "task": "T0"}, "task 'T0' is not one of"),
        ({"task": "T9"}, "task 'T9' is not one of"),
        ({"scores": {"a": {"score": 1.0}}}, r"scores has the sides \['a'\]"),
        ({"scores": {"a": {"score": 1.0}, "c": {"score": 1.0}}}, r"scores has the sides \['a', 'c'\]"),
        ({"scores": {"a": {"score": 1.0}, "b": {"score": 1.5}}}, r"scores\.b\.score is 1\.5; it must be 0 to 1"),
        ({"scores": {"a": {"score": 1.0}, "b": {}}}, r"scores\.b\.score is 'absent'"),
    ],
)
def test_a_row_that_no_run_writes_is_refused(wrong: dict[str, object], message: str) -> None:
    row = {**dyad("T2", ("x", "y"), {"a": 1.0, "b": 1.0}), **wrong}
    with pytest.raises(ValueError, match=f"row T2-01-x-y: {message}"):
        validate([row])


def test_a_missing_field_is_named() -> None:
    row = {**dyad("T2", ("x", "y"), {"a": 1.0, "b": 1.0})}
    del row["end_s"]
    with pytest.raises(ValueError, match="end_s is missing"):
        validate([row])


# Intervals


def test_an_average_over_pairings_has_an_interval_by_scenario() -> None:
    """Twenty scenarios, half of them won whoever the partner is: as sure as twenty, not as all their conversations."""
    rows = [
        dyad("T4-2", ("x", partner), {"a": float(k % 2)}, scenario=k, repeat=repeat)
        for k in range(20) for partner in ("y", "z") for repeat in range(5)
    ]  # fmt: skip
    own = [(seat, seat.score) for seat in seats(rows, scored=True) if seat.score is not None]
    low, high = average_interval(own) or (0.0, 0.0)
    assert (low, high) == pytest.approx((0.5 - 0.22, 0.5 + 0.22), abs=0.04)
    assert row_intervals(rows, "T4-2", ("x", "y"))[0] == [low, high]
    assert row_intervals(rows, "T4-2", ("x", "y"))[1] is None
    assert average_interval(own, pooled=True) == pytest.approx([low, high])  # as many of each partner
    assert average_interval(own[:10]) is None
    cells = score_intervals(rows, "T4-2", ("x", "y", "z"))
    assert cells[0][0] is None
    assert cells[0][1] == pytest.approx([low, high], abs=0.05)
    pinned = [dyad("T3-1", ("x", "x"), {"a": 0.5, "b": 0.5}, scenario=k) for k in range(3)]
    assert score_intervals(pinned, "T3-1", ("x",)) == [[None]]
    assert row_intervals(pinned, "T3-1", ("x",)) == [None]
