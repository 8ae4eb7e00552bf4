"""DSB-IFEval: one item a case. The recording is made in a fixture, so what breaks there is an error, never a failure."""

import pytest

from dsbeval.ifeval.verifiers import Verdict


def test_floor(floor_verdict: Verdict) -> None:
    """The agent does with the floor what its role implies, when it should."""
    if not floor_verdict.passed:
        pytest.fail(floor_verdict.message, pytrace=False)
