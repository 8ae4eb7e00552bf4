"""What the plugin knows of each benchmark: which fixture takes its ids, which ids a run asks for, and the row of one that broke.

A benchmark is a folder of ``cases/`` with a thin test module, a module of fixtures, and an entry here. Ids of different
benchmarks begin differently, so they share a run folder.
"""

from __future__ import annotations

from typing import Protocol, cast

from dsbeval.dyadic.protocol import run_meta
from dsbeval.dyadic.scenarios import load_scenarios
from dsbeval.dyadic.verdict import Outcome, without_verdict
from dsbeval.errors import DsbevalError
from dsbeval.ifeval.pack import load_pack
from dsbeval.ifeval.score import unscored
from dsbeval.judge.dyads import PREFIX as DYADS
from dsbeval.judge.pas import unscored_row
from dsbeval.results import Row
from reports.settings import Settings


class Benchmark(Protocol):
    """What a benchmark tells the plugin."""

    fixture: str
    """The fixture that takes an id: a test that uses it, directly or not, is made once for each id."""

    def ids(self, settings: Settings) -> list[str]:
        """Return the ids that a run asks for. Raises :class:`~dsbeval.errors.DsbevalError`."""

    def has(self, settings: Settings, name: str) -> bool:
        """Return whether a name is one of its ids. Raises :class:`~dsbeval.errors.DsbevalError`."""

    def row_without_verdict(self, name: str, question: str, outcome: str, message: str, settings: Settings) -> Row:
        """Return the row of an item that broke (``error``) or that the agent declares it cannot do (``skipped``)."""


class IFEval:
    """DSB-IFEval: a case of the pack, asked about the floor and about the persona."""

    fixture = "ifeval_case"

    def ids(self, settings: Settings) -> list[str]:
        """Return the ids of the cases."""
        return [case.id for case in settings.cases(load_pack(settings.pack))]

    def has(self, settings: Settings, name: str) -> bool:
        """Return whether a name is a case of the pack."""
        return load_pack(settings.pack).case(name) is not None

    def row_without_verdict(self, name: str, question: str, outcome: str, message: str, settings: Settings) -> Row:
        """Return the row of the floor, or of the persona."""
        case = load_pack(settings.pack).case(name)
        assert case is not None
        if question == "persona":
            return unscored_row(case, settings.judge_id, outcome, message)
        return unscored(case, outcome, message)


class DyaFDB:
    """DyaFDB: a conversation of two agents, asked about once."""

    fixture = "dyad"

    def ids(self, settings: Settings) -> list[str]:
        """Return the ids of the conversations."""
        return list(settings.dyads)

    def has(self, settings: Settings, name: str) -> bool:
        """Return whether a name is a conversation of the run."""
        return name.startswith(DYADS) and name in settings.dyads

    def row_without_verdict(self, name: str, question: str, outcome: str, message: str, settings: Settings) -> Row:  # noqa: ARG002
        """Return the row of the conversation."""
        run = settings.dyads[name]
        partner = run.partner or settings.model
        meta = run_meta(
            run, load_scenarios(), settings.model, partner, seed=settings.seed, window_s=float(settings.window_s)
        )
        return {**without_verdict(meta, cast(Outcome, outcome), message), "judge": settings.judge_id}


BENCHMARKS: tuple[Benchmark, ...] = (DyaFDB(), IFEval())


def ignored(acoustics: str) -> tuple[str, ...]:
    """Return the options of a run that mean nothing to two agents: they have no user channel that could be conditioned."""
    return () if acoustics.startswith("clean") else ("--acoustics",)


def owner(settings: Settings, name: str) -> Benchmark | None:
    """Return the benchmark that an id is of, or None: other tests are parametrised too."""
    try:
        return next((benchmark for benchmark in BENCHMARKS if benchmark.has(settings, name)), None)
    except DsbevalError:
        return None  # what cannot be loaded has no items; collection has said so
