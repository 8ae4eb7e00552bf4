"""Eight at once, and every way to stop. Nothing here is timed: a gate opens only when so many requests are open together."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from dsbeval.judge.contract import JudgeError, Judgement, Question, Unjudged
from dsbeval.judge.offline import OfflineJudge
from dsbeval.judge.parallel import GIVE_UP, PARALLEL, ask_all
from tests.inner import ROOT
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


def test_a_judge_that_nothing_can_stop_is_handed_no_further_question() -> None:
    reported: list[int] = []

    def done(index: int, outcome: object) -> None:
        reported.append(index)
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space left"):
        ask_all(OfflineJudge(), questions(200), done)
    assert len(reported) <= PARALLEL


# Interrupts: in a process of its own, whose main thread they reach


@contextmanager
def asking(server: OpenAIServer, count: int) -> Iterator[subprocess.Popen[str]]:
    """Start a process that asks, and end it whatever happens."""
    command = [sys.executable, "-m", "tests.judge.interruptible", server.base_url, str(count)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def wait_until(done: Callable[[], bool], seconds: float = 180.0) -> None:
    limit = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < limit, "it did not happen"
        time.sleep(0.01)


def read_until(process: subprocess.Popen[str], words: str) -> list[str]:
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.strip())
        if line.strip() == words:
            return lines
    raise AssertionError(f"it ended without {words!r}: {lines}")


def rest_of(process: subprocess.Popen[str]) -> list[str]:
    """Return the lines up to the end of the process; ``communicate`` would lose what has been read ahead."""
    assert process.stdout is not None
    lines = process.stdout.read().splitlines()
    assert process.wait(180) == 0
    return lines


def test_an_interrupt_lets_the_calls_under_way_finish_and_asks_nothing_more() -> None:
    with HangingServer(pas_reply(), answers=16) as server, asking(server, 100) as process:
        wait_until(lambda: len(server.seen) == 16 + PARALLEL)
        process.send_signal(signal.SIGINT)
        lines = read_until(process, "interrupted")
        server._closing.set()  # the server comes round: what is under way ends
        lines += rest_of(process)
    kept = [line for line in lines if line.startswith("kept")]
    assert len(kept) == len(server.seen) == 16 + PARALLEL  # every reply that was asked for is kept
    assert lines[-1] == "raised KeyboardInterrupt"
    assert not any("Traceback" in line for line in lines)


def test_an_interrupt_ends_a_wait_at_once() -> None:
    with OpenAIServer() as plain:
        limit = plain.error(429, "Slow down.", headers={"retry-after": "500"})
    with OpenAIServer(lambda seen: limit) as server, asking(server, 20) as process:
        wait_until(lambda: len(server.seen) == PARALLEL)
        process.send_signal(signal.SIGINT)
        lines = rest_of(process)  # it would have been 500 s
    assert lines == ["interrupted", "raised KeyboardInterrupt"]
    assert len(server.seen) == PARALLEL


def test_a_second_interrupt_does_not_wait_for_the_server() -> None:
    with HangingServer(pas_reply(), answers=0) as server, asking(server, 20) as process:
        wait_until(lambda: len(server.seen) == PARALLEL)
        process.send_signal(signal.SIGINT)
        read_until(process, "interrupted")
        process.send_signal(signal.SIGINT)
        lines = rest_of(process)  # the server hangs until it is closed
    assert lines == ["raised KeyboardInterrupt"]
