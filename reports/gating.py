"""``--baseline``, ``--gate`` and ``--max-errors`` in a test run: checked before anything is recorded, judged at the end.

What runs where under xdist: the controller alone compares and decides, when the workers have finished. The exit status is then
the gate's; without ``--gate`` it is pytest's own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dsbeval.compare.alike import check_alike
from dsbeval.compare.side import Side, read_side
from dsbeval.errors import DsbevalError, OptionError
from dsbeval.gate.decide import Decision, MaxErrors, decide
from dsbeval.gate.rules import Rules, read_rules
from dsbeval.results import RunFolder
from reports.settings import settings_of

NAME = "dsbeval-gate"
DEFAULTS = "default"
_JUDGED = (
    pytest.ExitCode.OK,
    pytest.ExitCode.TESTS_FAILED,
    pytest.ExitCode.INTERRUPTED,
    pytest.ExitCode.NO_TESTS_COLLECTED,
)
"""Exit statuses of pytest that the gate's replaces; a usage error or a fault inside pytest stays what it is."""


def add_options(group: pytest.OptionGroup) -> None:
    """Declare the options of the gate."""
    option = group.addoption
    option("--baseline", default=None, metavar="RUN", help="run folder or baseline.json to compare with at the end")
    option(
        "--gate",
        nargs="?",
        const=DEFAULTS,
        default=None,
        metavar="GATE.TOML",
        help="exit with 0 (pass), 1 (regression) or 2 (not enough evidence), by these rules or the default ones",
    )
    option(
        "--max-errors",
        default=None,
        metavar="N",
        help="stop after more errors than this (12, or 2%% of the items); with --gate they are not enough evidence",
    )
    option("--allow-unlike", action="store_true", help="compare with a baseline that was not made alike")


def enable(config: pytest.Config) -> None:
    """Register the gate where it is asked for. Raises :class:`~dsbeval.errors.DsbevalError` for what cannot be."""
    asked = {name: config.getoption(f"--{name}") for name in ("baseline", "gate", "max-errors")}
    if config.option.collectonly or not any(asked.values()):
        return
    rules = None
    if asked["gate"] is not None:
        rules = read_rules(None if asked["gate"] == DEFAULTS else _path(config, asked["gate"]))
        if asked["baseline"] is None and rules.rule:
            raise OptionError("--gate: its rules need --baseline RUN, a run folder or a file of dsbeval baseline")
    base = read_side(_path(config, asked["baseline"])) if asked["baseline"] is not None else None
    most = MaxErrors.parse(asked["max-errors"]) if asked["max-errors"] is not None else None
    config.pluginmanager.register(Gate(config, base, rules, most, config.getoption("--allow-unlike")), NAME)


def _path(config: pytest.Config, named: str) -> Path:
    return Path(config.invocation_params.dir, named)


def check(config: pytest.Config, fingerprint: Mapping[str, Any]) -> None:
    """Raise :class:`~dsbeval.errors.RunError` where the run that is about to begin cannot be compared with its baseline."""
    found = config.pluginmanager.get_plugin(NAME)
    if isinstance(found, Gate):
        found.check(fingerprint)


class Gate:
    """The gate of one test run."""

    def __init__(
        self, config: pytest.Config, base: Side | None, rules: Rules | None, most: MaxErrors | None, allow_unlike: bool
    ) -> None:
        self._config = config
        self._base, self._rules, self._most, self._allow_unlike = base, rules, most, allow_unlike
        self._errors = 0
        self._items = 0
        self._session: pytest.Session | None = None
        self._lines: list[str] = []

    def check(self, fingerprint: Mapping[str, Any]) -> None:
        """Refuse a baseline of other cases, another protocol, other thresholds, another judge, other acoustics."""
        if self._base is not None and not self._allow_unlike:
            # What selects and what is free does not count; blocks of a benchmark that is not run are passed over.
            check_alike(self._base.fingerprint, fingerprint, (self._base.label, "this run"))

    # Too many errors

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note how many items there are, where this process runs them itself."""
        self._session, self._items = session, len(session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:  # noqa: ARG002
        """Note how many items the workers have."""
        self._items = len(ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Stop after more errors than are allowed: what is left would break too, or be judged by too few cases."""
        self._errors += report.failed and report.when != "call"
        if self._most is None or self._errors <= self._most.most(self._items):
            return
        said = f"--max-errors: {self._errors} of {self._items} items ended in an error"
        scheduler = self._config.pluginmanager.get_plugin("dsession")
        if scheduler is not None:
            scheduler.shouldstop = scheduler.shouldstop or said
        elif self._session is not None:
            self._session.shouldstop = self._session.shouldstop or said

    # The end

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Decide, and let the exit status say so."""
        if exitstatus not in _JUDGED or (self._base is None and self._rules is None):
            return
        run_dir = settings_of(self._config).run_dir
        if not (run_dir / "run.json").exists():
            if self._rules is not None:
                self._lines = ["gate: NOT ENOUGH EVIDENCE: no case was run (exit status 2)"]
                session.exitstatus = 2
            return
        try:
            self._conclude(session, RunFolder.open(run_dir))
        except DsbevalError as error:
            self._lines = [f"gate: {error}"]
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def _conclude(self, session: pytest.Session, folder: RunFolder) -> None:
        from dsbeval.compare.compare import compare
        from dsbeval.compare.side import side_of_run
        from reports import comparison, gate_text

        new = side_of_run(folder)
        if self._rules is None:
            assert self._base is not None
            self._lines = comparison.render(compare(self._base, new, allow_unlike=self._allow_unlike))
            return
        decision: Decision = decide(
            self._rules, self._base, new, max_errors=self._most, allow_unlike=self._allow_unlike
        )
        folder.write_summary(json.loads(json.dumps(gate_text.as_dict(decision))), "gate.json")
        self._lines = gate_text.render(decision)
        session.exitstatus = decision.status

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table, after those of the run."""
        if self._lines:
            terminalreporter.section("gate" if self._rules is not None else "comparison with the baseline")
            for line in self._lines:
                terminalreporter.write_line(line)
