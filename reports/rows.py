"""From pytest's reports to result rows: what each outcome of an item is written down as."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from dsbeval.errors import DsbevalError
from dsbeval.ifeval.pack import Case
from dsbeval.ifeval.score import unscored
from dsbeval.results import Row

ROW = pytest.StashKey[Row]()


def one_line(error: BaseException, agent: str) -> str:
    """Return an exception as one line: a known error speaks for itself, another names its type and where it was raised."""
    if isinstance(error, (DsbevalError, pytest.fail.Exception)):
        return " ".join(str(error).split())
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"agent {agent}: {type(error).__name__}: {' '.join(str(error).split())}{where}"


def error_row(case: Case, message: str) -> Row:
    """Return the row of a case that broke."""
    return unscored(case, "error", message)


def skipped_row(case: Case, message: str) -> Row:
    """Return the row of a case that the agent declares it cannot do."""
    return unscored(case, "skipped", message)
