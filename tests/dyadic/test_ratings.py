"""Ratings over pairings: a logistic regression as the oracle, and what a rating must and must not depend on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbeval.dyadic import published
from dsbeval.dyadic.ratings import Comparison, Rating, bradley_terry, comparisons, rate
from dsbeval.stats import Numbers
from tests.dyadic.dyads import dyad, from_matrix

properties = settings(deadline=None, max_examples=60)


def regression(won: Numbers) -> Numbers:
    """Return the ratings by a binomial regression of statsmodels on one column a model."""
    from statsmodels.genmod.families import Binomial  # type: ignore[import-untyped]
    from statsmodels.genmod.generalized_linear_model import GLM  # type: ignore[import-untyped]

    models = len(won)
    pairs = [(m, p) for m in range(models) for p in range(m + 1, models)]
    design = np.zeros((len(pairs), models))
    for row, (m, p) in enumerate(pairs):
        design[row, m], design[row, p] = 1, -1
    counts = np.array([[won[m, p], won[p, m]] for m, p in pairs])
    fit: Any = GLM(counts, design[:, 1:], family=Binomial()).fit(tol=1e-12)  # the first model is 0
    found = np.array([0.0, *fit.params])
    centred: Numbers = found - found.mean()
    return centred


def test_a_binomial_regression_gives_the_same_ratings() -> None:
    won = np.array([[0, 30, 12, 25], [10, 0, 20, 18], [28, 20, 0, 31], [15, 22, 9, 0]], float)
    np.testing.assert_allclose(bradley_terry(won), regression(won), atol=1e-6)


@properties
@given(st.lists(st.floats(-2, 2), min_size=2, max_size=5))
def test_shares_that_follow_the_model_give_its_ratings_back(strengths: list[float]) -> None:
    true = np.array(strengths) - np.mean(strengths)
    won = 100 / (1 + np.exp(true[None, :] - true[:, None]))
    np.fill_diagonal(won, 0)
    np.testing.assert_allclose(bradley_terry(won), true, atol=1e-6)


@properties
@given(st.lists(st.floats(0.05, 0.95), min_size=6, max_size=6), st.permutations(range(4)))
def test_the_order_of_the_models_does_not_matter(shares: list[float], order: list[int]) -> None:
    won = np.zeros((4, 4))
    for (m, p), share in zip([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], shares, strict=True):
        won[m, p], won[p, m] = 20 * share, 20 * (1 - share)
    found = bradley_terry(won)
    assert found.sum() == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(bradley_terry(won[np.ix_(order, order)]), found[order], atol=1e-6)


def test_many_matrices_are_solved_as_one_by_one() -> None:
    stack = np.random.default_rng(5).uniform(1, 20, (7, 3, 3))
    np.testing.assert_allclose(bradley_terry(stack), [bradley_terry(one) for one in stack], atol=1e-8)


def test_two_models_have_the_log_odds_between_them() -> None:
    found = bradley_terry(np.array([[0.0, 30.0], [10.0, 0.0]]))
    assert found[0] - found[1] == pytest.approx(np.log(3))


# Comparisons


def test_no_comparison_without_cross_play() -> None:
    assert comparisons([]) == []
    assert comparisons([dyad("T1-1", ("x", "x"), {"a": 1.0, "b": 0.0})]) == []
    assert rate([]) == []


def test_a_symmetric_conversation_compares_its_two_sides() -> None:
    rows = [
        dyad("T3-1", ("y", "x"), {"a": 0.7, "b": 0.3}),
        dyad("T4-1", ("x", "y"), {"a": 1.0, "b": 0.0}),
        dyad("T4-1", ("x", "y"), {"a": 0.0, "b": 0.0}, scenario=2),
    ]
    found = comparisons(rows)
    assert [(one.model, one.partner, one.scenario) for one in found] == [
        ("x", "y", "T3-1-01"),
        ("x", "y", "T4-1-01"),
        ("x", "y", "T4-1-02"),
    ]
    assert [one.share for one in found] == pytest.approx([0.3, 1.0, 0.5])


def test_an_asymmetric_scenario_compares_both_in_the_same_role() -> None:
    """The attacker's role is easy here, and x is the better attacker; what the role gives cancels out."""
    rows = [
        *(dyad("T4-2", ("x", "y"), {"a": score}) for score in (1.0, 1.0, 1.0, 1.0)),
        *(dyad("T4-2", ("y", "x"), {"a": score}) for score in (1.0, 1.0, 0.0, 1.0)),
    ]
    assert [one.share for one in comparisons(rows)] == pytest.approx([(1 + 1.0 - 0.75) / 2])


def test_a_scenario_in_which_one_has_no_score_compares_nobody() -> None:
    rows = [dyad("T4-4", ("x", "y"), {"a": 0.5}), dyad("T4-4", ("y", "x"), {"a": None})]
    assert comparisons(rows) == []


def test_the_score_of_a_pair_compares_nobody() -> None:
    assert comparisons([dyad("T2", ("x", "y"), {"a": 1.0, "b": 1.0})]) == []


# Ratings


def contest(model: str, partner: str, share: float, n: int = 50) -> list[Comparison]:
    return [Comparison(model, partner, f"s{k}", float(k < round(share * n))) for k in range(n)]


def by_name(found: list[Rating]) -> dict[str, Rating]:
    return {one.model: one for one in found}


def test_ratings_are_ordered_with_intervals_around_them() -> None:
    found = rate([*contest("x", "y", 0.7), *contest("x", "z", 0.9), *contest("y", "z", 0.8)])
    assert [one.model for one in found] == ["x", "y", "z"]
    assert all(one.low < one.rating < one.high for one in found)
    assert [one.n for one in found] == [100, 100, 100]
    assert 0.5 < found[0].as_dict()["share"] < 1


def test_models_that_are_equal_have_intervals_over_zero() -> None:
    found = rate(contest("x", "y", 0.5))
    assert all(one.rating == pytest.approx(0) and one.low < 0 < one.high for one in found)


def test_a_model_that_wins_everything_has_a_finite_rating() -> None:
    found = rate(contest("x", "y", 1.0))
    assert found[0].model == "x"
    assert found[0].rating - found[1].rating == pytest.approx(np.log(50.5 / 0.5))
    assert np.isfinite([found[0].low, found[0].high]).all()


def test_equal_rows_have_equal_ratings_and_more_scenarios_narrower_ones() -> None:
    few, many = rate(contest("x", "y", 0.7, 20)), rate(contest("x", "y", 0.7, 500))
    assert few == rate(contest("x", "y", 0.7, 20))
    assert many[0].high - many[0].low < (few[0].high - few[0].low) / 2


def test_who_else_was_met_does_not_move_a_rating_as_it_moves_an_average() -> None:
    """One model, z, only ever meets y. It is as good as x all the same, which its average over partners would not show."""
    shares = [*contest("x", "y", 0.8), *contest("w", "x", 0.2), *contest("y", "z", 0.2)]
    found = by_name(rate(shares))
    assert found["z"].rating == pytest.approx(found["x"].rating)
    assert found["w"].rating == pytest.approx(found["y"].rating)


def test_models_without_a_pairing_between_them_are_refused() -> None:
    with pytest.raises(ValueError, match="y, z: never paired with w"):
        rate([*contest("w", "x", 0.5), *contest("y", "z", 0.5)])


def test_a_share_is_a_share() -> None:
    with pytest.raises(ValueError, match=r"a share of 1\.5"):
        rate([Comparison("x", "y", "s", 1.5)])


def test_the_published_conflict_matrices_put_raon_first() -> None:
    rows = [
        row for task in ("T3-1", "T3-2", "T4-1") for row in from_matrix(task, published.MODELS, published.scores(task))
    ]
    assert rate(comparisons(rows), draws=50)[0].model == "Raon"
