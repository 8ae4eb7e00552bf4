"""The decomposition: the published shares, an ANOVA as the oracle, and what must hold for any cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dsbeval.dyadic import published
from dsbeval.dyadic.variance import decompose, decompose_runs, sums_of_squares
from dsbeval.stats import Numbers

properties = settings(deadline=None, max_examples=100)


@pytest.mark.parametrize("task", sorted(published.MODEL_TERM))
def test_the_published_matrices_give_the_published_model_terms(task: str) -> None:
    assert round(decompose(published.scores(task)).shares["model"], 2) == published.MODEL_TERM[task]


def test_the_fourth_model_gives_the_published_defender_term() -> None:
    found = decompose(published.scores("T4-2", fourth=True))
    assert found.shares["partner"] == pytest.approx(0.805, abs=0.0005)
    assert found.shares["partner"] == pytest.approx(published.DEFENDER_TERM_WITH_FOURTH, abs=0.0055)  # rounded cells
    assert found.leading == "partner"


def test_the_published_shares_of_turn_taking_sum_to_one() -> None:
    assert all(sum(shares.values()) == pytest.approx(1, abs=0.011) for shares in published.TURN_TAKING.values())


def anova(cells: Numbers, formula: str) -> dict[str, float]:
    """Return the sums of squares of statsmodels, by the names of its terms."""
    import pandas as pd
    from statsmodels.formula.api import ols  # type: ignore[import-untyped]
    from statsmodels.stats.anova import anova_lm  # type: ignore[import-untyped]

    names = ("task", "model", "partner")[-cells.ndim :]
    table = pd.DataFrame(
        [{**dict(zip(names, map(str, at), strict=True)), "x": value} for at, value in np.ndenumerate(cells)]
    )
    found: Any = anova_lm(ols(formula, table).fit(), typ=2)
    return {str(name): float(value) for name, value in found["sum_sq"].items()}


def test_an_anova_gives_the_same_sums_of_squares() -> None:
    cells = np.random.default_rng(7).random((7, 3, 3))
    ours = sums_of_squares(cells)
    theirs = anova(cells, "x ~ C(task) + C(model) * C(partner)")
    for name, term in {
        "task": "C(task)",
        "model": "C(model)",
        "partner": "C(partner)",
        "interaction": "C(model):C(partner)",
        "residual": "Residual",
    }.items():
        assert ours[name] == pytest.approx(theirs[term], rel=1e-9)
    assert ours["total"] == pytest.approx(sum(theirs.values()), rel=1e-9)


@pytest.mark.parametrize("task", sorted(published.SCORES))
def test_an_anova_of_a_matrix_has_the_interaction_as_its_residual(task: str) -> None:
    cells = published.scores(task)
    ours = sums_of_squares(cells)
    theirs = anova(cells, "x ~ C(model) + C(partner)")
    found = [theirs["C(model)"], theirs["C(partner)"], theirs["Residual"]]
    assert [ours["model"], ours["partner"], ours["interaction"]] == pytest.approx(found, rel=1e-9, abs=1e-12)


def test_the_multipliers_are_the_published_ones() -> None:
    """An effect of one half up and down in one factor alone, by hand: the multiplier times its squared deviations."""
    base = np.zeros((7, 3, 3))
    step = np.array([0.5, 0.0, -0.5])
    assert sums_of_squares(base + step[None, :, None])["model"] == pytest.approx(21 * 0.5)
    assert sums_of_squares(base + step[None, None, :])["partner"] == pytest.approx(21 * 0.5)
    assert sums_of_squares(base + np.arange(7.0)[:, None, None])["task"] == pytest.approx(9 * 28)
    crossed = sums_of_squares(base + step[None, :, None] * step[None, None, :])
    assert crossed["interaction"] == pytest.approx(7 * 0.25)
    assert crossed["model"] == pytest.approx(0)


def test_one_effect_alone_takes_it_all() -> None:
    cells = np.zeros((7, 3, 3)) + np.array([0.1, 0.5, 0.9])[None, :, None]
    assert decompose(cells).shares == pytest.approx(
        {"task": 0, "model": 1, "partner": 0, "interaction": 0, "residual": 0}, abs=1e-12
    )


numbers = st.floats(0, 1, allow_nan=False).map(lambda x: round(x, 6))


@properties
@given(st.lists(numbers, min_size=9, max_size=9))
def test_the_three_terms_of_nine_cells_sum_to_one(values: list[float]) -> None:
    assume(max(values) - min(values) > 1e-5)
    shares = decompose(np.array(values).reshape(3, 3)).shares
    assert set(shares) == {"model", "partner", "interaction"}
    assert sum(shares.values()) == pytest.approx(1.0, abs=1e-9)
    assert all(-1e-12 <= share <= 1 + 1e-9 for share in shares.values())


@properties
@given(st.lists(numbers, min_size=63, max_size=63), st.floats(0.5, 2), st.floats(-1, 1))
def test_scale_and_offset_change_no_share_and_swapping_models_and_partners_swaps_them(
    values: list[float], scale: float, offset: float
) -> None:
    assume(max(values) - min(values) > 1e-3)
    cells = np.array(values).reshape(7, 3, 3)
    shares = decompose(cells).shares
    assert sum(shares.values()) == pytest.approx(1.0, abs=1e-9)
    assert decompose(cells * scale + offset).shares == pytest.approx(shares, abs=1e-6)
    swapped = decompose(cells.transpose(0, 2, 1)).shares
    assert swapped["model"] == pytest.approx(shares["partner"], abs=1e-9)
    assert swapped["interaction"] == pytest.approx(shares["interaction"], abs=1e-9)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (np.full((3, 3), 0.5), "all cells are equal"),
        (np.zeros((3, 3)), "all cells are equal"),
        (np.full((7, 3, 3), 0.1), "all cells are equal"),
        (np.array([[0.1, np.nan], [0.2, 0.3]]), "a cell is empty"),
        (np.zeros((0, 3)), "there are no cells"),
        (np.zeros(9), "cells have shape"),
    ],
)
def test_cells_without_variance_or_value_are_refused(cells: Numbers, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decompose(cells)


# Over runs


def bernoulli(means: Numbers, n: int) -> list[list[list[float]]]:
    return [[[float(k < round(mean * n)) for k in range(n)] for mean in row] for row in means]


def test_the_sd_over_runs_falls_with_their_number_and_repeats() -> None:
    table = published.scores("T1-1")
    few, many = (decompose_runs(bernoulli(table, n), draws=300) for n in (100, 4000))
    assert few.shares["model"] == pytest.approx(0.783, abs=0.001)
    assert few.sd is not None
    assert many.sd is not None
    assert 0 < many.sd["model"] < few.sd["model"] / 4
    assert decompose_runs(bernoulli(table, 100), draws=300) == few
    assert decompose_runs(bernoulli(table, 100), draws=300, seed=1).sd != few.sd


def test_runs_without_spread_have_no_sd() -> None:
    found = decompose_runs([[[0.1], [0.2]], [[0.4], [0.9]]])
    assert found.sd == pytest.approx({"model": 0.0, "partner": 0.0, "interaction": 0.0}, abs=1e-9)
    assert found.as_dict()["leading"] == "model"


def test_runs_of_several_tasks_are_decomposed_three_ways() -> None:
    runs = [bernoulli(published.scores(task), 100) for task in ("T1-1", "T1-2", "T4-1")]
    means = np.array([[[np.mean(cell) for cell in row] for row in task] for task in runs])
    found = decompose_runs(runs, draws=50)
    assert found.shares == pytest.approx(dict(decompose(means).shares))
    assert found.sd is not None
    assert set(found.sd) == {"task", "model", "partner", "interaction", "residual"}


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([[[0.1], []], [[0.2], [0.3]]], "a cell has no runs"),
        ([[[0.1], [0.2]], [[0.3]]], "the same models"),
        ([[[0.5], [0.5]], [[0.5], [0.5]]], "all cells are equal"),
    ],
)
def test_runs_that_cannot_be_decomposed_are_refused(runs: list[list[list[float]]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decompose_runs(runs)
