"""A conversation with a service as a session of the contract: frames out, emissions in, facts at the end."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from adapters.gpt_realtime.link import Command, Link
from adapters.gpt_realtime.meter import Meter
from dsbeval.agent import Emission, Session
from dsbeval.audio import Signal, to_pcm16
from dsbeval.errors import AgentError, SessionLostError


class Talk(Protocol):
    """What the events of a protocol mean for a conversation."""

    def hear(self, event: Any, at: float) -> Sequence[Emission]:
        """Take an event that arrived at a time. Raises :class:`AgentError`."""

    def pass_time(self, now: float) -> Sequence[Emission]:
        """Return what is due by now."""

    def commands(self) -> Sequence[Command]:
        """Return what is to be told to the service."""

    def end(self) -> None:
        """Account for what will not come any more. Raises :class:`AgentError`."""

    def facts(self) -> dict[str, Any]:
        """Return what is kept in rec.json."""


class ServiceSession(Session):
    """One conversation over one link."""

    def __init__(self, link: Link, talk: Talk, meter: Meter, told: Mapping[str, Any]) -> None:
        self._link, self._talk, self._meter = link, talk, meter
        self._told = dict(told)
        self._closed = False
        meter.count(sessions=1)
        try:
            self._told["confirmed"] = link.open()
        except AgentError as error:
            self.close()
            raise self._counted(error) from None

    def step(self, heard: Signal) -> Sequence[Emission]:
        """Send a frame and return what has arrived, stamped."""
        try:
            self._link.append(to_pcm16(heard).tobytes())
            return self._take()
        except AgentError as error:
            raise self._counted(error) from None

    def finish(self) -> Sequence[Emission]:
        """Return nothing: nobody would hear what is said now. What has arrived is still looked at."""
        try:
            self._take()
            self._talk.end()
        except AgentError as error:
            raise self._counted(error) from None
        return ()

    def cut_off(self) -> Sequence[Emission]:
        """As at the end: what was written and not said is no silence."""
        return self.finish()

    def _take(self) -> Sequence[Emission]:
        out: list[Emission] = []
        for at, event in self._link.arrivals():
            out += self._talk.hear(event, at)
            for command in self._talk.commands():
                self._link.send(command)
        out += self._talk.pass_time(time.monotonic())
        return out

    def facts(self) -> dict[str, Any]:
        """Return what the service confirmed, and what came of it."""
        return {**self._told, **self._talk.facts(), "sent_late_ms_max": round(self._link.slowest_s * 1000, 3)}

    def close(self) -> None:
        """Hang up, and count what the service still said about it."""
        if self._closed:
            return
        self._closed = True
        self._link.close()
        try:
            for at, event in self._link.arrivals():
                self._talk.hear(event, at)
            self._talk.end()
        except AgentError:
            pass  # the case has its outcome already

    def _counted(self, error: AgentError) -> AgentError:
        if isinstance(error, SessionLostError):
            self._meter.count(lost=1)
        return error
