"""Eight at once, and every way to stop. Nothing here is timed: a gate opens only when so many requests are open together."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

import pytest

from dsbeval.judge.choose import make_judge
from dsbeval.judge.contract import Judge, JudgeError, Judgement, Question, Unjudged
from dsbeval.judge.parallel import GIVE_UP, PARALLEL, ask_all
from tests.judge.servers import Gate, GatedServer, HangingServer, open_judge
from tests.judge.support import pas_reply, question
from tests.servers import Answer, OpenAIServer, Seen


def questions(count: int) -> list[Question]:
    return [question(said=f"What about step {k}?") for k in range(count)]


def test_exactly_eight_requests_are_open_at_once() -> None:
    gate = Gate(PARALLEL)
    with GatedServer(pas_reply(), gate) as server:
        judge = open_judge(server)
        outcomes = ask_all(judge, questions(3 * PARALLEL))
        judge.close()
    assert PARALLEL == 8
    assert not gate.broken  # it opened three times: eight were there each time
    assert server.most == 8  # and never nine
    assert len(server.seen) == len(outcomes) == 24


def test_outcomes_come_in_the_order_of_the_questions_and_each_is_reported_once() -> None:
    def plan(seen: Seen) -> Answer | str:
        number = int(seen.body["messages"][1]["content"].split("What about step ")[1].split("?")[0])
        return pas_reply(pas=number) if number % 5 else Answer(400, {"error": {"message": f"no {number}"}})

    reported: list[int] = []
    with OpenAIServer(plan) as server:
        judge = open_judge(server)
        outcomes = ask_all(judge, questions(20), lambda index, outcome: reported.append(index))
        judge.close()
    assert sorted(reported) == list(range(20))
    for number, outcome in enumerate(outcomes):
        if number % 5:
            assert isinstance(outcome, Judgement)
            assert outcome.answer["pas"] == number
        else:
            assert isinstance(outcome, Unjudged)
            assert f"no {number}" in str(outcome)


def test_reports_come_one_at_a_time() -> None:
    inside = threading.Lock()

    def done(index: int, outcome: object) -> None:
        assert inside.acquire(blocking=False)
        time.sleep(0.001)
        inside.release()

    with OpenAIServer(lambda seen: pas_reply()) as server:
        judge = open_judge(server)
        assert len(ask_all(judge, questions(30), done)) == 30
        judge.close()


def test_no_question_is_no_thread() -> None:
    with OpenAIServer() as server:
        judge = open_judge(server)
        assert ask_all(judge, []) == []
        judge.close()


def test_a_wrong_key_stops_everything_with_its_line() -> None:
    with OpenAIServer(key="another") as server:
        judge = open_judge(server)
        with pytest.raises(JudgeError, match="check the key"):
            ask_all(judge, questions(100))
        judge.close()
    assert len(server.seen) <= PARALLEL


def test_a_service_that_is_gone_is_given_up_and_not_asked_a_thousand_times() -> None:
    with OpenAIServer(lambda seen: Answer(503, {"error": {"message": "down"}})) as server:
        judge = open_judge(server)
        with pytest.raises(JudgeError, match=r"8 questions in a row got no reply: .*HTTP 503: down"):
            ask_all(judge, questions(200))
        judge.close()
    assert len(server.seen) <= 4 * (GIVE_UP + PARALLEL)


def test_an_error_in_what_keeps_the_outcomes_is_not_swallowed() -> None:
    def done(index: int, outcome: object) -> None:
        raise OSError("No space left on device")

    with OpenAIServer(lambda seen: pas_reply()) as server:
        judge = open_judge(server)
        with pytest.raises(OSError, match="No space left"):
            ask_all(judge, questions(50), done)
        judge.close()
    assert len(server.seen) <= PARALLEL


# Interrupts


def interrupt_when(ready: Callable[[], bool]) -> threading.Thread:
    """Send this process an interrupt, as a terminal does, once something is so."""

    def watch() -> None:
        while not ready():
            time.sleep(0.005)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


def test_an_interrupt_lets_the_calls_under_way_finish_and_asks_nothing_more() -> None:
    kept: list[int] = []
    told: list[str] = []
    with HangingServer(pas_reply(), answers=16) as server:
        judge = open_judge(server)
        interrupt_when(server.hanging.is_set)

        def on_interrupt() -> None:
            told.append("interrupted")
            server._closing.set()  # the server comes round: what is under way ends

        with pytest.raises(KeyboardInterrupt):
            ask_all(judge, questions(100), lambda index, outcome: kept.append(index), on_interrupt=on_interrupt)
        asked = len(server.seen)
        judge.close()
    assert told == ["interrupted"]
    assert 16 <= asked <= 16 + PARALLEL
    assert len(kept) == asked  # every reply that was asked for is kept


def test_an_interrupt_ends_a_wait_at_once() -> None:
    with OpenAIServer() as plain:
        limit = plain.error(429, "Slow down.", headers={"retry-after": "500"})
    with OpenAIServer(lambda seen: limit) as server:
        judge = make_judge("openai:judge-1", server.base_url)  # it really waits
        assert isinstance(judge, Judge)
        interrupt_when(lambda: len(server.seen) == PARALLEL)
        with pytest.raises(KeyboardInterrupt):
            ask_all(judge, questions(20))
        judge.close()
    assert len(server.seen) == PARALLEL


def test_a_second_interrupt_does_not_wait() -> None:
    with HangingServer(pas_reply(), answers=0) as server:
        judge = open_judge(server)
        interrupt_when(server.hanging.is_set)
        with pytest.raises(KeyboardInterrupt):
            ask_all(judge, questions(9), on_interrupt=lambda: interrupt_when(lambda: True).join())
        assert any(thread.name.startswith("judge-") for thread in threading.enumerate())  # they were left
    judge.close()
