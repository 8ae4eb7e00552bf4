"""Text models behind a service: the real SDK against a local server, and whole runs in writing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy  # noqa: F401  pytester drops what a test is the first to import, and numpy cannot come in twice
import pytest
from click.testing import CliRunner

from dsbeval.cli import main
from dsbeval.dyadic.textchat import OpenAIChat, check_text_model
from dsbeval.dyadic.textpair import MANNER
from dsbeval.errors import AgentError, DsbevalError
from tests.dyadic.talks import Scripted, talk
from tests.inner import ROOT, Inner, run
from tests.servers import Answer, OpenAIServer, Seen

pytest_plugins = ["pytester"]

DYADS = ROOT / "cases" / "dyadic"
KEY = "sk-a-key-that-must-not-be-seen"


# The real SDK


@pytest.fixture
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.mark.usefixtures("_no_key")
def test_two_models_of_a_service_talk() -> None:
    with (
        OpenAIServer(lambda seen: f"I am {seen.model}.") as server,
        OpenAIChat("m-one", server.base_url, temperature=0.5) as one,
        OpenAIChat("m-two", server.base_url) as other,
    ):
        found = talk(one.seeded(7), other.seeded(8), turns=4)
    assert [turn.text for turn in found.turns] == ["I am m-one.", "I am m-two."] * 2
    body = server.seen[2].body
    assert body["model"] == "m-one"
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "user"]
    assert (body["seed"], body["temperature"], body["max_tokens"]) == (7, 0.5, 200)


@pytest.mark.usefixtures("_no_key")
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer(404, {"error": {"message": "no such model"}}), "side a: model m at .* answered 404: .*no such model"),
        (Answer(200, {"choices": []}), "side a: model m at .* answered without a choice"),
        (Answer(200, b"<html>", content_type="text/html"), "side a: model m at .* answered without a choice"),
        (
            Answer(200, {"choices": [{"finish_reason": "content_filter", "message": {"content": None}}]}),
            "side a: model m at .* the service's filter withheld the answer",
        ),
        (
            Answer(200, {"choices": [{"finish_reason": "length", "message": {"content": "  "}}]}),
            "side a: model m at .* used 200 tokens without a word",
        ),
    ],
    ids=["refused", "no choice", "a page", "filtered", "cut off"],
)
def test_a_service_that_fails_is_an_error_that_names_the_side(answer: Answer, message: str) -> None:
    with (
        OpenAIServer([answer]) as server,
        OpenAIChat("m", server.base_url) as chat,
        pytest.raises(AgentError, match=message),
    ):
        talk(chat.seeded(0), Scripted())


@pytest.mark.usefixtures("_no_key")
def test_a_service_that_is_slow_or_away_is_an_error() -> None:
    with (
        OpenAIServer(lambda _: Answer(200, {}, delay_s=5)) as server,
        OpenAIChat("m", server.base_url, timeout_s=0.2) as slow,
    ):
        with pytest.raises(AgentError, match=r"side b: .* did not answer within 0\.2 s"):
            talk(Scripted(), slow.seeded(0))
        base = server.base_url
    with OpenAIChat("m", base) as away, pytest.raises(AgentError, match=r"side a: .* cannot be reached"):
        talk(away.seeded(0), Scripted())


@pytest.mark.usefixtures("_no_key")
def test_the_service_itself_needs_a_key() -> None:
    with pytest.raises(
        AgentError, match="no environment variable OPENAI_API_KEY; set it to the service's key, or name"
    ):
        OpenAIChat("m")


def test_a_server_of_ones_own_gets_no_key_but_the_one_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OWN_KEY", f"own-{KEY}")
    with OpenAIServer(["Hello."] * 2, key=None) as server:
        for key_env in (None, "OWN_KEY"):
            with OpenAIChat("m", server.base_url, key_env=key_env) as chat:
                chat.seeded(0)([])
        assert [seen.key for seen in server.seen] == ["none", f"own-{KEY}"]
    with (
        OpenAIServer(key="another") as server,
        OpenAIChat("m", server.base_url, key_env="OWN_KEY") as chat,
        pytest.raises(AgentError, match=r"answered 401: .*Incorrect API key provided: \[key\]") as caught,
    ):
        chat.seeded(0)([])
    assert KEY not in str(caught.value)


@pytest.mark.usefixtures("_no_key")
@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"voice": "x"}, "--model-arg voice: a text model does not take it; it takes base_url, key_env, temperature"),
        ({"base_url": "nowhere"}, "--model-arg base_url: is not an address such as http"),
        ({"base_url": "http://u:p@h/v1"}, "--model-arg base_url: must not hold credentials"),
        (
            {"base_url": "http://h/v1", "temperature": "hot"},
            "--model-arg temperature: 'hot' is not a number of 0 or more",
        ),
        ({"base_url": "http://h/v1", "most_tokens": 0}, "--model-arg most_tokens: 0 is not a number of tokens"),
        ({"base_url": "http://h/v1", "timeout_s": -1}, "--model-arg timeout_s: -1 is not a positive number of seconds"),
        ({"base_url": "http://h/v1", "key_env": "NO_SUCH"}, "--model: there is no environment variable NO_SUCH"),
        ({}, "--model: there is no environment variable OPENAI_API_KEY"),
    ],
)
def test_a_wrong_argument_is_one_line(args: dict[str, object], message: str) -> None:
    with pytest.raises(DsbevalError, match=re.escape(message)) as caught:
        check_text_model(args)
    assert "\n" not in str(caught.value)
    check_text_model({"base_url": "http://h:1/v1", "temperature": 0.5, "most_tokens": 100, "timeout_s": 5})


# Runs


def players(seen: Seen) -> str:
    """Two models of a service: ``open`` says all that its prompt tells it, ``shut`` says nothing of it."""
    said = sum(message["role"] == "assistant" for message in seen.body["messages"])
    if seen.model == "shut":
        return "I would rather not say anything about that."
    words = str(seen.body["messages"][0]["content"]).removesuffix(MANNER).split()
    return " ".join(words[60 * said : 60 * said + 60]) or "That is all."


def in_writing(pytester: pytest.Pytester, server: OpenAIServer, *args: str, run_dir: Path | None = None) -> Inner:
    where = [f"--{side}-arg=base_url={server.base_url}" for side in ("model", "partner")]
    return run(
        pytester, "--text-only", "--model=open", "--repeats=1", "--judge=offline", *where, *args,
        run_dir=run_dir, target=DYADS,
    )  # fmt: skip


def test_two_text_models_are_scored_by_the_same_scores(pytester: pytest.Pytester) -> None:
    chosen = ("--partner=shut", "--partner=open", "--tasks=T2,T4-2", "-k", "01-ab or 01-ba")
    with OpenAIServer(players) as server:
        inner = in_writing(pytester, server, *chosen)
        asked = len(server.seen)
        again = in_writing(pytester, server, *chosen, "--resume")
        assert len(server.seen) == asked  # what was had is not had again
    assert again.rows() == inner.rows()
    rows = {row["id"]: row for row in inner.rows()}
    assert len(rows) == 2 * (4 + 2)
    assert {row["medium"] for row in rows.values()} == {"text"}
    assert not list((inner.run_dir / "recordings").glob("*.wav"))
    found = inner.summary["dyadic"]
    assert "matrices" not in found
    leaks = found["text"]["matrices"]["T4-2"]
    assert leaks["models"] == ["open", "shut"]
    assert leaks["values"] == [[1.0, 0.0], [1.0, None]]
    assert leaks["n"] == [[2, 2], [2, 0]]
    assert re.search(r"^open +1\.00 \(2\) +0\.00 \(2\) +0\.50 \(2\)$", inner.out, re.MULTILINE)
    assert "Scores in writing, mean (n) [95 %] over 240 words" in inner.out
    told = rows["DYA-T2-01-ab-oA-r1@shut"]["scores"]
    assert (told["a"]["disclosed"], told["b"]["disclosed"]) == ([True, True], [False, False])
    recording = json.loads((inner.run_dir / "recordings" / "DYA-T4-2-01-ab-oA-r1@shut.rec.json").read_text())
    assert recording["kind"] == "text"
    assert recording["words"] <= 240
    assert len(recording["turns"]) <= 20
    bodies: list[Any] = [seen.body for seen in server.seen]
    assert {body["seed"] for body in bodies} >= set(recording["seeds"].values())
    assert inner.summary["fingerprint"]["dyadic"]["medium"] == "text"

    # Scored and judged again, from what lies on disk.
    summary = inner.run_dir / "report" / "summary.json"
    before = summary.read_bytes()
    scored = CliRunner().invoke(main, ["score", str(inner.run_dir)])
    assert scored.exit_code == 0, scored.output
    assert summary.read_bytes() == before
    judged = CliRunner().invoke(main, ["judge", str(inner.run_dir), "--judge=offline"])
    assert judged.exit_code == 0, judged.output
    assert ", 0 to do" in judged.output


def test_a_service_that_breaks_is_an_error_of_its_conversation(pytester: pytest.Pytester) -> None:
    def plan(seen: Seen) -> Answer | str:
        return Answer(404, {"error": {"message": "no such model"}}) if seen.model == "gone" else players(seen)

    with OpenAIServer(plan) as server:
        inner = in_writing(pytester, server, "--partner=gone", "--tasks=T4-2", "-k", "01-ab")
    rows = inner.rows()
    assert [row["outcome"] for row in rows] == ["error", "error"]
    assert all("side b: model gone at http://127.0.0.1:" in row["message"] for row in rows)
    assert inner.summary["dyadic"]["outcomes"]["error"] == 2


def test_the_published_tasks_are_the_default(pytester: pytest.Pytester) -> None:
    args = ("--text-only", "--model=m", "--model-arg=base_url=http://127.0.0.1:9/v1", "--collect-only", "-q")
    inner = run(pytester, *args, target=DYADS)
    assert "480 tests collected" in inner.out
    assert set(re.findall(r"DYA-(T\d(?:-\d)?)-\d\d-", inner.out)) == {"T1-1", "T2", "T3-2", "T4-2"}


@pytest.mark.parametrize(
    ("args", "target", "message"),
    [
        (
            ["--model=m"],
            ROOT / "cases",
            "--text-only: only conversations of two can be had in writing; name cases/dyadic",
        ),
        ([], DYADS, "--text-only: names no text model; add --model=NAME"),
        (["--model=m", "--window=30"], DYADS, "--text-only: --window is about speech; leave it out"),
    ],
)
def test_what_does_not_go_with_writing_is_one_line(
    pytester: pytest.Pytester, args: list[str], target: Path, message: str
) -> None:
    inner = run(pytester, "--text-only", *args, target=target)
    assert inner.status == pytest.ExitCode.USAGE_ERROR
    [line] = [line for line in inner.err.splitlines() if line.strip()]
    assert message in line
    assert not inner.run_dir.exists()
