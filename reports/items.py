"""The items of a run: which case and question each one is, and what its outcome is written down as."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from dsbeval.errors import DsbevalError
from dsbeval.ifeval.pack import Case, load_pack
from dsbeval.ifeval.score import unscored
from dsbeval.judge.pas import unscored_row
from dsbeval.results import Row
from reports.settings import Settings, settings_of

ROW = pytest.StashKey[Row]()
_PERSONAS = pytest.StashKey[frozenset[str]]()

FIXTURE = "ifeval_case"
QUESTIONS = {"floor_verdict": "floor", "persona_row": "persona"}
"""Which fixture asks which question."""


def case_of(item: pytest.Item) -> Case | None:
    """Return the case of an item, or None for an item that is not one of ours."""
    callspec = getattr(item, "callspec", None)
    if callspec is None or FIXTURE not in callspec.params:
        return None
    return load_pack(settings_of(item.config).pack).cases[callspec.params[FIXTURE]]


def question_of(item: pytest.Item) -> str:
    """Return the question that an item asks about its case."""
    names = getattr(item, "fixturenames", ())
    return next(question for fixture, question in QUESTIONS.items() if fixture in names)


def note_personas(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep which cases have a persona item: only these are judged."""
    found = (case.id for item in items if (case := case_of(item)) and question_of(item) == "persona")
    config.stash[_PERSONAS] = frozenset(found)


def persona_cases(config: pytest.Config) -> frozenset[str]:
    """Return the cases of this process that have a persona item."""
    return config.stash.get(_PERSONAS, frozenset())


def one_line(error: BaseException, agent: str) -> str:
    """Return an exception as one line: a known error speaks for itself, another names its type and where it was raised."""
    if isinstance(error, (DsbevalError, pytest.fail.Exception, pytest.skip.Exception)):
        return " ".join(str(error).split())
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"agent {agent}: {type(error).__name__}: {' '.join(str(error).split())}{where}"


def row_without_verdict(case: Case, question: str, outcome: str, message: str, settings: Settings) -> Row:
    """Return the row of an item that broke (``error``) or that the agent declares it cannot do (``skipped``)."""
    if question == "persona":
        return unscored_row(case, settings.judge_id, outcome, message)
    return unscored(case, outcome, message)
