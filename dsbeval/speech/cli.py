"""The command ``dsbeval speech``: render a pack's speech, check it, render the agents' bank."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dsbeval.errors import DsbevalError
from dsbeval.ifeval.pack import DEFAULT_PACK, load_pack
from dsbeval.speech.engines import ENGINES

if TYPE_CHECKING:
    from rich.console import Console

    from dsbeval.speech.verify import Spread, VerifyReport
    from dsbeval.speech.wer import Heard

_FAULTS_SHOWN = 40
_WORST_SHOWN = 20


@contextmanager
def _one_line() -> Iterator[None]:
    try:
        yield
    except DsbevalError as error:
        raise click.ClickException(str(error)) from None


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None]]:
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn(what), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


_pack = click.option(
    "--pack",
    "root",
    type=click.Path(path_type=Path),
    default=DEFAULT_PACK,
    help="Folder of the pack.",
    show_default="ours",
)
_only = click.option("--only", default="*", metavar="GLOB", help="Only audio keys that match, e.g. 'IFD-R1-*'.")


@click.group()
def speech() -> None:
    """Make and check the user side of a pack."""


@speech.command()
@_pack
@_only
@click.option("--engine", type=click.Choice(ENGINES), default="kokoro", show_default=True, help="Synthesiser.")
@click.option("--jobs", type=int, default=1, show_default=True, help="Processes.")
@click.option("--again", is_flag=True, help="Also render what another version of the engine has made.")
def build(root: Path, only: str, engine: str, jobs: int, again: bool) -> None:
    """Render what is missing or has changed."""
    from dsbeval.speech.build import build as run

    with _one_line(), _progress("segments") as progress:
        report = run(load_pack(root), engine, only=only, jobs=jobs, again=again, progress=progress)
    if not report.made and not report.removed_files:
        click.echo(f"nothing to do: {report.kept} segments are up to date")
    else:
        click.echo(f"{report.made} segments rendered, {report.kept} up to date, {report.removed_files} files removed")
    for off in report.off_target:
        line = off.line
        click.echo(f"off target: {line.key} {line.name} ({line.part}): {off.seconds:.2f} s of {line.seconds:g} s")


@speech.command()
@_pack
@_only
@click.option("--asr", metavar="NAME", help="Also report word error rates: pocketsphinx, or faster-whisper:FOLDER.")
def verify(root: Path, only: str, asr: str | None) -> None:
    """Check files, levels, durations and what the VAD hears; exit 1 when something is wrong."""
    from dsbeval.speech.recognise import load_recogniser
    from dsbeval.speech.verify import verify as run

    with _one_line():
        recogniser = load_recogniser(asr) if asr else None
        with _progress("segments") as progress:
            report = run(load_pack(root), only=only, recogniser=recogniser, progress=progress)
    _print(report)
    if not report.ok:
        raise SystemExit(1)


@speech.command()
def bank() -> None:
    """Render the bank of speech that the calibration agents use."""
    from dsbeval.speech.bank import BANK, BankFile, build_bank
    from dsbeval.speech.engines import load_engine
    from dsbeval.yamlfile import read_yaml

    with _one_line():
        made = build_bank(load_engine(read_yaml(BANK / "bank.yaml", BankFile).engine))
    click.echo(f"rendered: {', '.join(made)}" if made else "nothing to do: the bank is up to date")


def _print(report: VerifyReport) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    console.print(
        f"{report.recordings} recordings, {report.segments} segments, "
        f"{report.speech_s:.0f} s of speech, {report.megabytes:.1f} MB"
    )
    table = Table("", "n", "min", "p5", "median", "p95", "max", "mean")
    rows: tuple[tuple[str, Spread, int], ...] = (
        ("conversation, s", report.conversation_s, 1),
        ("level, dBFS", report.level_dbfs, 1),
        ("peak", report.peak, 2),
        ("VAD onset - construction, ms", report.onset_ms, 0),
        ("VAD end - construction, ms", report.offset_ms, 0),
    )
    for name, spread, digits in rows:
        values = (spread.low, spread.p5, spread.median, spread.p95, spread.high, spread.mean)
        table.add_row(name, str(spread.n), *(f"{value:.{digits}f}" for value in values))
    console.print(table)
    if report.other_decoder:
        console.print(f"{report.other_decoder} segments decode to other last bits here (another Opus decoder)")
    if report.heard:
        _print_heard(console, report.heard)
    for fault in report.faults[:_FAULTS_SHOWN]:
        console.print(f"fault: {fault}", style="red", soft_wrap=True)
    if len(report.faults) > _FAULTS_SHOWN:
        console.print(f"and {len(report.faults) - _FAULTS_SHOWN} more faults")
    console.print("everything is right" if report.ok else f"{len(report.faults)} faults")


def _print_heard(console: Console, heard: tuple[Heard, ...]) -> None:
    from rich.table import Table

    from dsbeval.speech.wer import rates, worst

    for title, group in (("voice", rates(heard, lambda h: h.voice)), ("role", rates(heard, lambda h: h.role))):
        table = Table(title, "words", "errors", "WER %")
        for rate in group:
            table.add_row(rate.group, str(rate.words), str(rate.errors), f"{100 * rate.rate:.1f}")
        console.print(table)
    total = rates(heard, lambda _: "all")[0]
    console.print(f"all: {total.errors} errors in {total.words} words, WER {100 * total.rate:.1f} %")
    console.print(f"the worst {_WORST_SHOWN}:")
    for h in worst(heard, _WORST_SHOWN):
        console.print(f"  {h.key} {h.name} {h.voice} {h.errors}/{h.words}: {h.text} | {h.heard}", soft_wrap=True)
