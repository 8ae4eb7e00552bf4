"""``--replay DIR``: a run whose recordings were made already. What of the other options it takes, and what it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dsbeval.dyadic.bridge import WINDOW_S
from dsbeval.dyadic.protocol import REPEATS
from dsbeval.errors import OptionError
from dsbeval.replay.grid import Grid

MODEL = "recorded"
MADE_ALREADY: dict[str, object] = {
    "--checkpoint": None,
    "--seed": 0,
    "--latency": "none",
    "--acoustics": "clean",
    "--partner": [],
    "--partner-arg": [],
    "--repeats": REPEATS,
    "--window": int(WINDOW_S),
    "--trials": 1,
    "--garble-watch": None,
    "--text-only": False,
}
"""Options that say how a recording is made, and what they are where nobody gave them."""


MEASURED_NOW = ("scenarios", "segments", "turn_taking")
"""What of conversations is of the replay and not of how they were recorded."""


def add_option(group: pytest.OptionGroup) -> None:
    """Declare the option."""
    group.addoption(
        "--replay",
        default=None,
        metavar="DIR",
        help="score, judge and report the recordings of DIR: a run folder, or one in the official layout",
    )


def read_model(config: pytest.Config, args: dict[str, object], default: str) -> tuple[str, dict[str, object]]:
    """Return the agent of a run and its arguments: with ``--replay`` the recordings are the agent.

    Raises :class:`OptionError` where that contradicts another option.
    """
    model, given = config.getoption("--model"), config.getoption("--replay")
    if given is None:
        return model, args
    if model not in (default, MODEL):
        raise OptionError(f"--replay: the recordings are the agent; leave --model={model} out")
    if args:
        raise OptionError(f"--replay: nothing is played; leave --model-arg {next(iter(args))} out")
    for option, usual in MADE_ALREADY.items():
        if config.getoption(option) != usual:
            raise OptionError(f"--replay: the recordings are made already; leave {option} out")
    return MODEL, {"replay": str(Path(config.invocation_params.dir, given).resolve())}


def replayed(model: str, args: dict[str, object]) -> Grid | None:
    """Return the grid of a run that replays one; an agent that plays one recording (``case``) is played like any other."""
    if model != MODEL or not args.get("replay") or args.get("case"):
        return None
    return Grid(Path(str(args["replay"])))


def overlaid(fingerprint: dict[str, Any], grid: Grid) -> dict[str, Any]:
    """Return the fingerprint of a replay: how its recordings were made, where their run says so, and what they are."""
    of = grid.of or {}
    made = {name: of.get(name) for name in ("checkpoint", "seed", "device", "process", "latency", "acoustics")}
    out = {**fingerprint, **made, "agent": MODEL, "agent_args": {}, "replay": grid.fingerprint()}
    if "dyadic" in fingerprint and grid.run is not None:
        known, now = grid.run.fingerprint().get("dyadic", {}), fingerprint["dyadic"]
        out["dyadic"] = {**known, **{name: now[name] for name in MEASURED_NOW if name in now and name in known}}
    return out
