"""Run folders for the tests of the report: recorded with calibration agents, judged offline, as a run leaves them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dsbeval.dyadic.protocol import Run as DyadRun
from dsbeval.dyadic.protocol import record_run
from dsbeval.dyadic.record import write_dyad
from dsbeval.dyadic.scenarios import load_scenarios
from dsbeval.dyadic.textrun import Seeded, as_fingerprint, record_talk, write_talk
from dsbeval.ifeval.episode import record_case
from dsbeval.ifeval.pack import DEFAULT_PACK, load_pack
from dsbeval.ifeval.score import score_recording
from dsbeval.judge.cache import Store, answered
from dsbeval.judge.choose import make_judge
from dsbeval.judge.dyads import item_of, read_conversation, score_conversation
from dsbeval.judge.pas import judge_case
from dsbeval.loading import load_agent
from dsbeval.recording import read_recording, write_recording
from dsbeval.results import RunFolder

CASES = (
    "IFD-R1-C1-i1-L1",
    "IFD-R1-C1-i1-L2",
    "IFD-R2-C1-i1-L2",
    "IFD-R1-C3-i1-L1",
    "IFD-R1-C3-i1-L2",
    "IFD-R1-C2-i1-L2",
    "IFD-R2-R2_B_are_you_there-i1-L4b",
)
"""Cases of several actions: one conversation at two levels, and one recording under two roles."""


def fingerprint(agent: str, judge: str = "none", **fields: Any) -> dict[str, Any]:
    """Return a fingerprint as a run writes it, with what the report reads."""
    return {
        "agent": agent,
        "agent_args": {},
        "checkpoint": None,
        "pack": load_pack(DEFAULT_PACK).sha256,
        "seed": 0,
        "device": "cpu",
        "judge": {"name": judge, "id": judge, "server": None, "prompts": "1"},
        "latency": "none",
        "acoustics": "clean: the recording as it is",
        "thresholds": {},
        "versions": {"dsbeval": "0.1.0", "resampler": "soxr-HQ"},
        "selection": {"levels": [], "roles": [], "probes": [], "sample": None, "limit": None},
        **fields,
    }


def ifeval_run(
    root: Path, agent: str, cases: Sequence[str] = CASES, *, judge: str = "none", wanted: Iterable[str] = ()
) -> RunFolder:
    """Record cases with an agent, score them and judge them. ``wanted`` are cases that were asked for beside them."""
    pack = load_pack(DEFAULT_PACK)
    folder = RunFolder.create(root, fingerprint(agent, judge), [*cases, *wanted])
    speaker, asked = load_agent(agent, {}), make_judge(judge)
    store = Store.of_run(root)
    for name in cases:
        write_recording(folder.recordings, name, record_case(speaker, pack, pack.cases[name]))
        folder.append(score_recording(read_recording(folder.recordings, name))[1])
        if asked is not None:
            folder.append(judge_case(asked, folder.recordings, name, pack, store))
    return folder


def dyadic_run(
    root: Path, agent: str, partner: str, scenarios: Sequence[str], *, window_s: float = 30, judge: str = "offline"
) -> RunFolder:
    """Record conversations of an agent with a partner in both seats, and judge them."""
    suite = load_scenarios()
    runs = [DyadRun(name, seats, "a", 1, False, partner) for name in scenarios for seats in ("ab", "ba")]
    dyadic = {"window_s": window_s}
    folder = RunFolder.create(root, fingerprint(agent, judge, dyadic=dyadic), [run.id for run in runs])
    one, other, asked = load_agent(agent, {}), load_agent(partner, {}), make_judge(judge)
    store = Store.of_run(root)
    for run in runs:
        write_dyad(folder.recordings, run.id, record_run(run, suite, one, other, window_s=window_s))
        conversation = read_conversation(folder.recordings, run.id, suite)
        for name, question in conversation.questions.items():
            if asked is not None:
                answered(asked, question, run.id, item_of(name), store)
        folder.append(score_conversation(conversation, store, judge)[1])
    return folder


def written_run(root: Path, scenarios: Sequence[str], chats: Mapping[str, Seeded]) -> RunFolder:
    """Let two text models converse in both seats, and judge them offline."""
    suite = load_scenarios()
    model, partner = chats
    runs = [DyadRun(name, seats, "a", 1, False, partner) for name in scenarios for seats in ("ab", "ba")]
    folder = RunFolder.create(root, fingerprint(model, "offline", dyadic=as_fingerprint()), [run.id for run in runs])
    judge, store = make_judge("offline"), Store.of_run(root)
    assert judge is not None
    for run in runs:
        write_talk(
            folder.recordings, run.id, record_talk(run, suite, chats[model], chats[partner], names=(model, partner))
        )
        conversation = read_conversation(folder.recordings, run.id, suite)
        for name, question in conversation.questions.items():
            answered(judge, question, run.id, item_of(name), store)
        folder.append(score_conversation(conversation, store, judge.id)[1])
    return folder


def rewrite(folder: RunFolder, name: str, **fields: Any) -> None:
    """Change fields of a recording's rec.json."""
    path = folder.recordings / f"{name}.rec.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields, ensure_ascii=False))
