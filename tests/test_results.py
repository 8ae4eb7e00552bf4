"""The run folder: what a process that died while it wrote leaves behind."""

from __future__ import annotations

from pathlib import Path

from dsbeval.results import RunFolder


def test_a_run_goes_on_after_a_torn_line(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run", {}, ["one", "two", "three"])
    folder.append({"id": "one", "item": "floor", "outcome": "passed"})
    with (folder.root / "results" / "main.jsonl").open("a") as file:
        file.write('{"id": "two", "item": "flo')
    assert [row["id"] for row in folder.rows()] == ["one"]
    folder.append({"id": "three", "item": "floor", "outcome": "failed"})
    assert [row["id"] for row in folder.rows()] == ["one", "three"]
