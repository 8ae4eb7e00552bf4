"""What a run was asked for: its options, checked, and what follows from them: cases, conversations, fingerprint."""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from dsbeval.checkpoints import describe
from dsbeval.dyadic import garble, textrun
from dsbeval.dyadic.bridge import LEAD_IN_S
from dsbeval.dyadic.protocol import Run, run_matrix
from dsbeval.dyadic.runs import Earlier, read_earlier
from dsbeval.dyadic.scenarios import load_scenarios
from dsbeval.dyadic.segments import BENCHMARK as SEGMENTS
from dsbeval.dyadic.tiers import tier_of as scenarios_of_tier
from dsbeval.dyadic.turn_taking import BENCHMARK as TURN_TAKING
from dsbeval.errors import OptionError
from dsbeval.ifeval.pack import Case, Pack, each_trial, load_pack
from dsbeval.ifeval.protocol import PROTOCOLS
from dsbeval.ifeval.tiers import tier_of
from dsbeval.ifeval.trials import trials_in
from dsbeval.ifeval.verifiers import defaults
from dsbeval.judge.choose import make_judge
from dsbeval.judge.contract import Judge
from dsbeval.judge.cost import parse_price
from dsbeval.judge.prompts import VERSION as PROMPT_VERSION
from dsbeval.loading import checkpoint_files
from dsbeval.replay.grid import Grid
from dsbeval.results import versions
from dsbeval.speech.acoustics import KINDS, Acoustics
from dsbeval.vad import BENCHMARK, model_sha256
from reports.html.modes import Audio
from reports.placing import Placement
from reports.replaying import overlaid, replayed


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


def _checkpoint(agent: str, spec: str | None) -> dict[str, Any] | None:
    return None if spec is None else describe(spec, checkpoint_files(agent))


SETTINGS = pytest.StashKey[Settings]()
RUN_DIR = "dsbeval_run_dir"
"""Under this name xdist's controller hands its run folder to the workers."""


def settings_of(config: pytest.Config) -> Settings:
    """Return the settings of a configured session."""
    return config.stash[SETTINGS]
