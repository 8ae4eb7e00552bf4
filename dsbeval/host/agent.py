"""An agent in a process of its own, under the same contract as one in this process.

Conventions
-----------
* The process is started when the agent is first asked for something, and kept for all its sessions.
* An exception of the agent is an :class:`~dsbeval.errors.AgentError` in the same words as in process; the process lives on.
* A process that dies, hangs or sends what is no message is :class:`HostDown`: it is ended with its children, its session is lost,
  and the next session starts another. After :data:`FAILURES` in a row, or at a fault that no restart can
  mend, it is :class:`HostGivenUp`, and stays so.
* A failure is followed by a success when a session has been closed after its steps, in good order.
"""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from dsbeval.agent import NO_AUDIO, Agent, Capabilities, Emission, Session, Usage
from dsbeval.audio import Signal
from dsbeval.errors import AgentError, HopelessError, SessionLostError
from dsbeval.host.process import Host, HostFault, HostProcess
from dsbeval.host.wire import Kind, Message, WireError, unpack
from dsbeval.models import Needs

FAILURES = 3


class HostDown(AgentError):  # noqa: N818  a state of the agent, and an error of the case
    """The process of an agent failed; the next session starts another."""


class HostGivenUp(HostDown, HopelessError):  # noqa: N818  as above
    """The process of an agent is not started again."""


class HostedAgent(Agent):
    """An agent in its own process.

    Parameters
    ----------
    target : str
        ``package.module:Class``, or ``/path/to/file.py:Class``.
    host : Host
    spec : str
        What was asked for; it is called that until it has said its own name.
    name : str or None
        What it is to be called, where that is not what it calls itself.
    args, checkpoint, device
        As of :func:`dsbeval.loading.load_agent`.
    needs : Needs or None
        What its environment must hold; checked at each start.
    log : Path or None
        File that its output is appended to; None is a temporary file.
    option : str
        The option that names the agent.
    """

    def __init__(
        self,
        target: str,
        host: Host,
        *,
        spec: str,
        name: str | None = None,
        args: Mapping[str, object] | None = None,
        checkpoint: str | None = None,
        device: str | None = None,
        needs: Needs | None = None,
        log: Path | None = None,
        option: str = "--model",
    ) -> None:
        self.name = name or spec
        self._renamed = name
        self.host = host
        self.environment: Mapping[str, Any] = {}
        """What the process said of its environment when it started: ``python`` and ``packages``."""
        self._needs = needs
        self._load = {
            "target": target, "spec": spec, "args": dict(args or {}), "checkpoint": checkpoint, "device": device,
            "option": option,
        }  # fmt: skip
        _check_args(args or {}, option)
        self._folder = tempfile.TemporaryDirectory(prefix="dsbeval-") if log is None else None
        self._log = Path(self._folder.name, "host.log") if self._folder else log
        self._lock = threading.RLock()
        self._process: HostProcess | None = None
        self._capabilities: Capabilities | None = None
        self._sessions = count(1)
        self._failures = 0
        self._given_up: str | None = None
        self._concurrency: int | None = None
        self._used: Usage | None = None  # by the process that is running
        self._used_before: Usage | None = None  # by those that are not any more

    @property
    def concurrency(self) -> int | None:
        """How many sessions the agent takes at once; the process is started for it."""
        _ = self.capabilities
        return self._concurrency

    @concurrency.setter
    def concurrency(self, value: int | None) -> None:
        self._concurrency = value

    @property
    def capabilities(self) -> Capabilities:
        """What the agent declares; the process is started for it."""
        with self._lock:
            if self._capabilities is None:
                self._started()
            assert self._capabilities is not None
            return self._capabilities

    @property
    def pid(self) -> int | None:
        """The process that is running, if one is."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the process and load the agent, where that has not been done."""
        with self._lock:
            self._started()

    def open(self, prompt: str, seed: int) -> Session:
        """Return a session in a fresh state, in a process that is started for it where none is running."""
        with self._lock:
            process = self._started()
            number = next(self._sessions)
            data = {"prompt": prompt, "seed": seed}
            self.ask(
                process, Message(Kind.OPEN, session=number, data=data), self.host.start_s, "while a session was opened"
            )
            return HostedSession(self, process, number)

    def usage(self) -> Usage | None:
        """Return what has been used by all processes so far; of one that failed, what it had told before."""
        with self._lock:
            if self._process is not None:
                self.note_usage(
                    self.ask(self._process, Message(Kind.USAGE), self.host.step_s, "when asked for its usage")
                )
            return _added(self._used_before, self._used)

    def note_usage(self, answer: Message) -> None:
        """Keep what the process says that it has used."""
        told = answer.data.get("usage")
        if told is not None:
            self._used = Usage(dict(told["of"]), dict(told["counts"]))

    def close(self) -> None:
        """End the process. A second call does nothing."""
        with self._lock:
            process, self._process = self._process, None
            self._retire()
            if process is not None:
                process.stop()
            if self._folder is not None:
                self._folder.cleanup()

    def ask(self, process: HostProcess, message: Message, seconds: float, doing: str) -> Message:
        """Send a message and return the answer. Raises :class:`HostDown`, or what the agent raised as :class:`AgentError`."""
        with self._lock:
            if process is not self._process:
                raise HostDown(f"agent {self.name}: the process of this session is gone; open another session")
            try:
                answer = process.ask(message, seconds)
            except HostFault as fault:
                raise self._failed(f"{fault}, {doing}", process) from None
            except BaseException:  # interrupted between a call and its answer: the next answer would be the wrong one
                self._process = None
                self._retire()
                process.kill()
                raise
            if answer.kind is Kind.ERROR:
                raise self._raised(answer.data)
            return answer

    def read(self, process: HostProcess, answer: Message, doing: str) -> Emission | Sequence[Emission]:
        """Return the emissions of an answer."""
        try:
            return unpack(answer, process.clock_offset)
        except WireError as error:
            raise self._failed(f"sent {error}, {doing}", process) from None

    def holds(self, process: HostProcess) -> bool:
        """Return whether this is the process that is running."""
        return process is self._process

    def worked(self) -> None:
        """Take note that the process has held a session to its end."""
        self._failures = 0

    def _retire(self) -> None:
        self._used_before, self._used = _added(self._used_before, self._used), None

    def _started(self) -> HostProcess:
        if self._given_up is not None:
            raise HostGivenUp(self._given_up)
        if self._process is not None:
            return self._process
        process: HostProcess | None = None
        assert self._log is not None
        try:
            process = HostProcess(self.host, self._needs.package_names if self._needs else (), self._log)
            self.environment = {key: process.facts[key] for key in ("python", "packages")}
            if self._needs is not None:
                unmet = self._needs.unmet(self.environment["python"], self.environment["packages"])
                if unmet:
                    raise self._hopeless(f"{self.host.python}: {'; '.join(unmet)} (dsbeval doctor {self._needs.name})")
            answer = process.ask(Message(Kind.LOAD, data=self._load), self.host.start_s)
        except HostFault as fault:
            raise self._failed(f"{fault}, while it was started", process, tail=fault.tail) from None
        except BaseException:
            if process is not None:
                process.kill()
            raise
        if answer.kind is Kind.ERROR:
            error = self._raised(answer.data)
            if answer.data.get("known"):
                process.kill()
                raise self._hopeless(str(error))
            raise self._failed("", process, error=error)
        self._read_ready(answer.data, process)
        self._process = process
        return process

    def _read_ready(self, data: Mapping[str, Any], process: HostProcess) -> None:
        try:
            self.name = self._renamed or str(data["name"])
            self._capabilities = Capabilities(**data["capabilities"])
            self._concurrency = data["concurrency"]
        except (KeyError, TypeError) as error:
            raise self._failed(f"sent READY without what an agent declares ({error})", process) from None
        asked, found = str(self._load["device"] or ""), str(data.get("device") or "")
        if asked.startswith("cuda") and found.startswith("cpu"):
            process.kill()
            raise self._hopeless(f"it was given {asked} and says that it is on {found}; its environment sees no GPU")

    def _failed(
        self, what: str, process: HostProcess | None, *, tail: str = "", error: AgentError | None = None
    ) -> HostDown:
        """End the process and return the error, which says what comes next."""
        if process is not None:
            process.kill()
            tail = process.tail()
        self._process = None
        self._retire()
        self._failures += 1
        text = str(error) if error else f"agent {self.name}: its process {what}"
        if tail and error is None:
            text += f"; the last it printed: {tail}"
        if self._failures >= FAILURES:
            self._given_up = f"{text}; that is failure {FAILURES} in a row, and it is not started again"
        out = HostDown(text) if self._given_up is None else HostGivenUp(self._given_up)
        for note in getattr(error, "__notes__", ()):
            out.add_note(note)
        out.add_note(f"log of the process: {self._log}")
        return out

    def _hopeless(self, what: str) -> HostGivenUp:
        named = what if what.startswith(("agent ", "--")) else f"agent {self.name}: {what}"
        self._given_up = f"{named}; a new start cannot mend that"
        return HostGivenUp(self._given_up)

    def _raised(self, data: Mapping[str, Any]) -> AgentError:
        """Return what the agent raised, in the words of an agent in this process."""
        if data.get("lost"):
            error: AgentError = SessionLostError(str(data["message"]), data.get("wait_s"))
        elif data.get("known"):
            error = AgentError(str(data["message"]))
        else:
            where = f" at {data['where']}" if data.get("where") else ""
            error = AgentError(f"agent {self.name}: {data.get('type')}: {data.get('message')}{where}")
        error.add_note(f"in the agent's own process:\n{data.get('trace', '')}")
        return error


class HostedSession(Session):
    """One conversation with an agent in its own process."""

    def __init__(self, agent: HostedAgent, process: HostProcess, number: int) -> None:
        self._agent, self._process, self._number = agent, process, number
        self._steps = 0
        self._closed = False
        self._facts: Mapping[str, Any] = {}  # as it was when the session was closed

    def step(self, heard: Signal) -> Emission | Sequence[Emission]:
        """Send one frame and return what the agent emits."""
        if heard.dtype != np.float32 or heard.ndim != 1:
            raise AgentError(f"a frame is {heard.dtype} of shape {heard.shape}; give float32 of shape (samples,)")
        self._steps += 1
        return self._ask(Kind.STEP, heard, f"in step {self._steps} of its session")

    def finish(self) -> Emission | Sequence[Emission]:
        """Return the agent's answer at the end."""
        return self._ask(Kind.FINISH, NO_AUDIO, "in its answer at the end")

    def cut_off(self) -> Emission | Sequence[Emission]:
        """Return what is known only at the end."""
        return self._ask(Kind.CUT_OFF, NO_AUDIO, "when it was cut off")

    def facts(self) -> Mapping[str, Any]:
        """Return what the agent's own session tells for rec.json; of one that is lost, nothing."""
        if self._closed or not self._agent.holds(self._process):
            return self._facts
        message = Message(Kind.FACTS, session=self._number)
        answer = self._agent.ask(self._process, message, self._agent.host.step_s, "when asked about its session")
        return dict(answer.data.get("facts", {}))

    def close(self) -> None:
        """Close the session in the process, if that is still there."""
        if self._closed:
            return
        self._closed = True
        if self._agent.holds(self._process):
            answer = self._agent.ask(
                self._process,
                Message(Kind.CLOSE, session=self._number),
                self._agent.host.step_s,
                "while a session was closed",
            )
            self._facts = dict(answer.data.get("facts", {}))
            self._agent.note_usage(answer)
            if self._steps:
                self._agent.worked()

    def _ask(self, kind: Kind, heard: Signal, doing: str) -> Emission | Sequence[Emission]:
        if self._closed:
            raise AgentError(f"agent {self._agent.name}: the session is closed; open another one")
        message = Message(kind, session=self._number, signal=heard)
        answer = self._agent.ask(self._process, message, self._agent.host.step_s, doing)
        return self._agent.read(self._process, answer, doing)


def _added(one: Usage | None, other: Usage | None) -> Usage | None:
    if one is None or other is None:
        return other if one is None else one
    counts = {key: one.counts.get(key, 0) + other.counts.get(key, 0) for key in {**one.counts, **other.counts}}
    return Usage(other.of, counts)


def _check_args(args: Mapping[str, object], option: str) -> None:
    for key, value in args.items():
        try:
            json.dumps(value, allow_nan=True)
        except TypeError:
            kind = type(value).__name__
            raise AgentError(
                f"{option}-arg {key}: a {kind} cannot be handed to another process; put it in quotes"
            ) from None
