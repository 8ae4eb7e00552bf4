"""The pytest plugin: options, the items of a benchmark, one result row an item, and the summary at the end.

What runs where under xdist: the controller makes the run folder when the workers have collected, and writes the
summary; each worker appends rows to its own file. An exception in an agent or a fixture is an *error*; so is a worker
that dies.
"""

from __future__ import annotations

import inspect
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest

from dsbeval.dyadic.runs import check_apart
from dsbeval.dyadic.scenarios import DEFAULT_ROOT as DYADS
from dsbeval.errors import DsbevalError, RunError
from dsbeval.ifeval.pack import DEFAULT_PACK, load_pack
from dsbeval.results import Row, RunFolder
from reports import allure, gating, hookspecs
from reports.benchmarks import BENCHMARKS, Benchmark, ignored, owner
from reports.items import ROW, case_of, given_up, note_personas, one_line, question_in, question_of
from reports.options import add_options
from reports.properties import note_properties
from reports.reading import read_settings
from reports.scheduling import CaseScheduling, case_in
from reports.settings import RUN_DIR, SETTINGS, settings_of


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    add_options(parser)
    gating.add_options(parser.getgroup("dsbeval"))


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks that this plugin calls."""
    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    """Check the options before anything is collected."""
    try:
        config.stash[SETTINGS] = read_settings(config)
        if not _is_worker(config):
            gating.enable(config)
    except DsbevalError as error:
        raise pytest.UsageError(str(error)) from None
    allure.enable(config)
    if config.pluginmanager.hasplugin("xdist") and not _is_worker(config):
        config.pluginmanager.register(_Controller(config), "dsbeval-controller")


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


# Collection


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say before a long run where the agent runs and on what, what is replayed, and what is not done."""
    settings = settings_of(config)
    lines = (
        settings.placement.lines() if settings.replay is None else [settings.replay.describe(load_pack(settings.pack))]
    )
    options = ignored(settings.acoustics) if settings.dyadic else ()
    return [*lines, *(f"{option} has no part in conversations of two agents" for option in options)]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the conversations of two agents out unless they are asked for: there are hundreds of them, a minute each.

    What a replayed folder has none of is left out too.
    """
    settings = settings_of(config)
    left_out = [root for root, asked in ((DYADS, settings.dyadic), (DEFAULT_PACK, settings.ifeval)) if not asked]
    return True if any(map(collection_path.is_relative_to, left_out)) else None


def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> list[pytest.Item] | None:
    """Make no persona items in a run without a judge."""
    if settings_of(collector.config).judge != "none" or not inspect.isfunction(obj):
        return None
    return [] if "persona_row" in inspect.signature(obj).parameters else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one item a case. Parameters are ids: collection reads no audio."""
    for benchmark in BENCHMARKS:
        if benchmark.fixture not in metafunc.fixturenames:
            continue
        try:
            ids = benchmark.ids(settings_of(metafunc.config))
        except DsbevalError as error:
            raise pytest.Collector.CollectError(str(error)) from None
        metafunc.parametrize(benchmark.fixture, ids, ids=ids, indirect=True)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Make the run folder, where this process runs the items itself."""
    config = session.config
    note_personas(config, session.items)
    if _is_worker(config) or config.option.collectonly:
        return
    _create_run(config, [case[1] for item in session.items if (case := case_of(item))])


def _create_run(config: pytest.Config, cases: Iterable[str]) -> None:
    wanted = list(dict.fromkeys(cases))
    if not wanted:
        return
    settings = settings_of(config)
    try:
        fingerprint = settings.fingerprint()
        check_apart(wanted, fingerprint, settings.run_dir, settings.earlier)
        gating.check(config, fingerprint)
        RunFolder.create(settings.run_dir, fingerprint, wanted, resume=settings.resume)
    except DsbevalError as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)


class _Controller:
    """Hooks of xdist that only its controller sees."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._created = False

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Hand the run folder to a worker; it would otherwise make up its own name."""
        node.workerinput[RUN_DIR] = str(settings_of(self._config).run_dir)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:  # noqa: ARG002
        """Make the run folder from the first worker's collection; no item has started yet."""
        if not self._created:
            self._created = True
            _create_run(self._config, (case for nodeid in ids if (case := self._case_id(nodeid))))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> CaseScheduling | None:
        """Keep the items of a case together, where the user has not asked for another way."""
        if config.getoption("dist") != "load":
            return None
        scheduler = CaseScheduling(config, log)
        scheduler.case_of = self._case_id
        return scheduler

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        """Write the error row of an item whose worker died, and let pytest count it as an error."""
        case_id = self._case_id(crashitem)
        if case_id is None:
            return
        report.when = "setup"
        settings = settings_of(self._config)
        benchmark = owner(settings, case_id)
        assert benchmark is not None
        message = "the worker process died while it ran this case (killed, out of memory, or a crash in native code)"
        row = benchmark.row_without_verdict(case_id, question_in(crashitem), "error", message, settings)
        RunFolder.open(settings.run_dir).append(row, "controller")
        self._config.hook.pytest_dsbeval_crash(config=self._config, nodeid=crashitem, row=row)

    def _case_id(self, nodeid: str) -> str | None:
        name = case_in(nodeid)
        return name if owner(settings_of(self._config), name) else None


# Outcomes


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Write one row an item: the verdict of the call, or the error or skip of the set-up."""
    report = yield
    case = case_of(item)
    if case is None:
        return report
    benchmark, name = case
    settings = settings_of(item.config)
    if call.excinfo is not None and (why := given_up(call.excinfo.value)) is not None:
        item.session.shouldstop = why  # under xdist the controller hears of it and stops the other workers too
    try:
        _write_down(item, call, report, benchmark, name)
    except OSError as error:  # a full disk, as a rule: what is recorded stays, and there is no room for more
        item.session.shouldstop = (
            f"{error.filename or settings.run_dir}: {error.strerror}; go on with --resume once that is mended"
        )
    return report


def _write_down(
    item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport, benchmark: Benchmark, name: str
) -> None:
    settings = settings_of(item.config)
    row = item.stash.get(ROW, None)
    broken = call.excinfo is not None and (call.when == "setup" or (row is not None and row["outcome"] == "passed"))
    if broken and call.when != "teardown" and call.excinfo is not None:
        outcome = "skipped" if report.skipped else "error"
        message = one_line(call.excinfo.value, settings.model)
        if outcome == "error":
            _keep_traceback(settings.run_dir, name, str(report.longrepr))
            report.longrepr = message
        if row is None or row["outcome"] != outcome:
            row = benchmark.row_without_verdict(name, question_of(item), outcome, message, settings)
        _append(item, row)
    elif call.when == "call" and row is not None:
        _append(item, row)


def _append(item: pytest.Item, row: Row) -> None:
    writer = getattr(item.config, "workerinput", {}).get("workerid", "main")
    RunFolder.open(settings_of(item.config).run_dir).append(row, writer)
    note_properties(item, row)
    item.config.hook.pytest_dsbeval_row(item=item, row=row)


def _keep_traceback(run_dir: Path, case: str, text: str) -> None:
    folder = run_dir / "errors"
    folder.mkdir(exist_ok=True)
    (folder / f"{case}.txt").write_text(text + "\n", encoding="utf-8")


# The end


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Write the summary of the run and print its tables."""
    run_dir = settings_of(config).run_dir
    if _is_worker(config) or config.option.collectonly or not (run_dir / "run.json").exists():
        return
    from reports.judged import join_persona
    from reports.summary import build
    from reports.tables import sections

    folder = RunFolder.open(run_dir)
    try:
        rows = join_persona(folder.rows(), folder)
        summary = build(folder, rows, earlier=settings_of(config).earlier)
    except (RunError, OSError) as error:  # a file of the run that somebody broke; the rows are safe
        told = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else error
        terminalreporter.write_line(f"summary: not made: {told}", red=True)
        return
    try:
        told = f"summary: {folder.write_summary(summary)}"
    except OSError as error:
        told = f"summary: not written: {error.filename}: {error.strerror}"
    for title, lines in sections(summary, width=terminalreporter._tw.fullwidth):
        terminalreporter.section(title)
        for line in lines:
            terminalreporter.write_line(line)
    terminalreporter.write_line(f"run: {run_dir}")
    terminalreporter.write_line(told)
    if settings_of(config).report != "none":
        from reports.making import make_report

        page, problem = make_report(folder, rows, summary, settings_of(config).report)
        terminalreporter.write_line(f"report: {page}" if page else f"report: not made: {problem}")
