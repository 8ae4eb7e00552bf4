"""The files of an Allure folder that belong to no test: categories, environment, and the result of a case whose worker died."""

from __future__ import annotations

import json
import time
import uuid
from pathlib import Path
from typing import Any

from dsbeval.audio import atomic_write
from dsbeval.results import Row, RunFolder
from reports.allure import content
from reports.scheduling import case_in

CATEGORIES: list[dict[str, Any]] = [
    {"name": "Agent failed", "matchedStatuses": ["failed"]},
    {"name": "Unjudged", "matchedStatuses": ["broken"], "messageRegex": r"(?s).*UnjudgedError.*"},
    {"name": "Harness error", "matchedStatuses": ["broken"]},
    {"name": "Skipped: the agent declares that it cannot", "matchedStatuses": ["skipped"]},
]
"""Allure takes the first that fits."""
CONFIG: dict[str, Any] = {
    "name": "dsbeval",
    "categories": {"rules": CATEGORIES},
    "plugins": {"awesome": {"options": {"groupBy": ["epic", "feature", "story"]}}},
}
"""What the command line of Allure 3 reads, ``allure generate DIR --config DIR/allurerc.json``; Allure 2 reads the categories."""


def write_run_files(allure_dir: str, folder: RunFolder) -> None:
    """Write ``categories.json``, ``allurerc.json`` and ``environment.properties`` of a run."""
    root = Path(allure_dir)
    root.mkdir(parents=True, exist_ok=True)
    for name, data in (("categories.json", CATEGORIES), ("allurerc.json", CONFIG)):
        with atomic_write(root / name) as file:
            file.write(json.dumps(data, indent=1).encode())
    lines = [f"{key}={value}" for key, value in environment(folder.fingerprint()).items()]
    with atomic_write(root / "environment.properties") as file:
        file.write(("\n".join(lines) + "\n").encode("unicode_escape").replace(b"\\n", b"\n"))


def environment(fingerprint: dict[str, Any]) -> dict[str, str]:
    """Return what a run was made with, in Allure's flat form."""
    checkpoint = fingerprint.get("checkpoint") or {}
    judge = fingerprint.get("judge") or {}
    selection = fingerprint.get("selection") or {}
    facts = {
        "agent": fingerprint.get("agent"),
        "agent.args": fingerprint.get("agent_args") or None,
        "checkpoint": checkpoint.get("name"),
        "checkpoint.sha256": checkpoint.get("sha256"),
        "partners": ", ".join(selection.get("partners", [])) or None,
        "judge": judge.get("id"),
        "pack": str(fingerprint.get("pack", ""))[:16],
        "seed": fingerprint.get("seed"),
        "device": fingerprint.get("device"),
        "latency": fingerprint.get("latency"),
        "acoustics": fingerprint.get("acoustics"),
        **{f"version.{name}": value for name, value in (fingerprint.get("versions") or {}).items()},
    }
    return {key: " ".join(str(value).split()) for key, value in facts.items() if value not in (None, "")}


def write_crash(allure_dir: str, nodeid: str, row: Row) -> None:
    """Write the result of an item whose worker died, under the identity that it would have had."""
    from allure_commons.logger import AllureFileLogger
    from allure_commons.model2 import Label, Parameter, Status, StatusDetails, TestResult
    from allure_commons.utils import md5, represent

    path, _, function = nodeid.partition("::")
    case = case_in(nodeid)
    name = function.partition("[")[0]
    full_name = f"{path.removesuffix('.py').replace('/', '.')}#{name}"
    now = round(time.time() * 1000)
    result = TestResult(
        uuid=str(uuid.uuid4()),
        name=function,
        fullName=full_name,
        testCaseId=md5(full_name),
        historyId=md5(full_name, case),
        status=Status.BROKEN,
        statusDetails=StatusDetails(message=row["message"]),
        descriptionHtml=content.description(row, {}),
        start=now,
        stop=now,
        labels=[
            *(Label(name=name, value=value) for name, value in content.labels(row)),
            Label(name="framework", value="pytest"),
        ],
        parameters=[
            Parameter(name=name, value=represent(value), excluded=True)
            for name, value in content.parameters(row).items()
        ],
    )
    AllureFileLogger(allure_dir).report_result(result)
