"""``dsbeval env`` and ``dsbeval doctor``: a model's environment, and what is missing before it can run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from dsbeval.doctor import Finding, can_run, examine
from dsbeval.environments import environment_of
from dsbeval.errors import ModelsError
from dsbeval.known import known_agents
from dsbeval.loading import parse_args
from dsbeval.models import needs_of
from dsbeval.models_table import table
from dsbeval.placing import Models, Placed

MARKS = {"ok": "ok      ", "missing": "MISSING ", "note": "note    "}
WHERE = {"cpu": "CPU", "gpu": "GPU", "service": "a service", "calibration": "an instrument"}


@click.command()
@click.argument("name")
@click.option("--print", "only_print", is_flag=True, help="print the commands and do nothing")
@click.option("--python", default=None, metavar="PYTHON", help="interpreter that it is made with")
@click.option(
    "--folder", type=click.Path(path_type=Path), default=None, metavar="DIR", help="where (default: envs/NAME)"
)
def env(name: str, only_print: bool, python: str | None, folder: Path | None) -> None:
    """Make the environment of the model NAME from the pinned requirements beside its adapter.

    One that is there and whole is left as it is; one that was broken off, or made from other requirements, is made anew.
    """
    environment = environment_of(needs_of(name), python, folder)
    if only_print:
        for command in environment.commands:
            click.echo(shlex.join(command))
        return
    if environment.whole and not environment.lacking():
        click.echo(f"{environment.folder} is there and whole")
    else:
        environment.make(click.echo)
        click.echo(f"{environment.folder} is made")
    click.echo(f"run it there with: --model={name} --model-arg host.python={environment.python}")
    click.echo(f'or in models.toml: [{name}] and under it: python = "{environment.python}"')


@click.command()
@click.argument("name", required=False)
@click.option("--models", default=None, metavar="FILE", help="models.toml (default: the one in this folder, if any)")
@click.option("--model-arg", "args", multiple=True, metavar="K=V", help="as of a run; may be repeated")
@click.option("--checkpoint", default=None, metavar="PATH", help="as of a run")
@click.option("--markdown", is_flag=True, help="print the table of docs/models.md")
@click.pass_context
def doctor(
    ctx: click.Context,
    name: str | None,
    models: str | None,
    args: Sequence[str],
    checkpoint: str | None,
    markdown: bool,
) -> None:
    """Say what is there and what is missing before a run of the model NAME; without NAME, what each model needs.

    Exit status: 0 when NAME can run, 1 when something is missing.
    """
    if markdown:
        click.echo(table())
        return
    file = Models.find(models, Path.cwd())
    if name is None:
        if args or checkpoint:
            raise ModelsError("dsbeval doctor: --model-arg and --checkpoint are for one model; name it")
        for one in dict.fromkeys([*known_agents(), *file.names]):
            _tell_briefly(file.place(one))
        return
    placed = file.place(name, parse_args(list(args)), checkpoint)
    findings = examine(placed)
    _tell_head(placed)
    for finding in findings:
        click.echo(f"  {MARKS[finding.state]}{finding.subject}: {finding.text}")
    well = can_run(findings)
    click.echo(f"{name} can run" if well else f"{name} cannot run: {_missing(findings)}")
    ctx.exit(0 if well else 1)


def _tell_head(placed: Placed) -> None:
    needs = placed.needs
    if needs is None:
        click.echo(f"{placed.name}: {placed.spec}")
        return
    click.echo(f"{placed.name}: {needs.summary}")
    click.echo(f"  licence: {needs.licence}")
    click.echo(f"  verified: {needs.verified}")
    click.echo(f"  not verified: {needs.not_verified}")


def _tell_briefly(placed: Placed) -> None:
    findings = examine(placed)
    needs = placed.needs
    click.echo(f"{placed.name}: {needs.summary if needs else placed.spec}")
    if needs is not None:
        parts = [f"runs on {WHERE[needs.runs]}" if needs.runs in ("cpu", "gpu") else f"is {WHERE[needs.runs]}"]
        parts += [f"{needs.memory_gib:g} GiB"] if needs.memory_gib else []
        parts += [f"weights {', '.join(needs.weights)}"] if needs.weights else []
        parts += [f"key {needs.key_env}"] if needs.key_env else []
        parts += [f"address --model-arg {needs.address_arg}"] if needs.address_arg else []
        parts += [f"environment dsbeval env {placed.spec}"] if needs.requirements else []
        click.echo(f"    needs: {'; '.join(parts)}")
    click.echo("    can run" if can_run(findings) else f"    cannot run here: {_missing(findings)}")


def _missing(findings: Sequence[Finding]) -> str:
    what = [finding for finding in findings if finding.state == "missing"]
    return "; ".join(f"{one.subject}: {one.text}" for one in what if one.subject != "environment") or "; ".join(
        one.text for one in what
    )
