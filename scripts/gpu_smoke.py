"""The steps of ``scripts/gpu_smoke.sh``: see there.

A step that fails is told in one line, and the others are still taken. Nothing is measured of the models' speech: the
weights are random.
"""

from __future__ import annotations

import argparse
import gc
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from dsbeval.agent import Agent
from dsbeval.dyadic.bridge import run_dyad
from dsbeval.loading import load_agent
from scripts.random_weights import CODEC, NEEDED_GB, write_released_size, write_tiny
from tests.adapters.frames import converse, noise

FRAME_MS = 80.0
SENTENCE = "You are a coach who listens and asks one question at a time. "
WARM = 5
SEEDED = 8


class Smoke:
    """One run: where it works, and what has come of it."""

    def __init__(self, options: argparse.Namespace, work: Path) -> None:
        self.device = "cpu" if options.cpu else "cuda"
        self.tiny, self.frames, self.window_s = options.tiny, options.frames, options.window
        self.prompt = SENTENCE * (1 if options.tiny else 10)
        self.work = work
        self.failed: list[str] = []

    @contextmanager
    def step(self, name: str) -> Iterator[list[str]]:
        """Take a step; what is put into the list is printed behind its name."""
        said: list[str] = []
        begun = time.perf_counter()
        try:
            yield said
        except Exception as error:
            self.failed.append(name)
            said.append(f"{type(error).__name__}: {' '.join(str(error).split())[:500]}")
        mark = "FAIL" if name in self.failed else "ok  "
        print(f"{mark} {name} ({time.perf_counter() - begun:.1f} s): {'; '.join(said)}", flush=True)

    def fail(self, name: str) -> None:
        """Count a step as failed that did what it should, only not well enough."""
        self.failed.append(name)

    # Steps ------------------------------------------------------------------------------------------------------

    def model(self, name: str) -> None:
        """Take all steps of one model."""
        folder = self.work / name
        with self.step(f"{name}: random weights are written") as said:
            said.append(self._write(name, folder))
        if not folder.exists():
            return
        pair: list[Agent] = []
        with self.step(f"{name}: loaded from disk") as said:
            pair.append(self._load(name, folder))
            said.append(self._memory())
        if pair:
            self._alone(name, pair[0])
            with self.step(f"{name}: two instances on one device talk in lockstep") as said:
                pair.append(self._load(name, folder))
                said.extend(self._talk(*pair))
        for agent in pair:
            agent.close()
        pair.clear()
        gc.collect()
        shutil.rmtree(folder)

    def _alone(self, name: str, agent: Agent) -> None:
        with self.step(f"{name}: frame time") as said:
            costs = self._costs(agent, said)
            mean, p95 = float(np.mean(costs)), float(np.percentile(costs, 95))
            said.append(f"{mean:.1f} ms a frame, p95 {p95:.1f}, most {max(costs):.1f}, of {FRAME_MS:g} ms")
            if p95 > FRAME_MS and not self.tiny:
                said.append("does NOT hold real time")
                self.fail(f"{name}: frame time")
        with self.step(f"{name}: equal seeds give equal bytes") as said:
            frames = noise(SEEDED, size=agent.capabilities.frame)
            one, other, again = (converse(agent, frames, "You are brief.", seed) for seed in (1, 2, 1))
            assert one == again, "two sessions with one seed differ"
            assert one != other, "two seeds give the same"
            said.append(f"{SEEDED} frames, three sessions")

    def _costs(self, agent: Agent, said: list[str]) -> list[float]:
        begun = time.perf_counter()
        agent.open(self.prompt, 1).close()  # compiles and captures
        opened = time.perf_counter()
        with agent.open(self.prompt, 1) as session:
            said.append(
                f"first session open after {opened - begun:.2f} s, second after {time.perf_counter() - opened:.2f} s"
            )
            out = []
            for frame in noise(WARM + self.frames, size=agent.capabilities.frame):
                begun = time.perf_counter()
                session.step(frame)
                out.append((time.perf_counter() - begun) * 1000)
        return out[WARM:]

    def _talk(self, one: Agent, other: Agent) -> list[str]:
        begun = time.perf_counter()
        runs = [
            run_dyad(one, other, (self.prompt, self.prompt), (1, 2), opener="a", window_s=self.window_s, lead_in_s=0.5)
            for _ in range(2)
        ]
        factor = (time.perf_counter() - begun) / (2 * self.window_s)
        assert runs[0].a.tobytes() == runs[1].a.tobytes(), "side a differs between equal runs"
        assert runs[0].b.tobytes() == runs[1].b.tobytes(), "side b differs between equal runs"
        return [
            f"twice {self.window_s:g} s, equal bytes",
            f"{factor:.2f} s for a second, prompts included",
            self._memory(),
        ]

    def tests(self, root: Path) -> None:
        """Run the tests that are marked gpu but for those that start processes; on the CPU, a few of the same ones."""
        chosen = (
            ["-m", "gpu", "-k", "not process_of_its_own"]
            if self.device == "cuda"
            else ["-m", "not gpu", "-k", "test_moshi and (declares or equal_seeds)"]
        )
        with self.step("the tests that are marked gpu" if self.device == "cuda" else "a few tests, on the CPU") as said:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", *chosen, "tests/adapters"],
                cwd=root, capture_output=True, text=True, check=False,
            )  # fmt: skip
            lines = done.stdout.strip().splitlines()
            said.extend([*(line for line in lines if " ms a frame" in line), *lines[-1:]])
            if done.returncode:
                print(done.stdout[-6000:], flush=True)
                raise RuntimeError(f"pytest ended with {done.returncode}")

    # Parts ------------------------------------------------------------------------------------------------------

    def _load(self, name: str, folder: Path) -> Agent:
        args: dict[str, object] = {"device": self.device}
        if name == "f_actor":
            args |= {"codec": f"nanocodec-torch:{folder / CODEC}", **({"window": 4} if self.tiny else {})}
        return load_agent(name, args, str(folder))

    def _memory(self) -> str:
        if self.device == "cpu":
            return "on the CPU"
        import torch

        most = torch.cuda.max_memory_allocated() / 2**30
        torch.cuda.reset_peak_memory_stats()
        return f"{most:.1f} GiB of the device at most"

    def _write(self, name: str, folder: Path) -> str:
        if self.tiny:
            write_tiny(name, folder)
            return "tiny"
        free = shutil.disk_usage(self.work).free / 1e9
        if free < NEEDED_GB[name]:
            raise RuntimeError(f"{self.work} has {free:.0f} GB free and {NEEDED_GB[name]} are needed; give --work DIR")
        return f"{write_released_size(name, folder, self.device) / 1e9:.2f} billion"


def main(arguments: Sequence[str] | None = None) -> int:
    """Take all steps; return the exit status."""
    parser = argparse.ArgumentParser(prog="scripts/gpu_smoke.sh", description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="tiny weights instead of the released sizes")
    parser.add_argument("--cpu", action="store_true", help="on the CPU")
    parser.add_argument("--models", default=",".join(NEEDED_GB), help="which models (default: all three)")
    parser.add_argument("--frames", type=int, default=100, help="frames that are timed (default: 100, 8 s)")
    parser.add_argument("--window", type=float, default=4.0, help="seconds of the conversation (default: 4)")
    parser.add_argument("--work", type=Path, default=None, help="folder for the random weights")
    parser.add_argument("--no-tests", action="store_true", help="leave the marked tests out")
    options = parser.parse_args(arguments)
    models = options.models.split(",")
    if unknown := [name for name in models if name not in NEEDED_GB]:
        parser.error(f"--models: {unknown[0]!r} is none of {', '.join(NEEDED_GB)}")
    import torch

    if not options.cpu and not torch.cuda.is_available():
        parser.error("torch sees no CUDA device; to try the script itself: --tiny --cpu")
    if options.cpu and not options.tiny:
        parser.error("the released sizes are for a GPU; add --tiny")
    if options.cpu:
        torch.set_num_threads(1)
    signal.signal(signal.SIGTERM, _ended)
    where = "the CPU" if options.cpu else torch.cuda.get_device_name()
    print(f"{where}; Python {platform.python_version()}, torch {torch.__version__}", flush=True)
    with tempfile.TemporaryDirectory(prefix="dsbeval-smoke-", dir=options.work) as work:
        smoke = Smoke(options, Path(work))
        for name in models:
            smoke.model(name)
    if not options.no_tests:
        smoke.tests(Path(__file__).resolve().parents[1])
    print(
        f"{len(smoke.failed)} steps failed: {', '.join(smoke.failed)}" if smoke.failed else "every step passed",
        flush=True,
    )
    return 1 if smoke.failed else 0


def _ended(number: int, frame: object) -> None:  # noqa: ARG001
    """Leave by way of all blocks, so that nothing is left on the disk and no tests run on."""
    sys.exit(124)


if __name__ == "__main__":
    sys.exit(main())
