"""``dsbeval compare`` and ``dsbeval baseline``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from dsbeval.errors import OptionError, RunError

SOURCE = click.Path(path_type=Path)


@click.command()
@click.argument("base", type=SOURCE)
@click.argument("new", type=SOURCE)
@click.option("--json", "as_json", is_flag=True, help="print the whole comparison as JSON")
@click.option("--markdown", "as_markdown", is_flag=True, help="print it as Markdown, for a comment on a change")
@click.option("--allow-unlike", is_flag=True, help="compare runs that were not made alike")
def compare(base: Path, new: Path, as_json: bool, as_markdown: bool, allow_unlike: bool) -> None:
    """Compare two runs: run folders, or baselines made with dsbeval baseline.

    Every metric with its change, interval and test; the cases that flipped; the margins that moved. Runs that differ in pack,
    protocol, thresholds, judge or acoustics are refused.
    """
    from dsbeval.compare.compare import compare as compared
    from dsbeval.compare.side import read_side
    from reports.comparison import markdown, render

    if as_json and as_markdown:
        raise OptionError("--json and --markdown: give one of them")
    found = compared(read_side(base), read_side(new), allow_unlike=allow_unlike)
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False, indent=1, allow_nan=False))
    elif as_markdown:
        click.echo(markdown(found), nl=False)
    else:
        for line in render(found):
            click.echo(line)


@click.command()
@click.argument("run", type=SOURCE)
@click.option("-o", "--output", type=SOURCE, required=True, help="file to write")
def baseline(run: Path, output: Path) -> None:
    """Write what a comparison needs of RUN into one small file, to be committed: rows and fingerprint, no audio."""
    from dsbeval.compare.side import side_of_run, write_baseline
    from dsbeval.results import RunFolder

    side = side_of_run(RunFolder.open(run), run.name)
    if not any(row["outcome"] in ("passed", "failed") for row in side.rows):
        raise RunError(f"{run}: has no rows with a verdict, so there is nothing to compare with; run its cases first")
    write_baseline(side, output)
    click.echo(f"{output}: {len(side.rows)} rows of {len(side.cases)} cases, {output.stat().st_size / 1024:.0f} KiB")
