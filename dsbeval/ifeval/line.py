"""The line between the user and the agent: one clock, a user stream that nothing alters, and the agent's channel.

The line advances a frame at a time. What the user says is scheduled once, whole, at a sample of the session clock,
and is heard by the agent in the frames that contain it. The agent's emissions are placed by time. Nothing the agent
does moves, cuts or pauses the user's stream.
"""

from __future__ import annotations

from typing import Any

from dsbeval.agent import NO_AUDIO, Capabilities, PrivilegedSession, Session, check_emissions
from dsbeval.audio import RATE, Signal, resample
from dsbeval.clock import Clock, LogicalClock
from dsbeval.errors import AgentError
from dsbeval.recording import AgentSide, Channel
from dsbeval.spans import Span, to_samples
from dsbeval.vad import OnlineDetector

MAX_SESSION_S = 600.0
"""A session that grows past this is a runaway, and ends as an error."""


class Line:
    """A session under way."""

    def __init__(
        self,
        session: Session,
        capabilities: Capabilities,
        agent: str,
        clock: Clock | None = None,
        background: Signal | None = None,
    ) -> None:
        self._session = session
        self._clock = clock or LogicalClock()
        self._capabilities = capabilities
        self._agent = agent
        under = NO_AUDIO if background is None else background
        # What the agent hears, at its own rate, and the same at the session clock for the recording.
        self._heard = Channel(capabilities.input_rate, resample(under, RATE, capabilities.input_rate))
        self._user = Channel(RATE, under)
        self._detector: OnlineDetector | None = None
        self._watched = 0
        self._done = False
        self.side = AgentSide(capabilities.output_rate)
        self.now = 0
        self.events: list[dict[str, Any]] = []

    # The user ---------------------------------------------------------------------------------------------------

    def say(self, turn: int, audio: Signal, at: int, length: int | None = None) -> Span:
        """Schedule a user turn at ``at`` (session samples, not in the past) and return where it lies.

        The turn is ``length`` samples long, where its audio rings on after it.
        """
        span = Span(at, at + (audio.size if length is None else length))
        if isinstance(self._session, PrivilegedSession):
            self._session.cue(turn, span)
        self._user.place(audio, at)
        self._heard.place(resample(audio, RATE, self._capabilities.input_rate), at)
        self.event(f"turn{turn}_onset", span.start)
        self.event(f"turn{turn}_offset", span.end)
        return span

    def event(self, name: str, sample: int, **facts: Any) -> None:
        """Note an event at a session sample."""
        self.events.append({"event": name, "sample": sample, "t": round(sample / RATE, 3), **facts})

    # The clock --------------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """Let one frame pass: the agent hears it, and what it emits is placed."""
        frame, clock_frame = self._capabilities.frame, self._capabilities.clock_frame
        if self.now > MAX_SESSION_S * RATE:
            raise AgentError(
                f"agent {self._agent}: the session is longer than {MAX_SESSION_S:.0f} s; it never comes to an end"
            )
        end = self.now + clock_frame
        self._clock.ready(end)
        if not self._done:
            index = self.now // clock_frame * frame
            heard = self._heard.played(index, index + frame).copy()
            begun = self._clock.timer()
            returned = self._session.step(heard)
            self._clock.stepped(end, self._clock.timer() - begun)
            for emission in check_emissions(returned, self._capabilities, self._agent):
                arrival = self._clock.arrival(end, self.now + self._capabilities.clock_delay, emission.arrived)
                self.side.accept(emission, arrival)
                if emission.done:
                    self._done = True
                    self.event("agent_done", arrival)
        self.now = end

    def run_until(self, sample: int) -> None:
        """Advance until the clock has reached ``sample``."""
        while self.now < sample:
            self.advance()

    def finish(self, at: int) -> int:
        """Tell the agent that the user side has ended at ``at``; return where what it says then ends."""
        if self._done:
            return at
        begun = self._clock.timer()
        returned = self._session.finish()
        self._clock.finished(at, self._clock.timer() - begun)
        self.event("finish", at)
        said = False
        for emission in check_emissions(returned, self._capabilities, self._agent):
            self.side.accept(emission, self._clock.arrival(at, at, emission.arrived))
            said = said or emission.audio.size > 0
        channel = self.side.channel
        return max(at, channel.clock(channel.cursor)) if said else at

    # The agent's speech, as it is heard ---------------------------------------------------------------------------

    def spoken(self) -> OnlineDetector:
        """Return the detector of the agent's speech, fed with all that has been played so far.

        Made when it is first asked for: an episode with fixed timings pays nothing for it.
        """
        channel = self.side.channel
        if self._detector is None:
            self._detector = OnlineDetector(channel.rate)
        played = channel.native(self.now)
        self._detector.push(channel.played(self._watched, played))
        self._watched = played
        return self._detector

    def wait_for_onset(self, after: int, timeout: int) -> int | None:
        """Advance until the agent is heard after ``after``; return where its speech counts from, or None at the timeout.

        Speech already under way at ``after`` counts from there.
        """
        settled = to_samples(0.2, RATE)  # a span that ends within the VAD's hang-over was over at ``after``
        while self.now < after + timeout:
            self.advance()
            for start, end in self.spoken().spans:
                if start >= after:
                    return start
                if (self.now >= after + settled) if end is None else (end > after + settled):
                    return after
        return None

    def wait_for_silence(self, settle: int, deadline: int) -> None:
        """Advance until the agent has been silent for ``settle`` samples, or to ``deadline``."""
        while self.now < deadline:
            detector = self.spoken()
            if detector.onset is None and self.now - detector.silent_since >= settle:
                return
            self.advance()

    def record(self, end: int) -> tuple[Signal, Signal]:
        """Return both channels, exactly ``end`` samples."""
        return self._user.render(end), self.side.channel.render(end)
