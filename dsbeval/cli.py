"""The few things that are not a test run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Never

import click

from dsbeval import __version__
from dsbeval.errors import DsbevalError


class _OneLine(click.Group):
    """A group whose commands end in one line, not a traceback, when the user can mend what is wrong."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except DsbevalError as error:
            return self._end(ctx, str(error))
        except OSError as error:
            if error.filename is None:  # no file of the user's
                raise
            return self._end(ctx, f"{error.filename}: {error.strerror}")

    def _end(self, ctx: click.Context, told: str) -> Never:
        click.echo(f"dsbeval: {told}", err=True)
        ctx.exit(2)


@click.group(cls=_OneLine, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dsbeval")
def main() -> None:
    """Evaluate full-duplex voice agents. A test run itself is: pytest cases/ --model=NAME."""


@main.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--set", "settings", multiple=True, metavar="ACTION.THRESHOLD=VALUE", help="another threshold; may be repeated"
)
@click.option(
    "--with-run",
    "with_runs",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="an earlier run whose conversations of two agents join the matrices, by the rows that lie there; may be repeated",
)
def score(run: Path, settings: Sequence[str], with_runs: Sequence[Path]) -> None:
    """Derive verdicts and summary of RUN again, from its recordings and judgements alone.

    Without --set it rewrites report/summary.json; with --set it writes report/rescored.json beside it, so that the
    run's own result stays.
    """
    from dsbeval.dyadic.runs import join_earlier
    from dsbeval.dyadic.scenarios import load_scenarios
    from dsbeval.ifeval.score import score_run
    from dsbeval.ifeval.verifiers import parse_overrides
    from dsbeval.judge.dyads import conversation_ids, dyad_rows
    from dsbeval.results import RunFolder
    from reports.summary import build
    from reports.tables import render

    folder = RunFolder.open(run)
    overrides = parse_overrides(list(settings))
    fingerprint = folder.fingerprint()
    earlier = join_earlier(with_runs, folder)
    rows = score_run(folder, overrides) + [row for row in folder.rows() if row["item"] == "persona"]
    if conversation_ids(folder):
        rows += dyad_rows(folder, load_scenarios(), fingerprint["judge"]["id"])
    thresholds = {action: dict(row) for action, row in fingerprint["thresholds"].items()}
    for action, row in overrides.items():
        thresholds[str(action)].update(row)
    changed = {"thresholds_set": sorted(settings)} if settings else {}
    summary = build(folder, rows, {**fingerprint, "thresholds": thresholds, **changed}, earlier)
    path = folder.write_summary(summary, "rescored.json" if settings else "summary.json")
    for line in render(summary):
        click.echo(line)
    click.echo(f"summary: {path}")


@main.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("case")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=None, help="picture to write (.png or .svg)")
def plot(run: Path, case: str, output: Path | None) -> None:
    """Draw the timeline of one CASE of RUN: both channels, speech, scored window, limit, text."""
    from dsbeval.results import RunFolder
    from reports.timeline import draw_case

    folder = RunFolder.open(run)
    path = output or folder.report / "timelines" / f"{case}.png"
    draw_case(folder.recordings, case, path)
    click.echo(str(path))


def _attach() -> None:
    from dsbeval.compare.cli import baseline, compare
    from dsbeval.gate.cli import gate
    from dsbeval.ifeval.cli import pack
    from dsbeval.ifeval.noise_cli import noise
    from dsbeval.ifeval.sweep_cli import sweep
    from dsbeval.judge.cli import agree, judge
    from dsbeval.models_cli import doctor, env
    from dsbeval.speech.author.cli import author
    from dsbeval.speech.cli import speech
    from reports.cli import report

    speech.add_command(author)
    main.add_command(agree)
    main.add_command(baseline)
    main.add_command(compare)
    main.add_command(doctor)
    main.add_command(env)
    main.add_command(gate)
    main.add_command(judge)
    main.add_command(noise)
    main.add_command(pack)
    main.add_command(report)
    main.add_command(speech)
    main.add_command(sweep)


_attach()

if __name__ == "__main__":
    sys.exit(main())
