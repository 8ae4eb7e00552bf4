"""Both services through their real SDKs, against servers that speak the real protocols: each thing that can come back."""

from __future__ import annotations

import email.utils
import json
import sys
import time

import pytest

from dsbeval.errors import DsbevalError, OptionError
from dsbeval.judge import dyadic
from dsbeval.judge.choose import make_judge
from dsbeval.judge.contract import JudgeError, Judgement, Tokens, Unjudged
from dsbeval.judge.cost import Price
from dsbeval.judge.prompts import VERSION, prompt_hash
from tests.judge.servers import (
    KEY,
    SERVERS,
    Server,
    Waits,
    cut_reply,
    envelope_error,
    open_judge,
    prompt_of,
    refusal,
)
from tests.judge.support import GOOD_PAS, pas_reply, question
from tests.servers import Answer, AnthropicServer, OpenAIServer, Seen
from tests.servers.anthropic_messages import message
from tests.servers.openai_chat import completion

BOTH = pytest.mark.parametrize("name", SERVERS)
LADDER = [2.0, 4.0, 6.0]


def ask(server: Server, waits: Waits | None = None, **more: object) -> Judgement:
    judge = open_judge(server, waits, **more)  # type: ignore[arg-type]
    try:
        return judge.ask(question())
    finally:
        judge.close()


def unjudged(server: Server, waits: Waits | None = None, **more: object) -> Unjudged:
    with pytest.raises(Unjudged) as error:
        ask(server, waits, **more)
    assert "\n" not in str(error.value)
    return error.value


# An answer


@BOTH
def test_a_good_reply_becomes_a_judgement(name: str) -> None:
    waits = Waits()
    with SERVERS[name]([pas_reply()]) as server:
        found = ask(server, waits)
    assert found.answer == GOOD_PAS
    assert found.raw == pas_reply()
    assert (found.provider, found.model, found.attempts, found.failed) == (name, "judge-1", 1, ())
    assert (found.prompt_hash, found.prompt_version) == (prompt_hash(question()), VERSION)
    assert found.tokens == Tokens(10, 10)
    assert found.latency_s > 0
    assert waits.seconds == []


@BOTH
def test_what_is_sent(name: str) -> None:
    with SERVERS[name]([pas_reply()]) as server:
        found = ask(server)
    (seen,) = server.seen
    body = seen.body
    assert body["temperature"] == 0
    assert body["max_tokens"] == 900
    form = body["response_format"]["json_schema"] if name == "openai" else body["output_config"]["format"]
    schema = form["schema"]
    assert schema["required"] == list(GOOD_PAS)
    assert schema["additionalProperties"] is False
    assert "minimum" not in json.dumps(schema)  # services do not take ranges; they are checked here
    assert "(0 to 100)" in schema["properties"]["pas"]["description"]
    assert schema["properties"]["l4_category"]["enum"] == ["n/a"]
    assert found.sent["temperature"] == 0
    assert found.sent["format"] == "json_schema"
    if name == "openai":
        assert form["strict"] is True
        assert body["seed"] == found.sent["seed"] == 0
    else:
        assert seen.headers["anthropic-version"] == "2023-06-01"  # the version that has a temperature
    assert "What does that leave you with?" in prompt_of(seen)


@BOTH
def test_the_official_service_is_asked_with_its_own_key_and_priced(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{name.upper()}_API_KEY", KEY)
    judge = make_judge(f"{name}:some-model")
    assert judge is not None
    assert judge.id == f"{name}:some-model"
    assert judge.address == {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}[name]
    judge.close()


@BOTH
def test_the_cost_is_that_of_all_attempts(name: str) -> None:
    with SERVERS[name](["no", pas_reply()]) as server:
        found = ask(server, price=Price(2.0, 10.0))
    assert found.tokens == Tokens(20, 20)
    assert found.cost_usd == pytest.approx(20 * 2e-6 + 20 * 10e-6)


@BOTH
def test_a_dyadic_question_has_its_labels_enforced_by_the_schema(name: str) -> None:
    asked = dyadic.final_choice(["Ann", "Bob"], "[0.0] Speaker A: Bob.")
    with SERVERS[name]([json.dumps({"reason": "r", "answer": "Bob"})]) as server:
        judge = open_judge(server)
        assert judge.ask(asked).answer == {"reason": "r", "answer": "Bob"}
        judge.close()
    assert '"enum": ["Ann", "Bob", "none"]' in json.dumps(server.seen[0].body)


# Replies that are answers although they are wrapped


@BOTH
@pytest.mark.parametrize(
    "text",
    [
        f"Here is my grading:\n{pas_reply()}\nThat is all.",
        f"```json\n{pas_reply()}\n```",
        f"<think>Is {{this}} fair?</think>\n{pas_reply()}",
    ],
    ids=["prose", "fence", "thought"],
)
def test_json_in_prose_is_found(name: str, text: str) -> None:
    with SERVERS[name]([text]) as server:
        found = ask(server)
    assert found.answer == GOOD_PAS
    assert found.raw == text


def test_a_field_that_was_not_asked_for_is_dropped() -> None:
    with OpenAIServer([pas_reply(confidence=0.9)]) as server:
        assert ask(server).answer == GOOD_PAS


# Replies that are none: asked again, then unjudged

BAD_REPLIES = {
    "malformed": ('{"pas": 80,', "is not valid JSON"),
    "empty": ("", "empty"),
    "prose": ("I would say eighty.", "no JSON object"),
    "two objects": (f"{pas_reply()} or {pas_reply(pas=3)}", "more than one"),
    "a list": ("[1, 2]", "list"),
    "a missing field": (json.dumps({k: v for k, v in GOOD_PAS.items() if k != "summary"}), "field summary is missing"),
    "out of range": (pas_reply(pas=101), "field pas is 101, out of range; it must be 0 to 100"),
    "below range": (pas_reply(register_fit=-1), "field register_fit is -1, out of range; it must be 0 to 5"),
    "a fraction": (pas_reply(content_fit=3.5), "must be of type integer"),
    "a text for a number": (pas_reply(pas="81"), "must be of type integer"),
    "true for a number": (pas_reply(register_fit=True), "must be of type integer"),
    "not a number": (pas_reply(pas=float("nan")), "must be of type integer"),
    "a number of 5,000 digits": (pas_reply().replace("81", "9" * 5000), "digits"),
    "a label of another level": (pas_reply(l4_category="hedged"), "must be one of n/a"),
    "nested without end": ('{"a":' * 100_000, ""),
}


@pytest.mark.parametrize(("text", "problem"), BAD_REPLIES.values(), ids=list(BAD_REPLIES))
def test_a_reply_that_is_no_answer_is_asked_for_again(text: str, problem: str) -> None:
    waits = Waits()
    with OpenAIServer([text, pas_reply()]) as server:
        found = ask(server, waits)
    assert found.attempts == 2
    assert found.answer == GOOD_PAS
    (failed,) = found.failed
    assert problem in failed.problem
    assert failed.raw == text
    assert waits.seconds == [2.0]


@BOTH
@pytest.mark.parametrize("text", [BAD_REPLIES["malformed"][0], BAD_REPLIES["out of range"][0]])
def test_after_four_attempts_it_is_unjudged_and_no_score(name: str, text: str) -> None:
    waits = Waits()
    with SERVERS[name]([text] * 4) as server:
        error = unjudged(server, waits)
    assert len(server.seen) == 4
    assert waits.seconds == LADDER
    assert str(error).startswith("unjudged after 4 attempts: the reply is not")
    assert [attempt.raw for attempt in error.failed] == [text] * 4
    assert error.tokens == Tokens(40, 40)
    assert not error.unreachable


@BOTH
def test_a_refusal_is_unjudged_with_its_words(name: str) -> None:
    with SERVERS[name]([refusal(name)] * 4) as server:
        error = unjudged(server)
    assert len(server.seen) == 4
    assert str(error) == "unjudged after 4 attempts: refused: I can't help with grading that."


@BOTH
def test_a_refusal_may_be_followed_by_an_answer(name: str) -> None:
    with SERVERS[name]([refusal(name), pas_reply()]) as server:
        assert ask(server).attempts == 2


def test_a_content_filter_is_a_refusal() -> None:
    with OpenAIServer([completion("judge-1", "", finish_reason="content_filter")] * 4) as server:
        assert "content filter" in str(unjudged(server))


@BOTH
def test_a_reply_that_was_cut_is_asked_for_with_more_room(name: str) -> None:
    with SERVERS[name]([cut_reply(name, '{"formalize": "It'), cut_reply(name, '{"fo'), pas_reply()]) as server:
        found = ask(server)
    assert [seen.body["max_tokens"] for seen in server.seen] == [900, 1800, 3600]
    assert [attempt.problem for attempt in found.failed] == [
        "the reply was cut at 900 tokens",
        "the reply was cut at 1800 tokens",
    ]


def test_a_thinking_block_is_not_the_answer() -> None:
    with AnthropicServer([message("judge-1", pas_reply(), thought="Is {this} fair?")]) as server:
        assert ask(server).raw == pas_reply()


# Errors of the service


@BOTH
def test_a_rate_limit_is_waited_out_as_the_service_says(name: str) -> None:
    waits = Waits()
    with SERVERS[name]() as plain:
        limit = envelope_error(plain, 429, "Rate limit reached.", retry_after="7.5")
    with SERVERS[name]([limit, pas_reply()]) as server:
        assert ask(server, waits).attempts == 2
    assert waits.seconds == [7.5]


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"retry_after": "31"}, 31, 31),
        ({"retry_after_ms": "250"}, 0.25, 0.25),
        ({"retry_after": "in 500 s"}, 1, 501),
        ({"retry_after": "soon"}, 2, 2),
        ({}, 2, 2),
    ],
)
def test_retry_after_is_seconds_milliseconds_or_a_date(headers: dict[str, str], least: float, most: float) -> None:
    waits = Waits()
    if headers.get("retry_after", "").startswith("in "):
        headers = {"retry_after": email.utils.formatdate(time.time() + 500, usegmt=True)}
    with OpenAIServer() as plain:
        limit = envelope_error(plain, 429, "Slow down.", **headers)
    with OpenAIServer([limit, pas_reply()]) as server:
        ask(server, waits)
    assert len(waits.seconds) == 1
    assert least <= waits.seconds[0] <= most


def test_a_service_that_asks_for_an_hour_is_not_waited_for_and_not_asked_sooner() -> None:
    waits = Waits()
    with OpenAIServer() as plain:
        limit = envelope_error(plain, 429, "Daily limit.", retry_after="3600")
    with OpenAIServer([limit]) as server:
        error = unjudged(server, waits)
    assert "asks to wait 3600 s" in str(error)
    assert (len(server.seen), waits.seconds) == (1, [])


@BOTH
@pytest.mark.parametrize("status", [408, 429, 500, 503, 529])
def test_a_server_error_is_asked_again_by_our_ladder_alone(name: str, status: int) -> None:
    waits = Waits()
    with SERVERS[name]() as plain:
        broken = plain.error(status, "Overloaded.")
    with SERVERS[name]([broken, broken, broken, pas_reply()]) as server:
        found = ask(server, waits)
    assert found.attempts == len(server.seen) == 4
    assert waits.seconds == LADDER
    assert {attempt.problem for attempt in found.failed} == {f"HTTP {status}: Overloaded."}


@BOTH
def test_a_server_error_that_stays_is_unjudged(name: str) -> None:
    with SERVERS[name]() as plain:
        broken = plain.error(500, "It said\nthis.")
    with SERVERS[name]([broken] * 4) as server:
        error = unjudged(server)
    assert str(error) == "unjudged after 4 attempts: HTTP 500: It said this."
    assert error.unreachable


@BOTH
def test_a_timeout_is_asked_again(name: str) -> None:
    with SERVERS[name]([Answer(delay_s=30, body={}), pas_reply()]) as server:
        found = ask(server, timeout_s=0.5)
    assert [attempt.problem for attempt in found.failed] == ["no answer within 0.5 s"]


def test_the_timeout_is_ninety_seconds_unless_it_is_said() -> None:
    with OpenAIServer([pas_reply()]) as server:
        judge = make_judge("openai:judge-1", server.base_url)
        assert judge is not None
        judge.ask(question())
        judge.close()
    assert server.seen[0].headers["x-stainless-read-timeout"] == "90.0"
    assert server.seen[0].headers["x-stainless-retry-count"] == "0"


@BOTH
@pytest.mark.parametrize("cut", [0, 25])
def test_a_connection_that_breaks_in_the_reply_is_asked_again(name: str, cut: int) -> None:
    with SERVERS[name]() as plain:
        whole = plain.reply(pas_reply(), Seen("", {}, b'{"model": "judge-1"}'))
    broken = Answer(body=whole.body, cut=cut)
    with SERVERS[name]([broken, pas_reply()]) as server:
        found = ask(server)
    assert found.attempts == 2
    assert "the connection failed" in found.failed[0].problem


@BOTH
def test_a_server_that_is_not_there_is_unreachable(name: str) -> None:
    with SERVERS[name]() as server:
        pass
    error = unjudged(server)
    assert error.unreachable
    assert "the connection failed" in str(error)


@BOTH
@pytest.mark.parametrize(
    "answer",
    [
        Answer(body=b"<html>Welcome</html>", content_type="text/html"),
        Answer(body=b'{"choices": ['),
        Answer(body={"models": []}),
        Answer(body={"choices": [], "content": None}),
        Answer(body={"choices": [{}], "content": [{"type": "text"}]}),
        Answer(body=b"[]"),
        Answer(body=b""),
    ],
    ids=["a web page", "half a JSON body", "another API", "nothing in it", "broken fields", "a list", "no body"],
)
def test_an_envelope_that_is_not_of_the_protocol_is_asked_again(name: str, answer: Answer) -> None:
    with SERVERS[name]([answer, pas_reply()]) as server:
        found = ask(server)
    assert found.attempts == 2
    assert "not of its protocol" in found.failed[0].problem


@BOTH
@pytest.mark.parametrize(
    ("status", "mend"),
    [
        (401, "check the key"),
        (402, "add credit"),
        (403, "what the key may use"),
        (404, "check the model and --judge-base-url"),
    ],
)
def test_what_no_question_can_mend_stops_at_once(name: str, status: int, mend: str) -> None:
    waits = Waits()
    with SERVERS[name]() as plain:
        error = plain.error(status, "It said this.")
    with SERVERS[name]([error]) as server, pytest.raises(JudgeError) as caught:
        ask(server, waits)
    assert len(server.seen) == 1
    assert waits.seconds == []
    assert f"HTTP {status}: It said this.; " in str(caught.value)
    assert mend in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_used_up_quota_is_no_rate_limit() -> None:
    with OpenAIServer() as plain:
        error = plain.error(429, "You exceeded your current quota.", code="insufficient_quota")
    with OpenAIServer([error]) as server, pytest.raises(JudgeError, match="add credit"):
        ask(server)


@BOTH
def test_a_request_that_is_too_long_is_about_this_question_alone(name: str) -> None:
    with SERVERS[name]() as plain:
        error = plain.error(400, "prompt is too long: 250000 tokens")
    with SERVERS[name]([error]) as server:
        found = unjudged(server)
    assert str(found) == "unjudged after 1 attempt: HTTP 400: prompt is too long: 250000 tokens"


# Parameters that a model refuses


@BOTH
def test_a_model_without_temperature_is_asked_again_without_it_and_says_so(name: str) -> None:
    waits = Waits()
    with SERVERS[name]([pas_reply()] * 2, refuses=["temperature"]) as server:
        judge = open_judge(server, waits)
        found = [judge.ask(question()) for _ in range(2)]
        judge.close()
    assert ["temperature" in seen.body for seen in server.seen] == [True, False, False]  # learnt once
    assert [judgement.sent["temperature"] for judgement in found] == [None, None]
    assert [judgement.attempts for judgement in found] == [1, 1]
    assert waits.seconds == []


def test_structured_output_is_given_up_step_by_step() -> None:
    def plan(seen: Seen) -> Answer | str:
        form = seen.body.get("response_format", {}).get("type")
        return pas_reply() if form is None else server.error(400, f"response_format: {form} is not supported")

    with OpenAIServer(plan) as server:
        judge = open_judge(server)
        found = judge.ask(question())
        judge.close()
    forms = [seen.body.get("response_format", {}).get("type") for seen in server.seen]
    assert forms == ["json_schema", "json_object", None]
    assert found.sent["format"] is None
    assert found.attempts == 1


@pytest.mark.parametrize(
    ("name", "refused", "instead"),
    [
        ("openai", "seed", None),
        ("openai", "max_tokens", "max_completion_tokens"),
        ("anthropic", "output_config", None),
    ],
)
def test_other_parameters_are_given_up_too(name: str, refused: str, instead: str | None) -> None:
    with SERVERS[name]([pas_reply()], refuses=[refused]) as server:
        assert ask(server).attempts == 1
    last = server.seen[-1].body
    assert refused not in last
    if instead is not None:
        assert last[instead] == 900


def test_a_parameter_that_must_be_there_is_not_given_up() -> None:
    with OpenAIServer(refuses=["messages"]) as server:
        assert "HTTP 400" in str(unjudged(server))
    assert len(server.seen) == 1


# Choosing


@pytest.mark.parametrize(
    ("spec", "base_url", "words"),
    [
        ("gpt-4o", None, "is not none, offline, anthropic:MODEL or openai:MODEL"),
        ("opanai:gpt-4o", None, "did you mean openai?"),
        ("openai", None, "names no model; give openai:MODEL"),
        ("openai: ", None, "names no model"),
        ("offline:x", None, "offline takes no model"),
        ("offline", "http://127.0.0.1:1/v1", "asks no server"),
        ("none", "http://127.0.0.1:1/v1", "asks no server"),
        ("openai:m", "127.0.0.1:8000", "is not an address"),
        ("openai:m", "ftp://127.0.0.1", "is not an address"),
        ("openai:m", "http://127.0.0.1:99999/v1", "is not an address"),
    ],
)
def test_a_wrong_choice_is_one_line(spec: str, base_url: str | None, words: str) -> None:
    with pytest.raises(OptionError) as error:
        make_judge(spec, base_url)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_none_is_no_judge_and_offline_needs_nothing() -> None:
    assert make_judge("none") is None
    judge = make_judge("offline")
    assert judge is not None
    assert (judge.id, judge.address) == ("offline", None)


@BOTH
def test_a_missing_key_is_one_line_before_anything_is_asked(name: str) -> None:
    with pytest.raises(JudgeError) as error:
        make_judge(f"{name}:m")
    assert str(error.value) == (
        f"--judge: {name} needs a key; set the environment variable {name.upper()}_API_KEY, "
        "or name a server of your own with --judge-base-url"
    )
    assert isinstance(error.value, DsbevalError)


@BOTH
def test_a_missing_sdk_is_one_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)  # what the import system does for a package that is not there
    with pytest.raises(JudgeError) as error:
        make_judge(f"{name}:m", "http://127.0.0.1:1")
    assert str(error.value) == f"--judge: the SDK of {name} is not installed; install it: pip install {name}"
