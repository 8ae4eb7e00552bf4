"""What judges said of a run after it: ``report/judge-*.json``, which ``dsbeval judge`` leaves, joined to the run's own.

A run is often recorded without a judge and judged later, by one or by several. Their persona rows stand beside those of the
run's own judge, so every table and list has them; the analyses of conversations, whose rows hold one judge's scores, stand by
themselves (``judged`` in ``summary.json``). Where the run's own judge was asked again, that of the two counts which judged more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dsbeval.errors import RunError
from dsbeval.judge.pas import ITEM
from dsbeval.results import Row, RunFolder

PATTERN = "judge-*.json"


def join_persona(rows: Sequence[Row], folder: RunFolder) -> list[Row]:
    """Return the rows of a run with those of the judges that were asked afterwards."""
    out = list(rows)
    for found in _files(folder):
        judge, later = found["judge"], found.get("rows", [])
        own = [row for row in out if row["item"] == ITEM and row["judge"] == judge]
        if _judged(later) > _judged(own):
            out = [row for row in out if row["item"] != ITEM or row["judge"] != judge] + later
    return out


def judged_conversations(folder: RunFolder, own: Sequence[str]) -> dict[str, Any]:
    """Return the analyses of conversations by the judges that were asked afterwards, but for the run's ``own``."""
    return {
        found["judge"]: {"fingerprint": folder.fingerprint(), "dyadic": found["dyadic"]}
        for found in _files(folder)
        if "dyadic" in found and found["judge"] not in own
    }


def _files(folder: RunFolder) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.report.glob(PATTERN)):
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise RunError(f"{path}: cannot be read ({error}); run dsbeval judge again, or remove it") from None
        if not isinstance(found, dict) or not isinstance(found.get("judge"), str):
            raise RunError(f"{path}: names no judge; run dsbeval judge again, or remove it")
        yield found


def _judged(rows: Iterable[Row]) -> int:
    return sum("pas" in row for row in rows)
