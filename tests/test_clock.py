"""Time: the compute time that is charged, and the wall clock against a peer on a local socket."""

from __future__ import annotations

import queue
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbeval.agent import Agent, Capabilities, Emission, Interaction, Session
from dsbeval.audio import RATE, Signal
from dsbeval.clock import Clock, LogicalClock, MeasuredClock, WallClock
from dsbeval.ifeval.line import Line
from dsbeval.ifeval.pack import load_pack
from dsbeval.loading import load_agent
from dsbeval.recording import Recording

FRAME = 1920  # 80 ms
MS = RATE // 1000


# Charged compute time, with a timer of our own in the place of the machine's


@dataclass
class Timer:
    """A timer that moves only when an agent says so."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Impulses(Session):
    """Answers some frames with one impulse; every step costs what it is told."""

    timer: Timer
    cost_s: float
    answers: frozenset[int]
    steps: int = 0

    def step(self, heard: Signal) -> Emission:
        index, self.steps = self.steps, self.steps + 1
        self.timer.now += self.cost_s
        return Emission(np.ones(1, np.float32)) if index in self.answers else Emission()


def impulses(cost_s: float, answers: Sequence[int], clock_of: object, frames: int = 20) -> tuple[list[int], Clock]:
    timer = Timer()
    clock = clock_of(timer) if callable(clock_of) else LogicalClock()
    capabilities = Capabilities(Interaction.FRAME_SYNCHRONOUS, frame=FRAME)
    line = Line(Impulses(timer, cost_s, frozenset(answers)), capabilities, "impulses", clock)
    line.run_until(frames * FRAME)
    _, model = line.record(3 * frames * FRAME)
    return np.flatnonzero(model).tolist(), clock


def measured(chunked: bool = False) -> object:
    return lambda timer: MeasuredClock(FRAME, chunked=chunked, timer=timer)


def test_an_answer_is_heard_when_it_has_been_computed() -> None:
    free, _ = impulses(0.05, [2, 10], None)
    charged, clock = impulses(0.05, [2, 10], measured())
    assert free == [3 * FRAME, 11 * FRAME]
    assert [late - on_time for late, on_time in zip(charged, free, strict=True)] == [50 * MS, 50 * MS]
    report = clock.report()
    assert report["rtf_mean"] == report["rtf_p95"] == 0.625
    assert report["max_lag_s"] == 0.05
    assert report["holds_real_time"]


def test_an_agent_that_is_too_slow_falls_further_behind_with_every_frame() -> None:
    charged, clock = impulses(0.1, [0, 4, 9], measured())
    assert charged == [(k + 1) * FRAME + 100 * MS + k * 20 * MS for k in (0, 4, 9)]
    assert not clock.report()["holds_real_time"]
    assert clock.report()["rtf_mean"] == 1.25


def test_a_chunked_agent_is_waited_for_when_it_is_two_chunks_behind() -> None:
    charged, clock = impulses(0.1, [0, 2, 15, 19], measured(chunked=True))
    assert charged[:2] == [(k + 1) * FRAME + 100 * MS + k * 20 * MS for k in (0, 2)]
    assert charged[2:] == [(k + 1) * FRAME + 2 * FRAME for k in (15, 19)]
    assert clock.report()["waited_s"] > 0
    assert clock.report()["max_lag_s"] == 0.16


@given(st.floats(0, 0.0009), st.lists(st.integers(0, 19), max_size=6, unique=True))
@settings(deadline=None, max_examples=25)
def test_an_agent_that_costs_nothing_is_not_moved(cost: float, answers: list[int]) -> None:
    assert impulses(cost, answers, measured())[0] == impulses(cost, answers, None)[0]


def test_at_no_cost_a_whole_case_has_the_same_bytes() -> None:
    from dsbeval.ifeval.episode import record_case

    pack, agent = load_pack(), load_agent("oracle")
    case = pack.cases["IFD-R1-C3-i1-L2"]

    def recording(clock: Clock) -> Recording:
        return record_case(agent, pack, case, clock=clock)

    free = recording(LogicalClock())
    charged = recording(MeasuredClock(480, timer=Timer()))
    assert charged.model.tobytes() == free.model.tobytes()
    assert charged.user.tobytes() == free.user.tobytes()
    assert charged.text == free.text
    assert "realtime" not in free.meta
    assert charged.meta["realtime"]["rtf_mean"] == 0.0


# The wall clock


@dataclass
class Peer:
    """A service on a local socket: it receives frames, and sends audio at stated times after the first one."""

    plan: list[tuple[float, int]]  # (seconds after the first frame was received, samples of ones)
    received: list[float] = field(default_factory=list)
    sent: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        self.connection, _ = self.listener.accept()
        connection = self.connection
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=self._receive, args=(connection,), daemon=True).start()
        while not self.received:
            time.sleep(0.0005)
        begun = self.received[0]
        for at, samples in self.plan:
            while (rest := begun + at - time.monotonic()) > 0:
                time.sleep(rest)
            self.sent.append(time.monotonic())
            connection.sendall(struct.pack("<I", samples) + np.ones(samples, "<f4").tobytes())

    def close(self) -> None:
        for held in (self.listener, self.connection):
            held.close()

    def _receive(self, connection: socket.socket) -> None:
        while _exactly(connection, 480 * 4) is not None:
            self.received.append(time.monotonic())


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    data = b""
    while len(data) < size:
        try:
            piece = connection.recv(size - len(data))
        except OSError:
            return None
        if not piece:
            return None
        data += piece
    return data


class Loopback(Session):
    """An adapter as one for a real-time service is written: a reader thread stamps what arrives."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._arrived: queue.SimpleQueue[Emission] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while (header := _exactly(self._socket, 4)) is not None:
            stamp = time.monotonic()
            body = _exactly(self._socket, struct.unpack("<I", header)[0] * 4) or b""
            self._arrived.put(Emission(np.frombuffer(body, "<f4").astype(np.float32), arrived=stamp))

    def step(self, heard: Signal) -> Sequence[Emission]:
        self._socket.sendall(heard.astype("<f4").tobytes())
        out = []
        while not self._arrived.empty():
            out.append(self._arrived.get())
        return out

    def close(self) -> None:
        self._socket.close()


@dataclass
class LoopbackAgent(Agent):
    port: int
    name: str = "loopback"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(Interaction.SERVER_VAD, frame=480, clock="wall", seed=False, text=False)

    def open(self, prompt: str, seed: int) -> Session:
        return Loopback(self.port)


def over_the_wall(plan: list[tuple[float, int]], seconds: float) -> tuple[Signal, Peer, WallClock, float]:
    """Run a session against a peer; return the agent's channel, the peer, the clock and when the session began."""
    peer = Peer(plan)
    agent = LoopbackAgent(peer.port)
    clock = WallClock()
    begun = time.monotonic()
    with agent.open("", 0) as session:
        line = Line(session, agent.capabilities, agent.name, clock)
        line.run_until(int(seconds * RATE))
        _, model = line.record(int(seconds * RATE))
    peer.close()
    assert clock._start is not None
    assert clock._start - begun < 0.5
    return model, peer, clock, clock._start


def runs(channel: Signal) -> list[tuple[int, int]]:
    """Spans of the channel that are not silent."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], (channel != 0).astype(np.int8), [0]])))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def test_an_emission_lands_where_it_was_sent() -> None:
    plan = [(0.3 + 0.2 * k, 240) for k in range(11)]
    model, peer, clock, start = over_the_wall(plan, 2.8)
    found = runs(model)
    assert len(found) == len(plan)
    off = [abs(begin / RATE - (sent - start)) * 1000 for (begin, _), sent in zip(found, peer.sent, strict=True)]
    # The median, because a busy machine may wake one thread late.
    assert np.median(off) < 5.0, off
    report = clock.report()
    assert report["frames"] == 140
    assert report["jitter_ms"]["p50"] <= report["jitter_ms"]["p99"] <= report["jitter_ms"]["max"]


def test_nothing_is_loaded_while_a_session_in_real_time_runs() -> None:
    from dsbeval import vad
    from dsbeval.errors import AgentError
    from dsbeval.ifeval.episode import record_case

    loaded: list[int] = []

    class Looking(LoopbackAgent):
        def open(self, prompt: str, seed: int) -> Session:
            loaded.append(vad._session.cache_info().currsize)
            raise AgentError("seen enough")

    vad._session.cache_clear()
    pack = load_pack()
    with pytest.raises(AgentError, match="seen enough"):
        record_case(Looking(0), pack, next(iter(pack.cases.values())))
    assert loaded == [1]


def test_a_burst_plays_out_in_real_time_and_a_stall_leaves_a_hole() -> None:
    second = RATE
    # One second at once, more while it still plays, then nothing for a while.
    model, peer, _, _ = over_the_wall([(0.2, second), (0.5, second // 2), (2.2, second // 4)], 3.0)
    first, last = runs(model)
    assert first[1] - first[0] == second + second // 2
    assert last[1] - last[0] == second // 4
    gap = (last[0] - first[1]) / RATE
    assert gap == pytest.approx((peer.sent[2] - peer.sent[0]) - 1.5, abs=0.02)


@given(st.lists(st.floats(0.0, 0.05), min_size=10, max_size=60), st.floats(0.0, 0.004))
@settings(deadline=None, max_examples=30)
def test_frames_do_not_drift_on_a_simulated_wall(costs: list[float], oversleep: float) -> None:
    """Whatever steps cost and however sleep overshoots, a frame is late by its own step at most, never by the sum."""
    wall = {"now": 100.0}

    def sleep(seconds: float) -> None:
        wall["now"] += seconds + oversleep

    clock = WallClock(now=lambda: wall["now"], sleep=sleep)
    steps: Iterator[float] = iter(costs * 50)
    backlog = 0.0
    for index in range(1, 3001):  # 60 s of 20 ms frames
        clock.ready(index * 480)
        late = wall["now"] - (100.0 + index * 0.02)
        assert late <= max(backlog, oversleep) + 1e-9
        cost = next(steps, 0.0)
        wall["now"] += cost
        backlog = max(0.0, late + cost - 0.02)
    assert clock.report()["frames"] == 3000
