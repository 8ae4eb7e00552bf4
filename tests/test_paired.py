"""Tests of pairs against SciPy and statsmodels, at their edges, and by how often they raise a false alarm."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbeval import paired
from dsbeval.paired import Alternative, holm, mcnemar, sign_flip, swap
from dsbeval.stats import Sums

properties = settings(deadline=None, max_examples=40)
SIDES: tuple[Alternative, ...] = ("less", "greater", "two-sided")


@properties
@given(st.integers(0, 40), st.integers(0, 40))
def test_mcnemar_is_the_binomial_test_and_statsmodels(gained: int, lost: int) -> None:
    from scipy.stats import binomtest
    from statsmodels.stats.contingency_tables import mcnemar as theirs  # type: ignore[import-untyped]

    for side in SIDES:
        p = binomtest(gained, gained + lost, 0.5, side).pvalue if gained + lost else 1.0
        assert mcnemar(gained, lost, side) == pytest.approx(p, abs=1e-12)
    if gained + lost:
        table = [[5, gained], [lost, 7]]
        assert mcnemar(gained, lost) == pytest.approx(theirs(table, exact=True).pvalue)


@properties
@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 5), st.sampled_from(SIDES))
def test_one_pair_a_cluster_is_mcnemars_test(gained: int, lost: int, alike: int, side: Alternative) -> None:
    differences = [1.0] * gained + [-1.0] * lost + [0.0] * alike
    assert sign_flip(differences, side) == pytest.approx(mcnemar(gained, lost, side), abs=1e-12)


@properties
@given(st.lists(st.integers(-4, 4), max_size=9), st.sampled_from(SIDES))
def test_the_exact_distribution_is_that_of_all_signs(differences: list[int], side: Alternative) -> None:
    observed = sum(differences)
    sums = [
        sum(s * d for s, d in zip(signs, differences, strict=True))
        for signs in product((1, -1), repeat=len(differences))
    ]
    less, greater = np.mean([s <= observed for s in sums]), np.mean([s >= observed for s in sums])
    p = {"less": less, "greater": greater, "two-sided": min(1.0, 2 * min(less, greater))}[side]
    assert sign_flip([float(d) for d in differences], side) == pytest.approx(p, abs=1e-12)


def test_drawn_signs_come_near_the_exact_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    differences = [2.0, 1.0, 3.0, -1.0, 1.0, 2.0, -2.0, 1.0, 4.0, 1.0]
    exact = [sign_flip(differences, side) for side in SIDES]
    monkeypatch.setattr(paired, "EXACT_SUM", 0)
    assert [sign_flip(differences, side) for side in SIDES] == pytest.approx(exact, abs=0.01)
    assert sign_flip(differences) == sign_flip(differences)
    assert sign_flip([1.0] * 50) == pytest.approx(2 / (paired.DRAWS + 1))  # never nothing


def test_swapping_whole_sides_is_the_sign_test_where_both_have_as_many() -> None:
    one = Sums.of([1.0, 1, 1, 0, 1], ["a", "a", "b", "b", "c"])
    other = Sums.of([0.0, 0, 1, 0, 1], ["a", "a", "b", "b", "c"])
    assert swap(one, other, "greater") == sign_flip([2.0, 0, 0], "greater") == 0.5


def test_swapping_sides_of_unlike_size() -> None:
    """Thirty conversations: the first side passes 2 of 3, the other 1 of 4; against thirty that differ in size alone."""
    many = [str(k) for k in range(30)]
    one, size3 = Sums(np.full(30, 2.0), np.full(30, 3.0)), Sums(np.full(30, 1.5), np.full(30, 3.0))
    other, size4 = Sums(np.full(30, 1.0), np.full(30, 4.0)), Sums(np.full(30, 2.0), np.full(30, 4.0))
    assert len(many) == one.total.size
    assert swap(one, other, "greater") < 0.001 < 0.999 < swap(one, other, "less")
    assert swap(size3, size4) == 1.0
    assert swap(one, Sums(np.zeros(30), np.zeros(30))) == 1.0


def test_nothing_differs_is_no_evidence() -> None:
    assert mcnemar(0, 0) == sign_flip([]) == sign_flip([0.0, 0.0], "less") == 1.0


@pytest.mark.parametrize("counts", [(-1, 3), (3, -1)])
def test_impossible_pairs_are_refused(counts: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="cannot be"):
        mcnemar(*counts)


@settings(deadline=None, max_examples=15)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_statsmodels(values: list[float]) -> None:
    from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

    assert holm(values) == pytest.approx(list(multipletests(values, method="holm")[1]))


def test_holm_of_no_tests() -> None:
    assert holm([]) == []


def test_conversations_as_units_keep_the_level_and_cases_as_units_do_not() -> None:
    """Equal agents whose four cases of a conversation pass or fail together: cases counted one by one see what is not there."""
    rng = np.random.default_rng(0)
    clustered, naive = [], []
    for _ in range(400):
        moved = (rng.random(60) < 0.5).astype(int) - (rng.random(60) < 0.5)
        clustered.append(sign_flip(4.0 * moved, "less") < 0.05)
        naive.append(mcnemar(int(4 * (moved > 0).sum()), int(4 * (moved < 0).sum()), "less") < 0.05)
    assert np.mean(clustered) < 0.05 + 2 * 0.011
    assert np.mean(naive) > 0.12
