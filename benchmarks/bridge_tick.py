"""What the bridge itself costs a tick: two agents that do nothing, and whole conversations of them.

Run: ``python benchmarks/bridge_tick.py``. The target is under 1 ms a tick on an idle core; a tick is 80 ms of conversation.
The figures are the least over conversations, because other load on the machine only ever adds: elapsed time, and the
processor time of all threads.
"""

from __future__ import annotations

import time

import numpy as np

from dsbeval.agent import Agent, Capabilities, Emission, Interaction, Session
from dsbeval.audio import Signal
from dsbeval.dyadic.bridge import run_dyad
from dsbeval.dyadic.ear import TICK

TARGET_MS = 1.0
SHAPES = {
    "two agents, 24 kHz, 80 ms": (Capabilities(Interaction.FRAME_SYNCHRONOUS, frame=TICK),) * 2,
    "two agents, 24 kHz, 20 ms": (Capabilities(Interaction.FRAME_SYNCHRONOUS, frame=480),) * 2,
    "24 kHz against 16 kHz": (
        Capabilities(Interaction.FRAME_SYNCHRONOUS, frame=TICK),
        Capabilities(Interaction.FRAME_SYNCHRONOUS, 16_000, 16_000, 1280),
    ),
    "24 kHz against 1 s chunks": (
        Capabilities(Interaction.FRAME_SYNCHRONOUS, frame=TICK),
        Capabilities(Interaction.CHUNKED, 16_000, 24_000, 16_000),
    ),
}


class Idle(Agent):
    """Emits a frame of noise for every frame, made beforehand: all the time that passes is the bridge's."""

    name = "idle"

    def __init__(self, shape: Capabilities) -> None:
        self._shape = shape
        size = shape.frame * shape.output_rate // shape.input_rate
        noise = np.random.default_rng(0).normal(0, 0.1, size)
        self._emission = Emission(noise.astype(np.float32))

    @property
    def capabilities(self) -> Capabilities:
        """Return the shape under test."""
        return self._shape

    def open(self, prompt: str, seed: int) -> Session:  # noqa: ARG002
        """Return a session that costs nothing."""
        return _IdleSession(self._emission)


class _IdleSession(Session):
    def __init__(self, emission: Emission) -> None:
        self._emission = emission

    def step(self, heard: Signal) -> Emission:  # noqa: ARG002
        return self._emission


def cost_ms(shapes: tuple[Capabilities, Capabilities], *, concurrent: bool, repeats: int = 7) -> tuple[float, float]:
    """Return elapsed and processor time of a tick in milliseconds, from the opening to the rendered channels."""
    ticks = 750
    elapsed, processor = [], []
    for _ in range(repeats):
        a, b = (Idle(shape) for shape in shapes)
        begun, worked = time.perf_counter(), time.process_time()
        run_dyad(a, b, ("", ""), (0, 0), concurrent=concurrent)
        elapsed.append((time.perf_counter() - begun) / ticks * 1000)
        processor.append((time.process_time() - worked) / ticks * 1000)
    return min(elapsed), min(processor)


def main() -> None:
    """Print a line a shape."""
    for name, shapes in SHAPES.items():
        for concurrent in (True, False):
            elapsed, processor = cost_ms(shapes, concurrent=concurrent)
            how = "concurrent" if concurrent else "serial"
            verdict = "ok" if elapsed < TARGET_MS else f"over {TARGET_MS:g} ms"
            print(f"{name:28s} {how:10s} {elapsed:6.3f} ms a tick, {processor:6.3f} ms of processor  {verdict}")


if __name__ == "__main__":
    main()
