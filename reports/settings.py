"""What a run was asked for: the command-line options, checked once, before anything is recorded."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dsbeval.clock import LATENCIES
from dsbeval.errors import OptionError
from dsbeval.ifeval.pack import DEFAULT_PACK, Case, Pack, load_pack
from dsbeval.ifeval.protocol import PROTOCOLS
from dsbeval.ifeval.verifiers import defaults
from dsbeval.loading import find_spec, parse_args
from dsbeval.recording import FORMATS
from dsbeval.results import file_sha256, versions
from dsbeval.speech.acoustics import KINDS, Acoustics
from dsbeval.vad import BENCHMARK, model_sha256

DEFAULT_MODEL = "turn_based"


@dataclass(frozen=True)
class Settings:
    """The options of a run."""

    model: str
    model_args: dict[str, object]
    checkpoint: str | None
    pack: Path
    levels: tuple[str, ...]
    roles: tuple[str, ...]
    probes: tuple[str, ...]
    limit: int | None
    seed: int
    run_dir: Path
    resume: bool
    audio_format: str
    latency: str
    acoustics: Acoustics

    def cases(self, pack: Pack) -> list[Case]:
        """Return the cases of the pack that are asked for."""
        return pack.select(levels=self.levels, roles=self.roles, probes=self.probes, limit=self.limit)

    def fingerprint(self) -> dict[str, Any]:
        """Return what must be equal for two runs to be compared, and what they ran."""
        checkpoint = None
        if self.checkpoint is not None:
            path = Path(self.checkpoint)
            checkpoint = {"name": self.checkpoint, "sha256": file_sha256(path) if path.exists() else None}
        return {
            "benchmark": "DSB-IFEval",
            "agent": self.model,
            "agent_args": {key: self.model_args[key] for key in sorted(self.model_args)},
            "checkpoint": checkpoint,
            "pack": load_pack(self.pack).sha256,
            "seed": self.seed,
            "device": "cpu",
            "audio_format": self.audio_format,
            "latency": self.latency,
            "acoustics": f"{self.acoustics}: {KINDS[self.acoustics]}",
            "vad": {"model": model_sha256(), "merge_s": BENCHMARK.merge_s, "min_speech_ms": BENCHMARK.min_speech_ms,
                    "min_silence_ms": BENCHMARK.min_silence_ms, "threshold": BENCHMARK.threshold, "pad_ms": BENCHMARK.pad_ms},
            "thresholds": {str(action): row for action, row in defaults().items()},
            "protocol": {str(kind): row.as_dict() for kind, row in PROTOCOLS.items()},
            "versions": versions(),
            "selection": {"levels": list(self.levels), "roles": list(self.roles), "probes": list(self.probes),
                          "limit": self.limit},
        }  # fmt: skip


SETTINGS = pytest.StashKey[Settings]()


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
    option("--checkpoint", default=None, metavar="PATH", help="checkpoint that the agent loads")
    option("--pack", default=str(DEFAULT_PACK), metavar="DIR", help="pack of cases (default: cases/ifeval)")
    option("--levels", default="", metavar="L1,L2", help="conditioning levels to run (default: all)")
    option("--roles", default="", metavar="R1,R4", help="roles to run (default: all)")
    option("--probes", default="", metavar="C1,R1_A", help="probes to run (default: all)")
    option("--limit", type=int, default=None, metavar="N", help="run only the first N cases of the selection")
    option("--seed", type=int, default=0, metavar="S", help="seed of the run (default: 0)")
    option("--run-dir", default=None, metavar="DIR", help="run folder (default: runs/<time>-<model>)")
    option("--resume", action="store_true", help="go on in a run folder: what is recorded there is kept")
    option("--acoustics", default="clean", choices=tuple(KINDS), help="condition of the user channel (default: clean)")
    option(
        "--latency",
        default="none",
        choices=LATENCIES,
        help="charge the agent the compute time that its steps took (default: none, as published)",
    )
    option("--audio-format", default="wav", choices=FORMATS, help="format of the recordings (default: wav)")


def _names(value: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in value.split(",") if name.strip())


def read_settings(config: pytest.Config) -> Settings:
    """Check the options and return them. Raises :class:`~dsbeval.errors.DsbevalError` in one line."""
    get = config.getoption
    find_spec(get("--model"))
    limit = get("--limit")
    if limit is not None and limit < 1:
        raise OptionError(f"--limit: {limit} is not a number of cases; give 1 or more")
    if get("--run-dir") is None:
        stamp = time.strftime("%Y%m%d-%H%M%S")
        label = "".join(c if c.isalnum() else "-" for c in str(get("--model")).rpartition("/")[2]).strip("-")
        # Workers are handed the controller's options, so all of them see the same folder.
        config.option.run_dir = str(config.rootpath / "runs" / f"{stamp}-{label}")
    elif (Path(get("--run-dir")) / "run.json").exists() and not get("--resume") and not hasattr(config, "workerinput"):
        raise OptionError(
            f"--run-dir: {get('--run-dir')} already holds a run; add --resume to go on, or name another folder"
        )
    settings = Settings(
        model=get("--model"),
        model_args=parse_args(get("--model-arg")),
        checkpoint=get("--checkpoint"),
        pack=Path(get("--pack")).resolve(),
        levels=_names(get("--levels")),
        roles=_names(get("--roles")),
        probes=_names(get("--probes")),
        limit=limit,
        seed=get("--seed"),
        run_dir=(config.invocation_params.dir / get("--run-dir")).resolve(),
        resume=get("--resume"),
        audio_format=get("--audio-format"),
        latency=get("--latency"),
        acoustics=get("--acoustics"),
    )
    config.option.run_dir = str(settings.run_dir)
    if settings.levels or settings.roles or settings.probes:
        settings.cases(load_pack(settings.pack))
    return settings


def settings_of(config: pytest.Config) -> Settings:
    """Return the settings of a configured session."""
    return config.stash[SETTINGS]
