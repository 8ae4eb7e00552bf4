"""A plugin for an inner run: a file stands where the report's folder of data must go."""

from __future__ import annotations

import pytest

from reports.settings import settings_of


@pytest.hookimpl(tryfirst=True)
def pytest_terminal_summary(config: pytest.Config) -> None:
    """Put a file there."""
    report = settings_of(config).run_dir / "report"
    report.mkdir(parents=True, exist_ok=True)
    (report / "data").write_text("in the way")
