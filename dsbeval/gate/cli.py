"""``dsbeval gate``: the decision of ``pytest --gate`` over runs that are there already."""

from __future__ import annotations

import json
from pathlib import Path

import click

from dsbeval.errors import DsbevalError

SOURCE = click.Path(path_type=Path)
REFUSED = 4
"""Exit status where nothing could be judged because of what was asked, as pytest's for a usage error: 2 has a meaning here."""


@click.command()
@click.argument("run", type=SOURCE)
@click.option("--baseline", type=SOURCE, default=None, help="run folder or baseline.json to compare with")
@click.option("--rules", type=SOURCE, default=None, help="TOML file of rules (default: the built-in ones)")
@click.option("--max-errors", default=None, metavar="N", help="most errors: a number of items, or a share (2%)")
@click.option("--allow-unlike", is_flag=True, help="compare runs that were not made alike")
@click.option("--json", "as_json", is_flag=True, help="print the decision as JSON")
@click.option("--markdown", "as_markdown", is_flag=True, help="print it as Markdown, for a comment on a change")
@click.pass_context
def gate(
    ctx: click.Context,
    run: Path,
    baseline: Path | None,
    rules: Path | None,
    max_errors: str | None,
    allow_unlike: bool,
    as_json: bool,
    as_markdown: bool,
) -> None:
    """Judge RUN, a finished run, as pytest --gate does. Exit status: 0 pass, 1 regression, 2 not enough evidence, 4 refused."""
    from dsbeval.compare.side import read_side
    from dsbeval.errors import OptionError
    from dsbeval.gate.decide import MaxErrors, decide
    from dsbeval.gate.rules import read_rules
    from reports import gate_text

    try:
        found = read_rules(rules)
        if baseline is None and found.rule:
            raise OptionError("--rules: they need --baseline, a run folder or a file of dsbeval baseline")
        decision = decide(
            found,
            None if baseline is None else read_side(baseline),
            read_side(run),
            max_errors=None if max_errors is None else MaxErrors.parse(max_errors),
            allow_unlike=allow_unlike,
        )
    except DsbevalError as error:
        click.echo(f"dsbeval: {error}", err=True)
        ctx.exit(REFUSED)
    if as_json:
        click.echo(json.dumps(gate_text.as_dict(decision), ensure_ascii=False, indent=1, allow_nan=False))
    elif as_markdown:
        click.echo(gate_text.markdown(decision), nl=False)
    else:
        for line in gate_text.render(decision):
            click.echo(line)
    ctx.exit(decision.status)
