"""The options of a command line as settings: checked once, before anything is recorded."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from dsbeval.dyadic.protocol import parse_tasks
from dsbeval.dyadic.rows import MAIN_TASKS, TASKS
from dsbeval.dyadic.scenarios import DEFAULT_ROOT as DYADS_ROOT
from dsbeval.dyadic.textpair import TASKS as TEXT_TASKS
from dsbeval.errors import OptionError
from dsbeval.ifeval.pack import load_pack
from dsbeval.loading import parse_args
from dsbeval.placing import HOST
from dsbeval.replay.grid import DYADS, IFEVAL, Grid
from dsbeval.speech.recognise import check_recogniser
from reports import writing
from reports.placing import DEFAULT_MODEL, placement_of
from reports.replaying import replayed
from reports.settings import RUN_DIR, Settings


def read_settings(config: pytest.Config) -> Settings:
    """Check the options and return them. Raises :class:`~dsbeval.errors.DsbevalError` in one line."""
    get = config.getoption
    partner_args = parse_args(get("--partner-arg"), "--partner")
    if get("--text-only"):
        writing.check_options(config, DEFAULT_MODEL, parse_args(get("--model-arg")), partner_args)
    placement = placement_of(config)
    model, model_args = placement.model.name, dict(placement.model.args)
    for name, what in (("--limit", "cases"), ("--sample", "conversations"), ("--trials", "trials")):
        if get(name) is not None and get(name) < 1:
            raise OptionError(f"{name}: {get(name)} is not a number of {what}; give 1 or more")
    run_dir = _run_dir(config, model)
    grid = replayed(model, model_args)
    settings = Settings(
        placement=placement,
        pack=Path(get("--pack")).resolve(),
        levels=_names(get("--levels")),
        roles=_names(get("--roles")),
        probes=_names(get("--probes")),
        sample=get("--sample"),
        tier=get("--tier"),
        trials=get("--trials"),
        limit=get("--limit"),
        seed=get("--seed"),
        run_dir=run_dir,
        resume=get("--resume"),
        audio_format=get("--audio-format"),
        report=get("--report"),
        judge=get("--judge"),
        judge_base_url=get("--judge-base-url"),
        price=get("--price"),
        pas_pass=get("--pas-pass"),
        latency=get("--latency"),
        acoustics=get("--acoustics"),
        dyadic=grid.holds(DYADS) if grid is not None else _asks_for_dyads(config),
        partner_args={
            key: value for key, value in partner_args.items() if key != "device" and not key.startswith(HOST)
        },
        tasks=_default_tasks(config, grid) if get("--tasks") is None else parse_tasks(get("--tasks")),
        repeats=get("--repeats"),
        window_s=get("--window"),
        ifeval=grid is None or grid.holds(IFEVAL),
        text_only=get("--text-only"),
        garble_watch=(get("--asr") or "pocketsphinx") if _is_watched(config, grid) else None,
        with_runs=() if hasattr(config, "workerinput") else _paths(config, get("--with-run")),
    )
    if settings.trials > 1 and all(path.is_relative_to(DYADS_ROOT) for path in writing.named_paths(config)):
        raise OptionError(
            f"--trials: is for cases/ifeval; conversations of two agents are repeated by --repeats {settings.trials}"
        )
    if settings.partners or settings.replay is not None or get("--tasks") is not None or settings.repeats < 1:
        _ = settings.dyads
    _ = settings.judge_id
    if settings.garble_watch is not None:
        check_recogniser(settings.garble_watch)
    elif get("--asr") is not None:
        raise OptionError("--asr: nothing is recognised without --garble-watch; add it, or leave --asr out")
    if settings.with_runs and not settings.dyadic:
        raise OptionError("--with-run: no conversations of two agents are asked for; name cases/dyadic or a --partner")
    _ = settings.earlier
    if not hasattr(config, "workerinput"):
        placement.check()
    if settings.levels or settings.roles or settings.probes:
        settings.cases(load_pack(settings.pack))
    return settings


def _is_watched(config: pytest.Config, grid: Grid | None) -> bool:
    """Return whether conversations are watched for garble: as asked, or else where a model of the run is known to need it."""
    get = config.getoption
    if get("--garble-watch") is not None:
        return bool(get("--garble-watch"))
    if grid is not None or get("--text-only") or not _asks_for_dyads(config):
        return False
    placement = placement_of(config)
    needs = (one.needs for one in (placement.model, *placement.partners))
    return any(one.garble_watch for one in needs if one is not None)


def _paths(config: pytest.Config, names: Iterable[str]) -> tuple[Path, ...]:
    return tuple(Path(config.invocation_params.dir, name) for name in names)


def _asks_for_dyads(config: pytest.Config) -> bool:
    """Return whether the command line names ``cases/dyadic``, a partner or a task."""
    if config.getoption("--partner") or config.getoption("--tasks") is not None:
        return True
    return any(path.is_relative_to(DYADS_ROOT) for path in writing.named_paths(config))


def _default_tasks(config: pytest.Config, grid: Grid | None) -> tuple[str, ...]:
    if config.getoption("--text-only"):
        return TEXT_TASKS
    return MAIN_TASKS if grid is None else TASKS


def _run_dir(config: pytest.Config, model: str) -> Path:
    """Return the run folder: the controller's for a worker, the one that is named, or a new one."""
    handed = getattr(config, "workerinput", {}).get(RUN_DIR)
    if handed is not None:
        return Path(handed)
    asked = config.getoption("--run-dir")
    if asked is None:
        stamp = time.strftime("%Y%m%d-%H%M%S")
        label = "".join(c if c.isalnum() else "-" for c in model.rpartition("/")[2]).strip("-")
        return Path(config.rootpath, "runs", f"{stamp}-{label}")
    path = Path(config.invocation_params.dir, asked).resolve()
    if (path / "run.json").exists() and not config.getoption("--resume"):
        raise OptionError(f"--run-dir: {asked} already holds a run; add --resume to go on, or name another folder")
    return path


def _names(value: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in value.split(",") if name.strip())
