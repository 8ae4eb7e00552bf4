"""DyaFDB: one item a conversation. Recording, measuring and judging are fixtures: what breaks there is an error."""

import allure
import pytest

from dsbeval.dyadic.verdict import DyadVerdict


def test_dyad(dyad_verdict: DyadVerdict) -> None:
    """The agent gets out of the conversation what its role is there for (docs/dyadic.md says what fails an item)."""
    with allure.step("verify"):
        if dyad_verdict.outcome != "passed":
            pytest.fail(dyad_verdict.message, pytrace=False)
