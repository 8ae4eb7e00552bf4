"""The command ``dsbeval speech author``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from dsbeval.errors import OptionError, near

WORK = "authoring"


@click.command("author")
@click.option("--role", required=True, metavar="ID", help="Role of the other party, such as R3.")
@click.option("--probe", required=True, metavar="ID", help="Probe, in full or short: R3_A.")
@click.option(
    "--instance",
    "instances",
    required=True,
    multiple=True,
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of the new instance; may be repeated.",
)
@click.option("--provider", required=True, metavar="NAME", help="Protocol of the service: openai or anthropic.")
@click.option("--base-url", metavar="URL", help="A server of your own that speaks the protocol.")
@click.option("--model", metavar="ID", help="Model that writes and criticises. Needed with --base-url.")
@click.option(
    "--fallback-model", metavar="ID", help="Model of the last two tries. With --base-url the same as --model."
)
@click.option("--critic-model", metavar="ID", help="Model that criticises. Default: --model.")
@click.option("--situation", metavar="TEXT", help="What the user is there for; the writer finds one without it.")
@click.option(
    "--pack",
    "root",
    type=click.Path(path_type=Path),
    default=Path("my-pack"),
    show_default=True,
    help="Folder of your pack; made when it is missing.",
)
@click.option("--work", type=click.Path(path_type=Path), help=f"Folder of state and log. Default: {WORK} in the pack.")
@click.option(
    "--key-env", metavar="NAME", help="Environment variable with the key. With --base-url none is sent without it."
)
@click.option(
    "--max-tokens", type=click.IntRange(min=1), default=1500, show_default=True, help="Output tokens a reply."
)
@click.option(
    "--timeout", type=click.FloatRange(min=0, min_open=True), default=120.0, show_default=True, help="Seconds."
)
@click.option(
    "--retries", type=click.IntRange(min=0), default=4, show_default=True, help="Repeats of a failed request."
)
@click.option("--restart", is_flag=True, help="Forget rejected tries and begin again. The log stays.")
def author(
    role: str,
    probe: str,
    instances: Sequence[int],
    provider: str,
    base_url: str | None,
    model: str | None,
    fallback_model: str | None,
    critic_model: str | None,
    situation: str | None,
    root: Path,
    work: Path | None,
    key_env: str | None,
    max_tokens: int,
    timeout: float,
    retries: int,
    restart: bool,
) -> None:
    """Have a language model write new instances of a probe, check them, and add them to your pack.

    Run the same command again after an interruption: it asks only what is missing. Exit status 0: all are in the pack,
    1: every try for one of them was rejected, 2: something has to be mended first.
    """
    from dsbeval.speech.author import ladder
    from dsbeval.speech.author.job import Job, run
    from dsbeval.speech.author.providers import PROVIDERS, Settings

    if provider not in PROVIDERS:
        raise OptionError(f"--provider: {provider!r} is not known; {near(provider, PROVIDERS)}")
    if base_url is not None and not base_url.startswith(("http://", "https://")):
        raise OptionError(f"--base-url: {base_url!r} is not an address; begin it with http:// or https://")
    if base_url is not None and model is None:
        raise OptionError("--base-url: say which of the server's models writes, with --model")
    kind = PROVIDERS[provider]
    writer = model or kind.default_model
    # Our own fallback only beside our own writer: another server may not have it.
    fallback = fallback_model or (kind.default_fallback if model is None else model)
    job = Job(
        root=root,
        work=work or root / WORK,
        role=role,
        probe=probe,
        instances=tuple(dict.fromkeys(instances)),
        situation=situation,
        models=ladder.Models(writer, fallback, critic_model or writer, max_tokens),
        restart=restart,
    )
    settings = Settings(base_url, key_env, timeout, retries)
    if not run(job, lambda: kind(settings), click.echo):
        sys.exit(1)
