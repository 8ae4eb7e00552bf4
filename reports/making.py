"""The report at the end of a run: made from the run folder, cheaply, and never a reason for a run to fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dsbeval.errors import DsbevalError
from dsbeval.results import Row, RunFolder
from reports.html.modes import Audio


def make_report(folder: RunFolder, rows: list[Row], summary: dict[str, Any], audio: Audio) -> tuple[Path | None, str]:
    """Make ``report/index.html`` and return its path, or None and why there is none in one line."""
    from reports.html.site import Run, write_report

    try:
        return write_report([Run(folder, folder.root.name, rows, summary)], folder.report, audio=audio), ""
    except (DsbevalError, OSError) as error:
        return None, " ".join(str(error).split())
