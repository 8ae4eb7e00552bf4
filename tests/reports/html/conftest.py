"""Run folders that several tests of the report look at, and what opens their reports in the browser."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dsbeval.results import RunFolder
from reports.html.modes import Audio
from reports.html.site import Run, write_report
from tests.reports.html.page import Page
from tests.reports.html.runs import CASES, dyadic_run, ifeval_run

FEW = CASES[3:5]
"""Two barge-ins, which a turn-based agent cannot yield to."""
BROKEN = "IFD-R3-C2-i1-L2"
CUT = "IFD-R4-C1-i1-L2"


@dataclass(frozen=True)
class Made:
    """A report and the run behind it."""

    folder: RunFolder
    run: Run
    page: Path

    @property
    def summary(self) -> dict[str, Any]:
        return self.run.summary

    @property
    def rows(self) -> dict[tuple[str, str], dict[str, Any]]:
        return {(row["id"], row["item"]): row for row in self.run.rows}


def make(folder: RunFolder, audio: Audio = "none", out: Path | None = None) -> Made:
    """Make the report of a run."""
    run = Run.read(folder, folder.root.name)
    return Made(folder, run, write_report([run], out or folder.report, audio=audio))


@pytest.fixture
def look(chrome: Any) -> Iterator[Callable[..., Page]]:
    """Return what opens a report; at the end every page that was opened is checked."""
    pages: list[Page] = []

    def look(page: Path) -> Page:
        pages.append(Page(chrome, page.resolve().as_uri(), page.parent.resolve().as_uri() + "/"))
        return pages[-1]

    yield look
    for page in pages:
        page.check()
        page.width(1360)


@pytest.fixture(scope="session")
def turn_based(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Return the report of a small run, judged offline: passes, failures, an error, and a case that the run was cut before."""
    folder = ifeval_run(
        tmp_path_factory.mktemp("runs") / "turn_based", "turn_based", judge="offline", wanted=[BROKEN, CUT]
    )
    folder.append({
        "id": BROKEN, "item": "floor", "role": "R3", "probe": "C2", "level": "L2", "instance": 1, "action": "READBACK",
        "scored_as": "READBACK", "matched": False, "outcome": "error", "message": "agent turn_based: RuntimeError: broke",
    })  # fmt: skip
    (folder.root / "errors").mkdir()
    (folder.root / "errors" / f"{BROKEN}.txt").write_text("Traceback (most recent call last):\nRuntimeError: broke\n")
    return make(folder, "linked")


@pytest.fixture(scope="session")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Return the portable report of a run of two cases, moved away from its run."""
    folder = ifeval_run(tmp_path_factory.mktemp("runs") / "few", "turn_based", FEW)
    made = make(folder, "portable")
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "a folder, moved"
    shutil.move(folder.report, elsewhere)
    return Made(folder, made.run, elsewhere / "index.html")


@pytest.fixture(scope="session")
def conversations(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Return the report of a few conversations of two calibration agents."""
    root = tmp_path_factory.mktemp("runs") / "dyads"
    return make(dyadic_run(root, "achiever", "forfeiter", ["T1-1-01", "T4-1-01", "T4-2-01"]), "linked")


__all__ = ["BROKEN", "CASES", "CUT", "Made", "make"]
