"""``dsbeval sweep``: what the thresholds do to the order of models."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from dsbeval.errors import OptionError, RunError

PICTURES = (".png", ".svg", ".pdf")


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default=None, help="heat map to draw (.png, .svg, .pdf)"
)
@click.option("--json", "as_json", is_flag=True, help="print the whole sweep as JSON")
@click.option("--list", "list_all", is_flag=True, help="list every verdict inside the VAD's error")
@click.option("--allow-unlike", is_flag=True, help="sweep runs that were not made alike")
def sweep(runs: Sequence[Path], output: Path | None, as_json: bool, list_all: bool, allow_unlike: bool) -> None:
    """Give the Entailment Gap of RUNS at 180 settings of the thresholds, and how far their order hangs on them.

    From stored measurements: no model, no audio. Conversations of two agents are swept by their own thresholds.
    """
    from dsbeval.compare.alike import check_alike
    from dsbeval.dyadic.robustness import sweep as sweep_dyads
    from dsbeval.dyadic.rows import validate
    from dsbeval.ifeval.sweep import sweep as swept
    from dsbeval.results import RunFolder
    from reports.sweep import draw, render, render_dyads

    if output is not None and output.suffix not in PICTURES:
        raise OptionError(f"-o: {output}: a picture ends in {', '.join(PICTURES)}")
    folders = [RunFolder.open(run) for run in runs]
    prints = [folder.fingerprint() for folder in folders]
    for run, fingerprint in zip(runs[1:], prints[1:], strict=True):
        if not allow_unlike:
            check_alike(prints[0], fingerprint, (str(runs[0]), str(run)))
    rows = dict(zip(labels(runs, prints), (folder.rows() for folder in folders), strict=True))
    dyads = [row for own in rows.values() for row in own if row["item"] == "dyad"]
    floors = {label: found for label, own in rows.items() if (found := [row for row in own if row["item"] == "floor"])}
    if not floors and not dyads:
        raise RunError(f"{runs[0]}: has no rows with a verdict; run some cases first")
    out: dict[str, Any] = {}
    lines: list[str] = []
    if floors:
        out = swept(floors)
        lines += render(out, list_all)
    if dyads:
        out["dyadic"] = sweep_dyads(validate(dyads))
        lines += render_dyads(out["dyadic"])
    if output is not None:
        gaps = [gap for cells in out["cells"].values() for gap in cells["gap"].values()] if floors else []
        if not any(gap is not None for gap in gaps):
            raise RunError(
                f"-o: {output}: no run has verdicts at L1 and at L2, so there is no gap to draw; leave -o out"
            )
        draw(out, output)
        lines.append(f"heat map: {output}")
    if as_json:
        lines = [json.dumps(out, ensure_ascii=False, indent=1, allow_nan=False)]
    for line in lines:
        click.echo(line)


def labels(runs: Sequence[Path], prints: Sequence[dict[str, Any]]) -> list[str]:
    """Return what runs are called: by their agents where these differ, else with the checkpoint, else by their folders."""
    agents = [str(one.get("agent", "?")).rpartition("/")[2] for one in prints]
    with_checkpoint = [
        f"{agent} {checkpoint['name']}" if (checkpoint := one.get("checkpoint")) else agent
        for agent, one in zip(agents, prints, strict=True)
    ]
    folders = [run.resolve().name for run in runs]
    for names in (agents, with_checkpoint, folders):
        if len(set(names)) == len(names):
            return names
    return [str(run) for run in runs]
