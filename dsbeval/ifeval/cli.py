"""The command group ``dsbeval pack``: what a pack is, and whether it is fit for use."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from dsbeval.errors import DsbevalError
from dsbeval.ifeval.pack import DEFAULT_PACK, LEVELS, Pack, load_pack

CLOSEST = 8
"""How many of the most similar pairs are printed."""


@click.group("pack")
def pack() -> None:
    """The data of a benchmark: roles, probes and conversations."""


@pack.command("check")
@click.option(
    "--pack",
    "root",
    type=click.Path(path_type=Path),
    default=DEFAULT_PACK,
    help="Folder of the pack. Default: the pack of the suite.",
)
def check(root: Path) -> None:
    """Run every gate over a pack. Exit status 0: passed, 1: a gate found something, 2: the pack does not load."""
    from dsbeval.ifeval import conversation_gates, gates  # not for a listing of commands: it imports numpy

    try:
        loaded = load_pack(root.resolve())
        _print_roles(loaded)
        _print_counts(loaded)
        _print_pairs(loaded)
        findings = gates.check(loaded)
    except DsbevalError as error:
        click.echo(str(error), err=True)
        sys.exit(2)
    for gate in dict.fromkeys(finding.gate for finding in findings):
        click.echo(f"\n{gate}")
        for finding in (f for f in findings if f.gate == gate):
            click.echo(f"  {'FAIL' if finding.blocking else 'note'}  {finding}")
    failed = sum(finding.blocking for finding in findings)
    notes = len(findings) - failed
    click.echo(
        f"\n{len(gates.PACK_GATES) + len(conversation_gates.RECORDING_GATES)} gates: {failed} findings, {notes} notes"
    )
    sys.exit(1 if failed else 0)


def _print_roles(loaded: Pack) -> None:
    from dsbeval.ifeval.leakage import leakage

    rows = [leakage(role) for role in loaded.roles.values()]
    _table(
        ("role", "persona words", "Jaccard", "shared content words"),
        [(row.role, row.words, f"{row.jaccard:.3f}", ", ".join(row.shared) or "-") for row in rows],
    )
    if rows:
        click.echo(f"mean Jaccard {sum(row.jaccard for row in rows) / len(rows):.3f}")


def _print_counts(loaded: Pack) -> None:
    cases = loaded.cases.values()
    levels, actions = Counter(case.level for case in cases), Counter(case.action for case in cases)
    table = Counter((case.action, case.level) for case in cases)
    rows = [(a.value, *(table[a, level] for level in LEVELS), n) for a, n in actions.most_common()]
    click.echo()
    _table(("base action", *LEVELS, "all"), [*rows, ("all", *(levels[level] for level in LEVELS), len(cases))])
    click.echo(f"{len(loaded.recordings)} distinct user recordings")


def _print_pairs(loaded: Pack) -> None:
    from dsbeval.ifeval.similarity import NEAR_DUPLICATE, pairs

    click.echo(f"\nclosest pairs (limit {NEAR_DUPLICATE})")
    closest = pairs(loaded)[:CLOSEST]
    _table(("like", "turn", "first", "second"), [(f"{p.similarity:.3f}", p.turn, p.first, p.second) for p in closest])


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    cells = [tuple(head), *(tuple(str(value) for value in row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
