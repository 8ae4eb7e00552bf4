"""DSB-IFEval: one item a case and question. Recording, measuring and judging are fixtures: what breaks there is an error."""

import allure
import pytest

from dsbeval.ifeval.verifiers import Verdict
from dsbeval.results import Row


def test_floor(floor_verdict: Verdict) -> None:
    """The agent does with the floor what its role implies, when it should."""
    with allure.step("verify"):
        if not floor_verdict.passed:
            pytest.fail(floor_verdict.message, pytrace=False)


def test_persona(persona_row: Row) -> None:
    """The agent stays in its role, and resolves a conflict as it should (only with --judge)."""
    with allure.step("verify"):
        if not persona_row["passed"]:
            pytest.fail(persona_row["message"], pytrace=False)
