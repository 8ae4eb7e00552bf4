"""The command ``dsbeval report``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from dsbeval.errors import OptionError
from reports.html.modes import AUDIO, Audio

if TYPE_CHECKING:
    from dsbeval.results import RunFolder

Progress = Callable[[str, int, int], None]


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), default=None, help="folder of the report")
@click.option(
    "--audio",
    type=click.Choice(AUDIO),
    default="portable",
    help="portable (default): small clips; linked: the recordings themselves, as links that cost no space on this disk; none",
)
@click.option(
    "--with-run",
    "with_runs",
    multiple=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="earlier run whose conversations of two agents join the matrices; may be repeated",
)
@click.option("--allow-unlike", is_flag=True, help="put runs side by side that were not made alike")
@click.option("--markdown", "as_markdown", is_flag=True, help="print a summary in Markdown, and make no report")
def report(
    runs: tuple[Path, ...],
    output: Path | None,
    audio: str,
    with_runs: tuple[Path, ...],
    allow_unlike: bool,
    as_markdown: bool,
) -> None:
    """Make the HTML report of RUN in RUN/report, or of several runs side by side.

    Several are compared with the first; their report lies in the last one's report/against-FIRST. Runs that differ in pack,
    protocol, thresholds, judge or acoustics are refused.
    """
    from dsbeval.dyadic.runs import join_earlier
    from dsbeval.results import RunFolder
    from reports.html.comparison import compare_runs
    from reports.html.site import Run, write_report
    from reports.markdown import markdown

    if len(runs) > 1 and with_runs:
        raise OptionError("--with-run: is for the report of one run; leave it out where runs are compared")
    folders = [RunFolder.open(run) for run in runs]
    earlier = join_earlier(with_runs, folders[0]) if with_runs else []
    if len(runs) == 1 and not earlier:
        check_joined(folders[0])
    found = [Run.read(folder, name, earlier) for folder, name in zip(folders, names_of(runs), strict=True)]
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


def check_joined(folder: RunFolder) -> None:
    """Raise :class:`OptionError` where a run's figures have earlier runs in them that were not named: they would be lost."""
    try:
        known = json.loads((folder.report / "summary.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    joined = [str(one["run"]) for one in known.get("dyadic", {}).get("with_runs", ())]
    if joined:
        raise OptionError(f"{folder.root}: its figures have {', '.join(joined)} in them; name each with --with-run DIR")


def names_of(runs: tuple[Path, ...]) -> list[str]:
    """Return what runs are called: their folders' names, numbered where these are alike."""
    names = [run.resolve().name for run in runs]
    return [name if names.count(name) == 1 else f"{name} ({k})" for k, name in enumerate(names, 1)]
