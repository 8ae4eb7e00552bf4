"""``dsbeval noise``: which effects of the prompt are larger than those of an agent that does not hear it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from dsbeval.errors import RunError


@click.command()
@click.argument("control", type=click.Path(path_type=Path))
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="print floor and effects as JSON")
@click.option("--allow-unlike", is_flag=True, help="hold against runs that were not made alike")
def noise(control: Path, runs: Sequence[Path], as_json: bool, allow_unlike: bool) -> None:
    """Give the noise floor of the effects from CONTROL, a run of a persona-blind agent, and flag the effects of RUNS within it.

    A control that takes its seed needs --trials 2 or more. Run folders or baselines.
    """
    from dsbeval.compare.alike import check_alike
    from dsbeval.compare.side import read_side
    from dsbeval.ifeval.noise import cleared, floor_of

    side = read_side(control)
    if not any(row["item"] == "floor" and "passed" in row for row in side.rows):
        raise RunError(
            f"{control}: has no verdicts of DSB-IFEval; run an agent that takes no prompt: "
            "pytest cases/ifeval --model=NAME --levels=L1,L2,L3 --trials 3"
        )
    floor = floor_of(side.rows)
    found: dict[str, Any] = {"control": {"label": str(control), "agent": side.agent, **floor}, "runs": {}}
    if floor["reason"] is not None and not any(floor[cells]["largest"] for cells in ("all", "reactive")):
        raise RunError(f"{control}: {floor['reason']}")
    for run in runs:
        other = read_side(run)
        if not allow_unlike:
            check_alike(side.fingerprint, other.fingerprint, (str(control), str(run)))
        found["runs"][str(run)] = {"agent": other.agent, **cleared(floor, other.rows)}
    for line in (
        [json.dumps(found, ensure_ascii=False, indent=1, allow_nan=False)] if as_json else _lines(found, control)
    ):
        click.echo(line)


def _lines(found: Mapping[str, Any], control: Path) -> Iterator[str]:
    from dsbeval.judge.tables import table

    own = found["control"]
    yield f"control {own['agent']} ({control}), {own['trials']} trial{'s' if own['trials'] > 1 else ''}"
    if _takes_prompt(control):
        yield "  its recordings say that it takes its prompt: what it does is no noise unless it does not act on it"
    if own["reason"] is not None:
        yield f"  no floor: {own['reason']}; the control's own effects stand for it"
    rows = [
        (
            name,
            cells,
            _points(own[cells]["effects"][name]),
            _points(own[cells]["floor"][name], ""),
            _sizes(own[cells]["n"][name]),
        )
        for cells in ("reactive", "all")
        for name in own[cells]["floor"]
    ]
    yield from table(("noise floor, points", "cells", "control's own", "floor", "n"), rows)
    for run, told in found["runs"].items():
        yield ""
        effects = [
            (name, cells, _points(one["value"]), _points(one["floor"], ""), _sizes(one["n"]), _flag(one["clears"]))
            for cells in ("reactive", "all")
            for name, one in told[cells].items()
        ]
        yield from table((f"{told['agent']} ({run})", "cells", "effect", "floor", "n", ""), effects)


def _points(value: float | None, sign: str = "+") -> str:
    return "-" if value is None else f"{100 * value:{sign}.1f}"


def _sizes(n: Sequence[int]) -> str:
    return f"{n[0]}, {n[1]}"


def _flag(clears: bool | None) -> str:
    return {True: "clears the noise", False: "WITHIN THE NOISE", None: "-"}[clears]


def _takes_prompt(run: Path) -> bool:
    """Whether the recordings of a run say that its agent takes a system prompt; a baseline has none."""
    path = next(iter(sorted((run / "recordings").glob("IFD-*.rec.json"))), None)
    if path is None:
        return False
    try:
        return bool(json.loads(path.read_text(encoding="utf-8")).get("prompt_taken", False))
    except ValueError:
        return False
