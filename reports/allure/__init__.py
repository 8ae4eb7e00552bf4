"""What ``--alluredir`` adds to the results of allure-pytest: the benchmark's labels, the verdict in words, and what was heard.

allure-pytest writes the results, one file a test, each under a name of its own and moved into place when whole: so workers
do not disturb each other. This package adds to the test that is open (:mod:`reports.allure.content`), attaches only to
failing and error cases (:mod:`reports.allure.evidence`), and writes what no worker can: the categories, the environment,
and the result of a case whose worker died (:mod:`reports.allure.files`).

Conventions
-----------
* *failed* is Allure's failed, *error* is its broken, *skipped* its skipped; an unjudged case is broken with a category of
  its own.
* The history id of a result is made of the test's name and its case only, so it is the same in every run of every agent:
  what is added here as a parameter is excluded from it.
"""

from __future__ import annotations

import pytest

from dsbeval.results import Row, RunFolder
from reports.allure import content, evidence, files
from reports.settings import settings_of

PLUGIN = "dsbeval-allure"


def enable(config: pytest.Config) -> None:
    """Register with pytest, where a folder for Allure is asked for."""
    if config.getoption("allure_report_dir", None):
        config.pluginmanager.register(_Allure(), PLUGIN)


class _Allure:
    """The hooks."""

    def pytest_dsbeval_row(self, item: pytest.Item, row: Row) -> None:
        """Describe the open test by its row; attach what was heard where it did not pass."""
        import allure

        folder = RunFolder.open(settings_of(item.config).run_dir)
        for name, value in content.labels(row):
            allure.dynamic.label(name, value)
        for name, value in content.parameters(row).items():
            allure.dynamic.parameter(name, value, excluded=True)
        allure.dynamic.description_html(content.description(row, evidence.read_facts(folder, row)))
        if row["outcome"] not in ("failed", "error"):
            return
        for piece in evidence.pieces(folder, row):
            allure.attach(piece.body, piece.name, piece.mime, piece.extension)

    def pytest_dsbeval_crash(self, config: pytest.Config, nodeid: str, row: Row) -> None:
        """Write the result of a case whose worker took its open result with it."""
        files.write_crash(config.getoption("allure_report_dir"), nodeid, row)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the categories and the environment, once, where a run was made."""
        config = session.config
        if hasattr(config, "workerinput") or not (settings_of(config).run_dir / "run.json").exists():
            return
        files.write_run_files(config.getoption("allure_report_dir"), RunFolder.open(settings_of(config).run_dir))
