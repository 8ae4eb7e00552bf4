"""What the host side does with the messages: it loads the agent, opens sessions, steps them.

Needs numpy and the standard library only; an agent brings what it needs.
"""

from __future__ import annotations

import socket
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from dsbeval.agent import Agent, Emission, PrivilegedAgent, Session, check_emissions
from dsbeval.audio import Signal
from dsbeval.errors import AgentError, DsbevalError, SessionLostError
from dsbeval.host.wire import CHUNK, Kind, Message, pack, receive
from dsbeval.loading import build_agent, find_agent

Answer = tuple[dict[str, Any], Signal] | dict[str, Any]


class Server:
    """One agent behind a socket."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._inbox = bytearray()
        self._agent: Agent | None = None
        self._name = ""
        self._sessions: dict[int, Session] = {}
        self._handlers: dict[Kind, Callable[[Message], Answer]] = {
            Kind.LOAD: self._load,
            Kind.OPEN: self._open,
            Kind.STEP: self._step,
            Kind.FINISH: self._finish,
            Kind.CUT_OFF: self._cut_off,
            Kind.FACTS: self._facts,
            Kind.USAGE: self._usage,
            Kind.CLOSE: self._close,
        }

    def run(self, facts: Mapping[str, Any]) -> None:
        """Say what this environment is, then answer until the harness says stop. Raises :class:`EOFError` when it is gone."""
        self._channel.sendall(Message(Kind.HELLO, data=facts).encode())
        while (message := receive(self._read)).kind is not Kind.STOP:
            self._channel.sendall(self._answer(message))
        for session in self._sessions.values():
            with suppress(Exception):
                session.close()
        if self._agent is not None:
            self._agent.close()

    def _read(self, size: int) -> bytearray:
        while len(self._inbox) < size:
            got = self._channel.recv(max(CHUNK, size - len(self._inbox)))
            if not got:
                raise EOFError
            self._inbox += got
        out, self._inbox = self._inbox[:size], self._inbox[size:]
        return out

    def _answer(self, message: Message) -> bytes:
        try:
            answer = self._handlers[message.kind](message)
            data, signal = answer if isinstance(answer, tuple) else (answer, None)
            kind = Kind.READY if message.kind is Kind.LOAD else Kind.ANSWER
            out = Message(kind, message.call, message.session, data)
            return (out if signal is None else Message(kind, message.call, message.session, data, signal)).encode()
        except Exception as error:
            return Message(Kind.ERROR, message.call, message.session, describe(error)).encode()

    def _load(self, message: Message) -> Answer:
        data = message.data
        found = find_agent(data["target"], data["option"])
        if issubclass(found, PrivilegedAgent) or hasattr(found, "open_dyad"):
            raise AgentError(f"{data['spec']} is a calibration agent, which is told the case; it runs in process only")
        agent = build_agent(
            found, data["spec"], data["args"], data["checkpoint"], option=data["option"], device=data["device"]
        )
        self._agent, self._name = agent, agent.name
        device = getattr(agent, "device", None)
        return {
            "name": agent.name,
            "capabilities": agent.capabilities.as_dict(),
            "concurrency": agent.concurrency,
            "device": None if device is None else str(device),
        }

    def _open(self, message: Message) -> Answer:
        session = self._loaded().open(message.data["prompt"], message.data["seed"])
        if not isinstance(session, Session):
            kind = type(session).__name__
            raise AgentError(f"agent {self._name}: open returned a {kind}; return a dsbeval.agent.Session")
        self._sessions[message.session] = session.__enter__()
        return {}

    def _step(self, message: Message) -> Answer:
        return self._checked(self._sessions[message.session].step(message.signal))

    def _finish(self, message: Message) -> Answer:
        return self._checked(self._sessions[message.session].finish())

    def _cut_off(self, message: Message) -> Answer:
        return self._checked(self._sessions[message.session].cut_off())

    def _close(self, message: Message) -> Answer:
        session = self._sessions.pop(message.session)
        try:
            facts = dict(session.facts())
        finally:
            session.__exit__(None, None, None)
        return {"facts": facts, **self._used()}

    def _facts(self, message: Message) -> Answer:
        return {"facts": dict(self._sessions[message.session].facts())}

    def _usage(self, message: Message) -> Answer:  # noqa: ARG002
        return self._used()

    def _used(self) -> dict[str, Any]:
        used = self._loaded().usage()
        return {"usage": None if used is None else {"of": dict(used.of), "counts": dict(used.counts)}}

    def _loaded(self) -> Agent:
        assert self._agent is not None, "the harness loads an agent before it opens a session"
        return self._agent

    def _checked(self, returned: Emission | Sequence[Emission]) -> Answer:
        checked = check_emissions(returned, self._loaded().capabilities, self._name)
        return pack(returned if isinstance(returned, Emission) else checked)


def describe(error: Exception) -> dict[str, Any]:
    """Return an exception as the harness tells it: type, message, where it was raised, traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    return {
        "known": isinstance(error, DsbevalError),
        "lost": isinstance(error, SessionLostError),
        "wait_s": error.wait_s if isinstance(error, SessionLostError) else None,
        "type": type(error).__name__,
        "message": " ".join(str(error).split()),
        "where": f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "",
        "trace": "".join(traceback.format_exception(error)),
    }
