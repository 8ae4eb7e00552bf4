"""``--text-only``: conversations of two text models in writing. What of the other options goes with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsbeval.dyadic.bridge import WINDOW_S
from dsbeval.dyadic.scenarios import DEFAULT_ROOT as DYADS_ROOT
from dsbeval.dyadic.textchat import check_text_model
from dsbeval.errors import OptionError

SPOKEN: dict[str, object] = {
    "--checkpoint": None,
    "--window": int(WINDOW_S),
    "--latency": "none",
    "--acoustics": "clean",
    "--garble-watch": None,
    "--replay": None,
}
"""Options that are about speech, and what they are where nobody gave them."""


def add_option(group: pytest.OptionGroup) -> None:
    """Declare the option."""
    group.addoption(
        "--text-only",
        action="store_true",
        help="cases/dyadic: --model and --partner are text models behind an OpenAI-compatible service "
        "(--model-arg base_url=URL), which talk in writing: 240 words, 20 turns",
    )


def named_paths(config: pytest.Config) -> list[Path]:
    """Return what the command line names, or pytest's own default."""
    return [Path(config.invocation_params.dir, str(arg).partition("::")[0]).resolve() for arg in config.args]


def check_options(
    config: pytest.Config, default: str, args: dict[str, object], partner_args: dict[str, object]
) -> None:
    """Raise what is wrong with the options of a run in writing, in one line. ``default`` is the agent where none is named."""
    if not all(path.is_relative_to(DYADS_ROOT) for path in named_paths(config)):
        raise OptionError("--text-only: only conversations of two can be had in writing; name cases/dyadic alone")
    for option, usual in SPOKEN.items():
        if config.getoption(option) != usual:
            raise OptionError(f"--text-only: {option} is about speech; leave it out")
    if config.getoption("--model") == default:
        raise OptionError(
            "--text-only: names no text model; add --model=NAME and, for a server of your own, --model-arg base_url=URL"
        )
    check_text_model(args)
    if config.getoption("--partner"):
        check_text_model(partner_args, "--partner")
