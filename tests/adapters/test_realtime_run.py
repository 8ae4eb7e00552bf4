"""A run as a user starts it, over a realtime service that has faults: each case has its own outcome, and none costs another."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from dsbeval.ifeval.pack import load_pack
from dsbeval.results import RunFolder
from dsbeval.speech.assemble import audio_root
from dsbeval.speech.build import lines
from dsbeval.speech.engine import Utterance
from dsbeval.speech.store import AudioStore, Request, write_segment
from tests.adapters.realtime_answers import complain, cut
from tests.adapters.realtime_server import Answer, Call, Plan, RealtimeServer
from tests.adapters.realtime_talk import said
from tests.ifeval.packs import copy_pack
from tests.inner import ROOT, run

pytest_plugins = ["pytester"]

PROBE, LEVELS = "R4_B_logistical_question", ("L0", "L1")
PRICE = "{text_in: 4, text_cached: 0.4, audio_in: 32, audio_cached: 0.4, text_out: 16, audio_out: 64}"


def short_pack(to: Path) -> Path:
    """Copy the pack and let the user say everything in half a second, for a case costs the time that it takes to say it."""
    pack = load_pack(copy_pack(to))
    root = audio_root(pack)
    root.mkdir()
    store = AudioStore(root)
    for case in pack.select(levels=LEVELS, probes=(PROBE,), limit=2):
        for line in lines(pack, pack.recordings[case.audio_key]):
            request = Request("none", "1", "v", 0, line.text)
            store.put(case.audio_key, line.name, write_segment(root, request, line.text, Utterance(said("ack"), ())))
    store.save()
    return pack.root


def test_cases_are_begun_again_or_end_in_an_error_and_the_others_are_kept(pytester: pytest.Pytester) -> None:
    """Two cases in two workers, one at a time: one is cut off once, the other is never taken."""
    tries = itertools.count()

    async def by_case(call: Call) -> None:
        if not call.session["instructions"]:  # L0
            await complain("Not without instructions.", code="no_instructions")(call)
        elif next(tries) == 0:
            await cut(call)

    reply = Answer(said("reply", 0.6), "I see. Go on, please.", chunk_s=0.6)
    with RealtimeServer(Plan([reply, reply], first=by_case)) as server:
        inner = run(
            pytester, "--model=gpt_realtime", "--model-arg", f"base_url={server.base_url}", "--model-arg", f"price={PRICE}",
            "--model-arg", "concurrency=1", "--pack", str(short_pack(pytester.path)), f"--probes={PROBE}",
            f"--levels={','.join(LEVELS)}", "--limit=2", "-n2",
        )  # fmt: skip
        assert server.most_open == 1
        assert len(server.knocks) == 2 + 1  # a connection more for the one that was begun again
    assert inner.counts == {**inner.counts, "cases": 2, "error": 1, "missing": 0, "skipped": 0}
    assert inner.counts["passed"] + inner.counts["failed"] == 1
    (error,) = inner.summary["errors"]
    assert error["id"].endswith("-L0")
    assert "Not without instructions. (no_instructions)" in error["message"]
    assert error["message"] in inner.out

    (path,) = (inner.run_dir / "recordings").glob("*.rec.json")
    told = json.loads(path.read_text())
    (restart,) = told["restarts"]
    assert restart["reason"].endswith("/v1: the connection was closed, code 1006: no reason given")
    assert restart["waited_s"] == 1.0
    # The whole case, with both replies, is in one session.
    assert [response["status"] for response in told["session"]["responses"]] == ["completed"] * 2
    assert told["transcript"] == "I see. Go on, please.I see. Go on, please."
    assert told["session"]["playback"] == "raw"
    assert told["realtime"]["latency"] == "wall"

    # It is seen without opening the recording.
    rows = {(row["id"], row["item"]): row for row in inner.rows()}
    (kept,) = [row for row in rows.values() if row["item"] == "floor" and row["outcome"] != "error"]
    assert kept["restarts"] == 1
    assert inner.summary["restarts"] == {"cases": 1, "restarts": 1}
    assert "begun again because a session was lost: 1 cases, 1 times" in inner.out

    # What was used is of every session, also of those that were lost or ended in an error.
    (used,) = inner.summary["usage"]
    assert {name: used["counts"][name] for name in ("sessions", "lost", "responses")} == {
        "sessions": 3,
        "lost": 1,
        "responses": 2,
    }
    # Each: 56 + 64 cached of text in, 80 of audio in, 10 of text out, and 12 for 0.6 s of audio out.
    assert used["cost_usd"] == pytest.approx(2 * (56 * 4 + 64 * 0.4 + 80 * 32 + 10 * 16 + 12 * 64) / 1e6, abs=1e-6)
    assert f"gpt_realtime (at {used['at']}, model gpt-realtime, playback raw): 3 sessions; 1 lost" in inner.out
    schema = json.loads((ROOT / "docs" / "summary.schema.json").read_text())
    assert not list(Draft202012Validator(schema).iter_errors(inner.summary))
    # The kind of playback is stated though nobody gave it.
    arguments = RunFolder.open(inner.run_dir).fingerprint()["agent_args"]
    assert (arguments["concurrency"], arguments["playback"]) == (1, "raw")
