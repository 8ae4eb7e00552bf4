"""The table of docs/models.md, a row a model, from the ``needs.toml`` files alone."""

from __future__ import annotations

from dsbeval.models import Needs, all_needs

HEAD = ("model", "checkpoint", "licence", "memory", "environment", "command", "verified here", "not verified")
COMMANDS = {
    "gpu": "pytest cases/ --model={name} --checkpoint={checkpoint} -n auto",
    "cpu": "pytest cases/ --model={name} -n 2",
    "calibration": "pytest cases/ifeval --model={name}",
}


def table() -> str:
    """Return the table in Markdown: every model that is not an instrument, in the order of the adapters."""
    rows = [HEAD, ("---",) * len(HEAD), *(_row(needs) for needs in all_needs().values() if needs.runs != "calibration")]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(needs: Needs) -> tuple[str, ...]:
    where = {"gpu": "GPU", "cpu": "CPU", "service": "the service's"}[needs.runs]
    return (
        f"`{needs.name}`: {needs.summary}" + ("" if needs.persona else " (takes no prompt)"),
        ", ".join(needs.weights) or "none",
        needs.licence,
        f"{needs.memory_gib:g} GiB, {where}" if needs.memory_gib else "-",
        f"`dsbeval env {needs.name}`" if needs.requirements else "dsbeval's own",
        f"`{_command(needs)}`",
        needs.verified,
        needs.not_verified,
    )


def _command(needs: Needs) -> str:
    if needs.runs != "service":
        return COMMANDS[needs.runs].format(name=needs.name, checkpoint=needs.checkpoint)
    address = f" --model-arg {needs.address_arg}=ADDRESS" if needs.address_arg and not needs.key_env else ""
    key = f"{needs.key_env}=... " if needs.key_env else ""
    return f"{key}pytest cases/ --model={needs.name}{address}"
