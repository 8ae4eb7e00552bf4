"""Inner pytest runs of the suite, as a user starts them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
IFEVAL = ROOT / "cases" / "ifeval"


@dataclass(frozen=True)
class Inner:
    """A finished inner run."""

    run_dir: Path
    status: int
    out: str
    err: str

    @property
    def summary(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads((self.run_dir / "report" / "summary.json").read_text())
        return data

    @property
    def counts(self) -> dict[str, int]:
        counts: dict[str, int] = self.summary["counts"]
        return counts

    def by_action(self) -> dict[str, float]:
        return {action: round(100 * cell["rate"], 1) for action, cell in self.summary["ifeval"]["by_action"].items()}

    def rows(self) -> list[dict[str, Any]]:
        from dsbeval.results import RunFolder

        return RunFolder.open(self.run_dir).rows()


def run(pytester: pytest.Pytester, *args: str, run_dir: Path | None = None, target: Path = IFEVAL) -> Inner:
    """Run ``pytest cases/ifeval`` with ``args`` in a process of its own; without a judge and a report, unless they are named."""
    run_dir = run_dir or pytester.path / "run"
    if not any(arg.startswith("--judge") for arg in args):
        args = ("--judge=none", *args)
    if not any(arg.startswith("--report") for arg in args):
        args = ("--report=none", *args)
    with pytest.MonkeyPatch.context() as outer:
        outer.delenv("PYTEST_XDIST_WORKER", raising=False)  # the run is nobody's worker, though this test may be one's
        result = pytester.runpytest_subprocess(
            "--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml"), "-p", "no:cacheprovider",
            str(target), "--run-dir", str(run_dir), *args,
        )  # fmt: skip
    return Inner(run_dir, int(result.ret), "\n".join(result.outlines), "\n".join(result.errlines))
