"""Agents that run in processes of their own in these tests. They need numpy and dsbeval only."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from numpy.random import default_rng

from dsbeval.agent import Agent, Capabilities, Emission, Interaction, Session, TextToken, Usage
from dsbeval.audio import Signal
from dsbeval.errors import SessionLostError

FRAME = 1920


class Noise(Agent):
    """Answers each frame with noise that prompt, seed and everything heard so far decide, and with text."""

    def __init__(self, level: float = 0.1, checkpoint: str | None = None, device: str = "auto") -> None:
        self.level, self.checkpoint, self.device = level, checkpoint, device

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(Interaction.FRAME_SYNCHRONOUS, frame=FRAME)

    def open(self, prompt: str, seed: int) -> Session:
        return NoiseSession(self.level, prompt, seed)


class NoiseSession(Session):
    def __init__(self, level: float, prompt: str, seed: int) -> None:
        self._level = level
        self._random = default_rng([seed, *prompt.encode()])
        self._memory = 0.0

    def step(self, heard: Signal) -> Emission:
        self._memory = 0.9 * self._memory + float(np.abs(heard).mean())
        noise = self._random.normal(0.0, self._level + self._memory, heard.size)
        return Emission(np.clip(noise, -1, 1).astype(np.float32), (TextToken(f"{self._memory:.3f} ", 1 / 3),))

    def finish(self) -> Emission:
        return Emission(np.full(7, self._level, np.float32))

    def cut_off(self) -> Emission:
        return Emission(text=(TextToken(f"{self._memory:.3f}", -0.25),))


class Many(Noise):
    """Returns several emissions that use every field."""

    def open(self, prompt: str, seed: int) -> Session:
        return _ManySession()


class _ManySession(Session):
    def step(self, heard: Signal) -> tuple[Emission, ...]:
        return (
            Emission(heard[:100], (TextToken("Zoë ", 0.1), TextToken('"\n\x00🙂', 1e-17)), flush=True, rate=24_000),
            Emission(arrived=time.monotonic()),
            Emission(heard[100:103], done=True),
        )


class Environment(Noise):
    """Says where it is."""

    def open(self, prompt: str, seed: int) -> Session:
        return _EnvironmentSession(prompt)


class _EnvironmentSession(Session):
    def __init__(self, prompt: str) -> None:
        self._prompt = prompt

    def step(self, heard: Signal) -> Emission:
        said = {
            "python": sys.executable,
            "cwd": str(Path.cwd()),
            "modules": " ".join(sorted(sys.modules)),
            "device": os.environ.get("CUDA_VISIBLE_DEVICES", "unset"),
            "variable": os.environ.get(self._prompt, "unset"),
        }
        return Emission(text=tuple(TextToken(f"{key}={value}\n") for key, value in said.items()))


class Faulty(Noise):
    """Does ``fault`` in step ``at`` of a session; with ``once``, a file, only if that is there, and removes it."""

    def __init__(self, fault: str = "", at: int = 3, once: str = "", pids: str = "", when: str = "step") -> None:
        super().__init__()
        self.fault, self.at, self.once, self.pids, self.when = fault, at, once, pids, when
        if when == "start":
            self.do()

    def open(self, prompt: str, seed: int) -> Session:
        if self.when == "open":
            self.do()
        return _FaultySession(self, prompt, seed)

    def do(self) -> None:
        if self.once:
            if not Path(self.once).exists():
                return
            Path(self.once).unlink()
        if self.pids:
            command = [sys.executable, "-c", "import time; time.sleep(600)"]
            children = [subprocess.Popen(command, start_new_session=new) for new in (False, True)]
            Path(self.pids).write_text(" ".join(str(child.pid) for child in children))
        getattr(self, self.fault)()

    def die(self) -> None:
        sys.stdout.write("about to die\n")
        sys.stderr.write("of\ta\x1b[31m signal\n")
        os.kill(os.getpid(), signal.SIGKILL)

    def leave(self) -> None:
        os._exit(5)

    def hang(self) -> None:
        time.sleep(600)

    def refuse(self) -> None:
        raise RuntimeError("device\nlost")

    def garbage(self) -> None:
        os.write(_socket(), b"Loading weights: 100%|#####| 12/12 [00:01<00:00]\n")

    def trickle(self) -> None:
        from dsbeval.host.wire import Kind, Message

        for byte in Message(Kind.ANSWER, 1, 1, {"one": True, "emissions": []}).encode()[:-1]:
            os.write(_socket(), bytes([byte]))
            time.sleep(0.3)

    def twice(self) -> None:
        from dsbeval.host.wire import Kind, Message

        os.write(_socket(), Message(Kind.ANSWER, 1, 1, {"one": True, "emissions": []}).encode())

    def chatter(self) -> None:
        for _ in range(10):
            sys.stderr.write("x" * 99 + "\n" + ("blah " * 20 + "\n") * 10_000)


class _FaultySession(NoiseSession):
    def __init__(self, agent: Faulty, prompt: str, seed: int) -> None:
        super().__init__(agent.level, prompt, seed)
        self._agent = agent
        self._steps = 0

    def step(self, heard: Signal) -> Emission:
        self._steps += 1
        if self._agent.when == "step" and self._steps == self._agent.at and self._agent.fault:
            self._agent.do()
        return super().step(heard)


def _socket() -> int:
    """Return the socket that an agent has no business with."""
    return next(fd for fd in range(3, 64) if _is_socket(fd))


def _is_socket(fd: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(fd).st_mode)
    except OSError:
        return False


class Service(Noise):
    """Counts what it uses, takes so many sessions at once, and loses one that is asked to be lost."""

    def __init__(self, concurrency: int = 3) -> None:
        super().__init__()
        self.concurrency = concurrency
        self.steps = 0

    def usage(self) -> Usage:
        return Usage({"model": "noise"}, {"steps": self.steps, "cost_usd": self.steps / 8})

    def open(self, prompt: str, seed: int) -> Session:
        return _ServiceSession(self, prompt, seed)


class _ServiceSession(NoiseSession):
    def __init__(self, agent: Service, prompt: str, seed: int) -> None:
        super().__init__(agent.level, prompt, seed)
        self._agent, self._prompt = agent, prompt
        self._steps = 0

    def step(self, heard: Signal) -> Emission:
        if self._prompt == "die":
            os._exit(5)
        if self._prompt == "lose":
            raise SessionLostError("the service is busy", 2.5)
        self._agent.steps += 1
        self._steps += 1
        return super().step(heard)

    def facts(self) -> dict[str, object]:
        return {"steps": self._steps, "asked": self._prompt}
