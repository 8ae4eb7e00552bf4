"""Attempts at a case: begun again where a session was lost, in the limits of a service, and counted."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dsbeval import slots, usage
from dsbeval.agent import Agent, Capabilities, Interaction, Session, Usage
from dsbeval.attempts import LONGEST_WAIT_S, RESTARTS, WAITS_S, attempt
from dsbeval.dyadic.participant import SideError
from dsbeval.errors import AgentError, OptionError, SessionLostError
from reports.usage_lines import usage_line
from tests.inner import ROOT


class Service(Agent):
    """An agent that counts what the test says."""

    def __init__(self, name: str = "service", concurrency: int | None = None) -> None:
        self.name, self.concurrency = name, concurrency
        self.counts: dict[str, float] = {}

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(Interaction.SERVER_VAD)

    def open(self, prompt: str, seed: int) -> Session:
        raise NotImplementedError

    def usage(self) -> Usage:
        return Usage({"model": "m", "playback": "raw"}, self.counts)


@dataclass
class Tape:
    meta: dict[str, Any] = field(default_factory=dict)


def failing(*errors: Exception | None) -> Callable[[], Tape]:
    """Raise the errors one after the other; None is a recording."""
    left = list(errors)

    def record() -> Tape:
        error = left.pop(0)
        if error is not None:
            raise error
        return Tape()

    return record


# Lost sessions


def test_a_lost_session_is_begun_again_and_named(tmp_path: Path) -> None:
    waited: list[float] = []
    record = failing(SessionLostError("cut,\n code 1006"), SessionLostError("HTTP 429", 3.5), None)
    recording = attempt(tmp_path, (Service(),), record, waited.append)
    assert waited == [WAITS_S[0], 3.5]
    assert recording.meta["restarts"] == [
        {"reason": "cut, code 1006", "waited_s": WAITS_S[0]},
        {"reason": "HTTP 429", "waited_s": 3.5},
    ]


def test_a_recording_without_a_loss_says_nothing_of_restarts(tmp_path: Path) -> None:
    assert attempt(tmp_path, (Service(),), failing(None)).meta == {}


def test_it_is_begun_again_so_often_and_no_more(tmp_path: Path) -> None:
    record = failing(*[SessionLostError("cut")] * (RESTARTS + 1), None)
    with pytest.raises(AgentError, match=f"cut .the case was begun {RESTARTS + 1} times") as caught:
        attempt(tmp_path, (Service(),), record, lambda s: None)
    assert not isinstance(caught.value, SessionLostError)


def test_a_service_that_asks_for_too_long_is_not_waited_for(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="asks to wait 121 s; resume the run later"):
        attempt(tmp_path, (Service(),), failing(SessionLostError("full", LONGEST_WAIT_S + 1), None), lambda s: None)


@pytest.mark.parametrize("error", [AgentError("no such voice"), RuntimeError("broken")])
def test_any_other_error_is_told_at_once(tmp_path: Path, error: Exception) -> None:
    with pytest.raises(type(error), match=str(error)):
        attempt(tmp_path, (Service(),), failing(error, None))


def test_a_loss_of_one_side_of_a_dyad_is_a_loss(tmp_path: Path) -> None:
    lost = SideError("b", "service", SessionLostError("cut"))
    lost.__cause__ = SessionLostError("cut", 0.0)
    recording = attempt(tmp_path, (Service(), Service()), failing(lost, None))
    assert recording.meta["restarts"] == [{"reason": "side b: cut", "waited_s": 0.0}]


# What was used


def test_what_was_used_is_counted_also_where_the_case_failed(tmp_path: Path) -> None:
    service = Service()

    def spend(error: Exception | None) -> Callable[[], Tape]:
        def record() -> Tape:
            for key, more in {"sessions": 1, "responses": 2, "audio_out": 1500, "cost_usd": 0.25}.items():
                service.counts[key] = service.counts.get(key, 0) + more
            return failing(error)()

        return record

    attempt(tmp_path, (service, service), spend(None))
    with pytest.raises(AgentError):
        attempt(tmp_path, (service,), spend(AgentError("no")))
    (entry,) = usage.totals(tmp_path)
    assert entry == {
        "agent": "service",
        "model": "m",
        "playback": "raw",
        "counts": {"sessions": 2, "responses": 4, "audio_out": 3000},
        "cost_usd": 0.5,
    }
    line = "service (model m, playback raw): 2 sessions; 4 responses; tokens: 3.0 k audio out; $0.50"
    assert usage_line(entry) == line


def test_the_cost_is_open_where_a_response_was_not_counted_or_no_price_was_given(tmp_path: Path) -> None:
    priced, free = Service("priced"), Service("free")
    priced.counts = {"sessions": 1, "responses": 1, "cost_usd": 0.1, usage.UNCOUNTED: 1}
    free.counts = {"sessions": 1, "billed_s": 90.0, "lost": 1}
    usage.note(tmp_path, (priced, free))
    entries = {entry["agent"]: entry for entry in usage.totals(tmp_path)}
    assert {entry["cost_usd"] for entry in entries.values()} == {None}
    assert usage_line(entries["priced"]).endswith("1 responses without their tokens, so no cost can be given")
    assert usage_line(entries["free"]).endswith("1 sessions; 1 lost; 1.5 min billed; no price given")


def test_the_files_of_all_workers_count_and_a_torn_line_does_not(tmp_path: Path) -> None:
    service = Service()
    service.counts = {"sessions": 1}
    usage.note(tmp_path, (service,))
    (own,) = (tmp_path / usage.FOLDER).iterdir()
    other = own.with_name("4711.jsonl")
    other.write_text(own.read_text() + '{"agent": "serv')
    assert usage.totals(tmp_path)[0]["counts"] == {"sessions": 2}
    usage.note(tmp_path, (service,))  # nothing new
    assert usage.totals(tmp_path)[0]["counts"] == {"sessions": 2}


# Limits


HOLDER = """
import sys, time
from pathlib import Path
from types import SimpleNamespace
from dsbeval import slots
with slots.held(Path(sys.argv[1]), [SimpleNamespace(name="service", concurrency=2)]):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_limit_holds_over_processes_and_a_dead_one_frees_its_slot(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    holders = [subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) for _ in range(2)]
    entered = threading.Event()

    def third() -> None:
        with slots.held(tmp_path, [Service(concurrency=2)]):
            entered.set()

    waiting = threading.Thread(target=third)
    try:
        for holder in holders:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
        waiting.start()
        assert not entered.wait(0.5)
        holders[0].kill()
        assert entered.wait(5.0)
    finally:
        for holder in holders:
            holder.kill()
            holder.wait()
            assert holder.stdout is not None
            holder.stdout.close()
        waiting.join()


def test_two_sides_take_their_slots_together(tmp_path: Path) -> None:
    """Six conversations of two sessions each, three slots: one at a time, and none waits for ever."""
    now = most = 0
    lock = threading.Lock()

    def converse() -> None:
        nonlocal now, most
        with slots.held(tmp_path, [Service(concurrency=3), Service(concurrency=5)]):
            with lock:
                now += 2
                most = max(most, now)
            time.sleep(0.02)
            with lock:
                now -= 2

    threads = [threading.Thread(target=converse) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert most == 2


def test_a_limit_that_is_too_small_for_the_conversation_is_named(tmp_path: Path) -> None:
    def enter() -> None:
        with slots.held(tmp_path, [Service(concurrency=1), Service(concurrency=1)]):
            pass

    with pytest.raises(OptionError, match="concurrency of service is 1, but this conversation needs 2"):
        enter()


def test_an_agent_without_a_limit_leaves_no_trace(tmp_path: Path) -> None:
    with slots.held(tmp_path, [Service()]):
        assert list(tmp_path.iterdir()) == []
