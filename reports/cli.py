"""The command ``dsbeval report``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import click

from reports.html.clips import AUDIO, Audio

Progress = Callable[[str, int, int], None]


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), default=None, help="folder of the report")
@click.option(
    "--audio",
    type=click.Choice(AUDIO),
    default="portable",
    help="portable (default): clips in the report, so that its folder can go anywhere; "
    "linked: play the recordings of the run folder; none",
)
@click.option("--allow-unlike", is_flag=True, help="put runs side by side that were not made alike")
@click.option("--markdown", "as_markdown", is_flag=True, help="print a summary in Markdown, and make no report")
def report(runs: tuple[Path, ...], output: Path | None, audio: str, allow_unlike: bool, as_markdown: bool) -> None:
    """Make the HTML report of RUN in RUN/report, or of several runs side by side.

    Several are compared with the first; their report lies in the last one's report/against-FIRST. Runs that differ in pack,
    protocol, thresholds, judge or acoustics are refused.
    """
    from dsbeval.results import RunFolder
    from reports.html.comparison import compare_runs
    from reports.html.site import Run, write_report
    from reports.markdown import markdown

    found = [Run.read(RunFolder.open(run), name) for run, name in zip(runs, names_of(runs), strict=True)]
    if as_markdown:
        for one in found:
            click.echo(markdown(one.summary, one.name), nl=False)
        return
    out, comparison = found[0].folder.report, None
    if len(found) > 1:
        comparison = compare_runs([(run.name, run.folder, run.summary) for run in found], allow_unlike=allow_unlike)
        out = found[-1].folder.report / f"against-{found[0].name}"
    with _progress() as progress:
        page = write_report(found, output or out, audio=cast(Audio, audio), comparison=comparison, progress=progress)
    click.echo(f"report: {page}")


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """Show how far the pages are, where somebody looks."""
    if not sys.stderr.isatty():
        yield None
        return

    def show(name: str, done: int, total: int) -> None:
        click.echo(f"\r{name}: {done} of {total} recordings", nl=done == total, err=True)

    yield show


def names_of(runs: tuple[Path, ...]) -> list[str]:
    """Return what runs are called: their folders' names, numbered where these are alike."""
    names = [run.resolve().name for run in runs]
    return [name if names.count(name) == 1 else f"{name} ({k})" for k, name in enumerate(names, 1)]
