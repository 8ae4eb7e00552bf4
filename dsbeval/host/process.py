"""The process of a hosted agent: started, asked, given a deadline, and ended with everything it has started.

Conventions
-----------
* The process leads a session of its own. Its descendants carry a token in their environment, so on Linux those that
  have left the session, or whose parents are dead, are found and ended too.
* What it prints goes to a log file; the socket is the only way to the harness.
* Every wait has a deadline for the whole message, so bytes that trickle in do not put it off.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import tempfile
import time
import weakref
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dsbeval.host.wire import CHUNK, Kind, Message, WireError, receive

POLL_S = 0.25
STOP_S = 10.0
TOKEN = "DSBEVAL_HOST"
_NOT_INHERITED = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTEST_CURRENT_TEST")
"""What speaks of the harness's own environment, and would lead the model's interpreter astray."""


class HostFault(Exception):  # noqa: N818  a fault may be the operating system's doing
    """The process failed; the text is one line that continues "its process". ``tail`` is the last that it printed."""

    def __init__(self, what: str, tail: str = "") -> None:
        super().__init__(what)
        self.tail = tail


@dataclass(frozen=True, slots=True)
class Host:
    """Where and how an agent's process is run.

    Parameters
    ----------
    python : str
        Interpreter of the model's environment; it needs numpy.
    cwd : Path or None
        Working directory, and where imports begin; None is the harness's own.
    env : mapping
        Environment variables set for the process besides those of the harness.
    start_s, step_s : float
        Seconds after which a start (or the opening of a session), and a step (or the answer at the end), is given up.
    """

    python: str
    cwd: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    start_s: float = 600.0
    step_s: float = 120.0


class HostProcess:
    """One process, from its start to its end. Raises :class:`HostFault` wherever the process, not the agent, fails."""

    def __init__(self, host: Host, packages: Iterable[str], log: Path) -> None:
        self._log = log
        self._calls = 0
        self._inbox = bytearray()
        self._begun = time.monotonic()
        self._deadline = self._begun + host.start_s
        self._limit = host.start_s
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(POLL_S)
        token = secrets.token_hex(16)
        try:
            self._log_from, self._process = _start(host, packages, log, theirs, token)
        except BaseException:
            self._socket.close()
            raise
        finally:
            theirs.close()
        self._end = weakref.finalize(self, _end, self._process, self._socket, token)
        self.facts = self._hello()

    def _hello(self) -> Mapping[str, Any]:
        try:
            hello = self._receive()
            if hello.kind is not Kind.HELLO or "monotonic" not in hello.data:
                raise HostFault(f"sent {hello.kind.name} where HELLO was due")
            # One clock for all processes of a machine, as a rule; where it is not, the difference is known to the wait.
            theirs, after = float(hello.data["monotonic"]), time.monotonic()
            self.clock_offset = 0.0 if self._begun <= theirs <= after else after - theirs
        except HostFault as fault:
            self.kill()
            raise HostFault(str(fault), self.tail()) from None
        except BaseException:
            self.kill()
            raise
        return hello.data

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def ask(self, message: Message, seconds: float) -> Message:
        """Send one message and return its answer, which must come within ``seconds``."""
        self._calls += 1
        self._limit = seconds
        self._deadline = time.monotonic() + seconds
        self._send(Message(message.kind, self._calls, message.session, message.data, message.signal).encode())
        answer = self._receive()
        if answer.call != self._calls or answer.kind not in (Kind.READY, Kind.ANSWER, Kind.ERROR):
            raise HostFault(f"sent {answer.kind.name} {answer.call} where the answer to call {self._calls} was due")
        return answer

    def stop(self) -> None:
        """End the process in good order, or in bad order when it does not end."""
        if self._end.alive:
            with suppress(HostFault, OSError):
                self._deadline = time.monotonic() + STOP_S
                self._send(Message(Kind.STOP).encode())
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(STOP_S)
        self.kill()

    def kill(self) -> None:
        """End the process and what it has started, at once. A second call does nothing."""
        self._end()

    def tail(self, lines: int = 3, width: int = 400) -> str:
        """Return the last lines that this process printed, in one line."""
        with self._log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(self._log_from, size - 8192))
            text = file.read().decode("utf-8", "replace")
        kept = [" ".join("".join(c if c.isprintable() else " " for c in line).split()) for line in text.splitlines()]
        shown = " | ".join([line for line in kept if line][-lines:])
        return shown if len(shown) <= width else "... " + shown[-width:]

    def _send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[self._socket.send(view) :]
            except TimeoutError:
                self._check()
            except ConnectionError:
                raise self._gone() from None

    def _receive(self) -> Message:
        try:
            return receive(self._read)
        except WireError as error:
            raise HostFault(f"sent {error}") from None

    def _read(self, size: int) -> bytearray:
        while len(self._inbox) < size:
            try:
                got = self._socket.recv(max(CHUNK, size - len(self._inbox)))
            except TimeoutError:
                self._check()  # a child may hold the socket open when the process itself is dead
                continue
            except ConnectionError:
                raise self._gone() from None
            if not got:
                raise self._gone()
            self._inbox += got
            if len(self._inbox) < size:
                self._check()
        out, self._inbox = self._inbox[:size], self._inbox[size:]
        return out

    def _check(self) -> None:
        if self._process.poll() is not None:
            raise self._gone()
        if time.monotonic() > self._deadline:
            raise HostFault(f"did not answer within {self._limit:g} s and was killed")

    def _gone(self) -> HostFault:
        try:
            status = self._process.wait(2.0)
        except subprocess.TimeoutExpired:
            return HostFault("closed its socket")
        if status >= 0:
            return HostFault(f"ended with exit status {status}")
        return HostFault(f"was killed by {signal.Signals(-status).name}")


def probe(host: Host, packages: Iterable[str]) -> Mapping[str, Any]:
    """Return what the environment of a host says of itself: ``python`` and ``packages``. Nothing is loaded there.

    Raises :class:`HostFault`, with what was printed.
    """
    with tempfile.TemporaryDirectory(prefix="dsbeval-") as folder:
        process = HostProcess(host, packages, Path(folder, "probe.log"))
        facts = process.facts
        process.stop()
    return {key: facts[key] for key in ("python", "packages")}


def _start(
    host: Host, packages: Iterable[str], log: Path, theirs: socket.socket, token: str
) -> tuple[int, subprocess.Popen[bytes]]:
    """Start the process; return where its part of the log begins, and the process."""
    import adapters
    import dsbeval

    cwd = host.cwd or Path.cwd()
    setup = {
        "socket": theirs.fileno(),
        "parent": os.getpid(),
        "roots": {package.__name__: str(Path(str(package.__file__)).parent) for package in (dsbeval, adapters)},
        "path": str(cwd),
        "packages": sorted(set(packages)),
    }
    environment = {key: value for key, value in os.environ.items() if key not in _NOT_INHERITED}
    environment["PATH"] = os.pathsep.join([str(Path(host.python).parent), environment.get("PATH", os.defpath)])
    environment |= {**host.env, TOKEN: token}
    command = [host.python, "-u", "-X", "faulthandler", str(Path(__file__).with_name("serve.py")), json.dumps(setup)]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        out.write(f"--- {time.strftime('%Y-%m-%d %H:%M:%S')} started {host.python}\n".encode())
        out.flush()
        begun = out.tell()
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=cwd, env=environment,
                pass_fds=[theirs.fileno()], start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise HostFault(f"cannot be started: {error.filename or host.python}: {error.strerror}") from None
    return begun, process


def _end(process: subprocess.Popen[bytes], ours: socket.socket, token: str) -> None:
    """End a process and its descendants."""
    ours.close()
    if process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for _ in range(5):  # one that is forking while it is looked for is found the next time
        left = _with_token(token)
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not left:
            return
        time.sleep(0.01)


def _with_token(token: str) -> list[int]:
    """Return the processes whose environment holds the token; none where there is no /proc."""
    mark = f"{TOKEN}={token}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark in path.read_bytes():
                found.append(int(path.parent.name))
    return found
