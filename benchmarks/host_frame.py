"""What it costs to have an agent in a process of its own: a frame there and back, against the 80 ms that a frame lasts.

Run: ``python benchmarks/host_frame.py`` (Linux). Least over rounds, because other load only ever adds: elapsed time, and
the processor time of both processes. The agent returns the frame that it hears.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from dsbeval.agent import Agent
from dsbeval.host.agent import HostedAgent
from dsbeval.host.process import Host
from dsbeval.loading import load_agent

FRAME_S = 0.08
FRAMES, ROUNDS = 500, 10

SOURCE = """
from adapters.controls import Echo
from dsbeval.agent import Capabilities, Interaction

class Echo80(Echo):
    @property
    def capabilities(self):
        return Capabilities(Interaction.FRAME_SYNCHRONOUS, frame=1920, text=False)
"""


def cpu_s(agent: Agent) -> float:
    """Return the processor time of this process and of the agent's."""
    own = time.process_time()
    if isinstance(agent, HostedAgent):
        own += int(Path(f"/proc/{agent.pid}/schedstat").read_text().split()[0]) / 1e9
    return own


def measure(agent: Agent) -> tuple[float, float]:
    """Return the least elapsed and processor time of a frame, in seconds."""
    frame = np.full(1920, 0.1, np.float32)
    elapsed, cpu = [], []
    with agent.open("", 0) as session:
        for _ in range(ROUNDS):
            begun, used = time.perf_counter(), cpu_s(agent)
            for _ in range(FRAMES):
                session.step(frame)
            elapsed.append(time.perf_counter() - begun)
            cpu.append(cpu_s(agent) - used)
    return min(elapsed) / FRAMES, min(cpu) / FRAMES


def main() -> None:
    """Print both figures, in process and in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "echo80.py")
        path.write_text(SOURCE)
        for title, host in (("in process", None), ("in its own process", Host(sys.executable))):
            agent = load_agent(f"{path}:Echo80", host=host, log=Path(folder, "log"))
            _ = agent.capabilities
            elapsed, cpu = measure(agent)
            agent.close()
            print(
                f"{title:20} elapsed {1e6 * elapsed:7.1f} us ({elapsed / FRAME_S:.4f} of a frame)   "
                f"cpu {1e6 * cpu:7.1f} us ({cpu / FRAME_S:.4f} of a frame)"
            )


if __name__ == "__main__":
    main()
