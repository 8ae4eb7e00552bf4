"""What a run was asked for: the command-line options, checked once, before anything is recorded."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from dsbeval.checkpoints import describe
from dsbeval.clock import LATENCIES
from dsbeval.dyadic import garble, textrun
from dsbeval.dyadic.bridge import LEAD_IN_S, WINDOW_S, WINDOWS_S
from dsbeval.dyadic.protocol import REPEATS, Run, parse_tasks, run_matrix
from dsbeval.dyadic.rows import MAIN_TASKS, TASKS
from dsbeval.dyadic.runs import Earlier, read_earlier
from dsbeval.dyadic.scenarios import DEFAULT_ROOT as DYADS_ROOT
from dsbeval.dyadic.scenarios import load_scenarios
from dsbeval.dyadic.segments import BENCHMARK as SEGMENTS
from dsbeval.dyadic.textpair import TASKS as TEXT_TASKS
from dsbeval.dyadic.tiers import tier_of as scenarios_of_tier
from dsbeval.dyadic.turn_taking import BENCHMARK as TURN_TAKING
from dsbeval.errors import OptionError
from dsbeval.ifeval.pack import DEFAULT_PACK, Case, Pack, each_trial, load_pack
from dsbeval.ifeval.protocol import PROTOCOLS
from dsbeval.ifeval.tiers import TIERS, tier_of
from dsbeval.ifeval.trials import trials_in
from dsbeval.ifeval.verifiers import defaults
from dsbeval.judge.choose import DEFAULT as DEFAULT_JUDGE
from dsbeval.judge.choose import make_judge
from dsbeval.judge.contract import Judge
from dsbeval.judge.cost import parse_price
from dsbeval.judge.pas import PAS_PASS
from dsbeval.judge.prompts import VERSION as PROMPT_VERSION
from dsbeval.loading import checkpoint_files, parse_args
from dsbeval.placing import HOST
from dsbeval.recording import FORMATS
from dsbeval.replay.grid import DYADS, IFEVAL, Grid
from dsbeval.results import versions
from dsbeval.speech.acoustics import KINDS, Acoustics
from dsbeval.speech.recognise import check_recogniser
from dsbeval.vad import BENCHMARK, model_sha256
from reports import writing
from reports.html.modes import AUDIO, Audio
from reports.placing import DEFAULT_MODEL, Placement, placement_of
from reports.replaying import add_option, overlaid, replayed


@dataclass(frozen=True)
class Settings:
    """The options of a run."""

    placement: Placement
    """The agents of the run, each in its place."""
    pack: Path
    levels: tuple[str, ...]
    roles: tuple[str, ...]
    probes: tuple[str, ...]
    sample: int | None
    tier: str | None
    trials: int
    """How often each case of DSB-IFEval is played."""
    limit: int | None
    seed: int
    run_dir: Path
    resume: bool
    audio_format: str
    report: Audio
    """Whether a report is made at the end, and where it has its audio."""
    judge: str
    judge_base_url: str | None
    price: str | None
    pas_pass: int
    latency: str
    acoustics: Acoustics
    dyadic: bool
    """Whether conversations of two agents are asked for."""
    partner_args: dict[str, object]
    tasks: tuple[str, ...]
    repeats: int
    window_s: int
    ifeval: bool
    """Whether cases of DSB-IFEval are asked for: not where a folder that is replayed has none."""
    text_only: bool
    """Whether the conversations are of two text models, in writing."""
    garble_watch: str | None
    """The recogniser that compares speech with text; None where nobody does."""
    with_runs: tuple[Path, ...]
    """Earlier run folders whose conversations join the matrices."""

    @property
    def model(self) -> str:
        """The agent under test, by the name it was asked for."""
        return self.placement.model.name

    @functools.cached_property
    def model_args(self) -> dict[str, object]:
        """Its arguments: the command line's, and those of models.toml."""
        return dict(self.placement.model.args)

    @property
    def partners(self) -> tuple[str, ...]:
        """Whom the agent talks to; the agent's own name, and nothing at all, is self-play."""
        return tuple(partner.name for partner in self.placement.partners)

    @functools.cached_property
    def replay(self) -> Grid | None:
        """The recordings that are replayed; None where the run makes its own."""
        return replayed(self.model, self.model_args)

    @functools.cached_property
    def earlier(self) -> list[Earlier]:
        """The earlier runs. Raises :class:`~dsbeval.errors.DsbevalError` where they are unlike this one."""
        return read_earlier(self.with_runs, self.fingerprint(), root=self.run_dir) if self.with_runs else []

    @functools.cached_property
    def dyads(self) -> dict[str, Run]:
        """The conversations that are asked for, by id. Raises :class:`~dsbeval.errors.DsbevalError`."""
        scenarios = load_scenarios().of(self.tasks, self.sample)
        if self.tier is not None:
            kept = {scenario.id for scenario in scenarios_of_tier(load_scenarios().of(self.tasks), self.tier)}
            scenarios = [scenario for scenario in scenarios if scenario.id in kept]
        if self.replay is not None:
            chosen = {scenario.id for scenario in scenarios}
            found = self.replay.dyads(self.tasks, load_scenarios().scenarios)
            return {run.id: run for run in [run for run in found if run.scenario in chosen][: self.limit]}
        runs: list[Run] = []
        for partner in self.partners or (self.model,):
            alone = partner == self.model
            runs += run_matrix(scenarios, self_play=alone, repeats=self.repeats, partner="" if alone else partner)
        named = {run.id: run for run in runs}
        if len(named) < len(runs):
            raise OptionError(f"--partner: {', '.join(self.partners)} give the same ids; give each a run of its own")
        return dict(list(named.items())[: self.limit])

    def cases(self, pack: Pack) -> list[Case]:
        """Return the cases of the pack that are asked for; of a run that is replayed, no more than it asked for itself."""
        found = pack.select(levels=self.levels, roles=self.roles, probes=self.probes, sample=self.sample)
        if self.tier is not None:
            kept = {case.id for case in tier_of(pack.cases.values(), self.tier)}
            found = [case for case in found if case.id in kept]
        if self.replay is None:
            return each_trial(pack, found[: self.limit], self.trials)
        asked = [case for case in found if self.replay.asks(case.id)][: self.limit]
        again = each_trial(pack, asked, trials_in(self.replay.ids))
        return [case for case in again if case.trial == 1 or case.id in self.replay.ids]

    def make_judge(self) -> Judge | None:
        """Return the judge that is asked for, or None. A missing key or SDK is one line here, before anything is recorded."""
        price = None if self.price is None else parse_price(self.price)
        return make_judge(self.judge, self.judge_base_url, price=price)

    @functools.cached_property
    def judge_id(self) -> str:
        """The judge's name in rows and tables. Building it is what finds a missing key or SDK."""
        judge = self.make_judge()
        if judge is None:
            return self.judge
        judge.close()
        return judge.id

    def fingerprint(self) -> dict[str, Any]:
        """Return what must be equal for two runs to be compared, and what they ran."""
        fingerprint: dict[str, Any] = {
            "agent": self.model,
            "agent_args": {key: self.model_args[key] for key in sorted(self.model_args)},
            "checkpoint": _checkpoint(self.placement.model.spec, self.placement.model.checkpoint),
            "pack": load_pack(self.pack).sha256,
            "seed": self.seed,
            "device": self.placement.device,
            "process": self.placement.facts,
            "judge": {"name": self.judge, "id": self.judge_id, "server": self.judge_base_url, "prompts": PROMPT_VERSION},
            "pas_pass": self.pas_pass,
            "audio_format": self.audio_format,
            "latency": self.latency,
            "acoustics": f"{self.acoustics}: {KINDS[self.acoustics]}",
            "vad": {"model": model_sha256(), "merge_s": BENCHMARK.merge_s, "min_speech_ms": BENCHMARK.min_speech_ms,
                    "min_silence_ms": BENCHMARK.min_silence_ms, "threshold": BENCHMARK.threshold, "pad_ms": BENCHMARK.pad_ms},
            "thresholds": {str(action): row for action, row in defaults().items()},
            "protocol": {str(kind): row.as_dict() for kind, row in PROTOCOLS.items()},
            "versions": versions(),
            "selection": {"levels": list(self.levels), "roles": list(self.roles), "probes": list(self.probes),
                          "sample": self.sample, "tier": self.tier, "trials": self.trials, "limit": self.limit,
                          **({"partners": list(self.partners), "tasks": list(self.tasks), "repeats": self.repeats}
                             if self.dyadic else {})},
            **({"dyadic": self._dyadic_fingerprint()} if self.dyadic else {}),
        }  # fmt: skip
        return fingerprint if self.replay is None else overlaid(fingerprint, self.replay)

    def _dyadic_fingerprint(self) -> dict[str, Any]:
        """Return what conversations were had with. Partners are in their ids: a folder may hold several."""
        told = {
            "scenarios": load_scenarios().sha256,
            "partner_args": {key: self.partner_args[key] for key in sorted(self.partner_args)},
        }
        if self.text_only:
            return {**told, **textrun.as_fingerprint()}
        return {
            **told,
            "medium": "speech",
            "window_s": self.window_s,
            "lead_in_s": LEAD_IN_S,
            **({"partner_checkpoints": weights} if (weights := self._partner_checkpoints()) else {}),
            **({"partners": said} if (said := self._partners_of_models_toml()) else {}),
            "segments": asdict(SEGMENTS),
            "turn_taking": asdict(TURN_TAKING),
            "garble_watch": garble.as_fingerprint(self.garble_watch),
        }

    def _partners_of_models_toml(self) -> dict[str, Any]:
        """Return what models.toml says of partners beyond their names and the command line."""
        return {
            one.name: {"agent": one.spec, "args": dict(sorted(one.args.items()))}
            for one in self.placement.partners
            if one.spec != one.name or dict(one.args) != self.partner_args
        }

    def _partner_checkpoints(self) -> dict[str, Any]:
        given = {one.name: (one.spec, one.args.get("checkpoint", one.checkpoint)) for one in self.placement.partners}
        return {name: _checkpoint(spec, str(where)) for name, (spec, where) in given.items() if where is not None}


SETTINGS = pytest.StashKey[Settings]()
RUN_DIR = "dsbeval_run_dir"
"""Under this name xdist's controller hands its run folder to the workers."""


def add_options(parser: pytest.Parser) -> None:
    """Declare the options of the suite."""
    group = parser.getgroup("dsbeval", "full-duplex evaluation")
    option = group.addoption
    option(
        "--model",
        default=DEFAULT_MODEL,
        metavar="NAME",
        help="agent: a name, path/to/file.py:Class or package.module:Class",
    )
    option("--model-arg", action="append", default=[], metavar="K=V", help="argument of the agent; may be repeated")
    add_option(group)
    option(
        "--checkpoint",
        default=None,
        metavar="PATH|ORG/NAME[@REV]",
        help="checkpoint that the agent loads: a file, a folder, or an id on the Hugging Face hub",
    )
    option(
        "--models",
        default=None,
        metavar="FILE",
        help="where each model runs: interpreter, checkpoint, device, options (default: models.toml, if there is one)",
    )
    option(
        "--devices-per-worker",
        type=int,
        default=1,
        metavar="N",
        help="GPUs of a worker; with 2 the sides of a conversation have one each (default: 1)",
    )
    option("--per-device", type=int, default=1, metavar="K", help="workers that share a GPU (default: 1)")
    option("--pack", default=str(DEFAULT_PACK), metavar="DIR", help="pack of cases (default: cases/ifeval)")
    option("--levels", default="", metavar="L1,L2", help="conditioning levels to run (default: all)")
    option("--roles", default="", metavar="R1,R4", help="roles to run (default: all)")
    option("--probes", default="", metavar="C1,R1_A", help="probes to run (default: all)")
    option(
        "--sample",
        type=int,
        default=None,
        metavar="N",
        help="cases/ifeval: run N conversations, spread over the actions; cases/dyadic: N scenarios, spread over the tasks",
    )
    option(
        "--tier",
        default=None,
        choices=TIERS,
        help="cases/ifeval: 96, 444 or all 1,038 cases; cases/dyadic: 2, 7 or all scenarios of a task (docs/ci.md)",
    )
    option(
        "--trials", type=int, default=1, metavar="K", help="cases/ifeval: play each case K times, with derived seeds"
    )
    option("--limit", type=int, default=None, metavar="N", help="run only the first N cases of the selection")
    option("--seed", type=int, default=0, metavar="S", help="seed of the run (default: 0)")
    option("--run-dir", default=None, metavar="DIR", help="run folder (default: runs/<time>-<model>)")
    option("--resume", action="store_true", help="go on in a run folder: what is recorded there is kept")
    option(
        "--judge",
        default=DEFAULT_JUDGE,
        metavar="SPEC",
        help="who judges the persona: none, offline, anthropic:MODEL or openai:MODEL (default: offline, a proxy)",
    )
    option(
        "--judge-base-url", default=None, metavar="URL", help="an OpenAI- or Anthropic-compatible server of your own"
    )
    option("--pas-pass", type=int, default=PAS_PASS, metavar="N", help="lowest PAS that passes (default: 50)")
    option("--price", default=None, metavar="IN,OUT", help="price of the judge, US dollars a million tokens in and out")
    option(
        "--acoustics",
        default="clean",
        choices=tuple(KINDS),
        help="cases/ifeval: condition of the user channel (default: clean)",
    )
    option(
        "--latency",
        default="none",
        choices=LATENCIES,
        help="charge the agent the compute time that its steps took (default: none, as published)",
    )
    option(
        "--partner",
        action="append",
        default=[],
        metavar="NAME",
        help="agent that the model talks to, in the forms of --model; may be repeated (default: the model itself)",
    )
    option("--partner-arg", action="append", default=[], metavar="K=V", help="argument of every partner")
    option(
        "--tasks", default=None, metavar="T1-1,T4-2", help="archetypes of conversations (default: the seven main ones)"
    )
    option(
        "--repeats", type=int, default=REPEATS, metavar="N", help=f"repetitions of a conversation (default: {REPEATS})"
    )
    option(
        "--window",
        type=int,
        default=int(WINDOW_S),
        choices=[int(window) for window in WINDOWS_S],
        help=f"seconds of a conversation (default: {WINDOW_S:g})",
    )
    writing.add_option(group)
    option(
        "--garble-watch",
        action="store_true",
        default=None,
        help="record a conversation again, up to five times, while a recogniser does not hear the text in the speech "
        "(default: with models that are known to need it, such as raon)",
    )
    option("--no-garble-watch", dest="garble_watch", action="store_false", help="do not, whatever the model")
    option(
        "--asr",
        default=None,
        metavar="NAME",
        help="recogniser of --garble-watch: pocketsphinx (default) or faster-whisper:DIR",
    )
    option(
        "--with-run",
        action="append",
        default=[],
        metavar="DIR",
        help="earlier run folder whose conversations of two agents join the matrices; may be repeated",
    )
    option(
        "--report",
        default="linked",
        choices=AUDIO,
        help="HTML report at the end: with links to the run's recordings (default), portable with small clips, or none",
    )
    option("--audio-format", default="wav", choices=FORMATS, help="format of the recordings (default: wav)")


def _checkpoint(agent: str, spec: str | None) -> dict[str, Any] | None:
    return None if spec is None else describe(spec, checkpoint_files(agent))


def _names(value: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in value.split(",") if name.strip())


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


def settings_of(config: pytest.Config) -> Settings:
    """Return the settings of a configured session."""
    return config.stash[SETTINGS]
