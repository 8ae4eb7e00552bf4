"""The items of a run: which case and question each one is, and what its outcome is written down as."""

from __future__ import annotations

import re
import traceback
from pathlib import Path

import pytest

from dsbeval.errors import DsbevalError, HopelessError
from dsbeval.results import Row
from reports.benchmarks import BENCHMARKS, Benchmark

ROW = pytest.StashKey[Row]()
_PERSONAS = pytest.StashKey[frozenset[str]]()
_FUNCTION = re.compile(r"::test_(\w+)\[")

QUESTIONS = {"floor_verdict": "floor", "persona_row": "persona", "dyad_verdict": "dyad"}
"""Which fixture asks which question."""


def case_of(item: pytest.Item) -> tuple[Benchmark, str] | None:
    """Return the benchmark and the id of an item, or None for an item that is not one of ours."""
    params = getattr(getattr(item, "callspec", None), "params", {})
    return next(((one, str(params[one.fixture])) for one in BENCHMARKS if one.fixture in params), None)


def question_of(item: pytest.Item) -> str:
    """Return the question that an item asks about its case."""
    names = getattr(item, "fixturenames", ())
    return next(question for fixture, question in QUESTIONS.items() if fixture in names)


def question_in(nodeid: str) -> str:
    """Return the question of an item of ``cases/`` that is known by its node id only."""
    found = _FUNCTION.search(nodeid)
    return found[1] if found else ""


def note_personas(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep which cases have a persona item: only these are judged."""
    found = (case[1] for item in items if (case := case_of(item)) and question_of(item) == "persona")
    config.stash[_PERSONAS] = frozenset(found)


def persona_cases(config: pytest.Config) -> frozenset[str]:
    """Return the cases of this process that have a persona item."""
    return config.stash.get(_PERSONAS, frozenset())


def given_up(error: BaseException | None) -> str | None:
    """Return why no later case can go better, where that is what is behind an exception."""
    while error is not None:
        if isinstance(error, HopelessError):
            return one_line(error, "")
        error = error.__cause__
    return None


def one_line(error: BaseException, agent: str) -> str:
    """Return an exception as one line: a known error speaks for itself, another names its type and where it was raised."""
    if isinstance(error, (DsbevalError, pytest.fail.Exception, pytest.skip.Exception)):
        return " ".join(str(error).split())
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"agent {agent}: {type(error).__name__}: {' '.join(str(error).split())}{where}"
