"""A language model and its codec on one device: their streaming state, their random numbers, one frame at a time.

Conventions
-----------
* An engine serves one session at a time. Streaming stays on between sessions and is reset for each: on a GPU that keeps the
  captured graphs. After an exception inside a step it is taken down and made anew, because neither the token
  ring nor the attention caches can be trusted then (a reset does not clear the caches, and a NaN in them would stay).
* Codes and tokens are int64 tensors of shape ``[1, K, 1]``, audio is float32 of shape ``[1920]``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from adapters.kyutai.package import Package
from adapters.local import GENERATORS
from dsbeval.audio import Signal
from dsbeval.errors import AgentError

RATE = 24_000
FRAME = 1920
FRAME_S = FRAME / RATE
WARM_UP = 4
"""Silent frames: on a GPU the first call of a function is made as it is, the second captures its graph."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Where and how an engine computes."""

    device: str = "cpu"
    graphs: bool = True
    """Whether CUDA graphs are captured."""
    compiled: bool = True
    """Whether the package may compile its small kernels, which needs a C++ compiler; never on a CPU, where it takes longer
    than it saves."""

    @property
    def on_gpu(self) -> bool:
        """Whether the device is a GPU."""
        return self.device.startswith("cuda")


class RandomNumbers:
    """The random numbers of one session: the device's generator holds them while the session computes, and only then."""

    def __init__(self, device: str, seed: int) -> None:
        import torch

        generator = torch.Generator(device)
        generator.manual_seed(seed & 0xFFFF_FFFF_FFFF_FFFF)
        self._device = device
        self._state = generator.get_state()

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Draw from these numbers inside."""
        outer = self._exchange(self._state)
        try:
            yield
        finally:
            self._state = self._exchange(outer)

    def _exchange(self, state: Any) -> Any:
        import torch

        if self._device.startswith("cuda"):
            before = torch.cuda.get_rng_state(self._device)
            torch.cuda.set_rng_state(state, self._device)
        else:
            before = torch.get_rng_state()
            torch.set_rng_state(state)
        return before


class Engine:
    """The models of one agent.

    Parameters
    ----------
    agent : str
        Name, for messages.
    package : Package
    lm_gen, mimi
        The generator over the language model, and the codec.
    setting : Setting
    """

    def __init__(self, agent: str, package: Package, lm_gen: Any, mimi: Any, setting: Setting) -> None:
        self.agent = agent
        self.lm_gen = lm_gen
        self._package = package
        self._mimi = mimi
        self._setting = setting
        self.codebooks = int(mimi.num_codebooks)
        self._streaming: ExitStack | None = None
        self._numbers: RandomNumbers | None = None
        self._owner: object | None = None

    # Sessions ---------------------------------------------------------------------------------------------------

    def begin(self, owner: object, seed: int) -> None:
        """Give the engine to a session, in a fresh state."""
        with GENERATORS:
            if self.lm_gen is None:
                raise AgentError(f"agent {self.agent}: the agent is closed; load it again")
            if self._owner is not None:
                raise AgentError(
                    f"agent {self.agent}: a session is still open, and a loaded model serves one at a time; close it, or load "
                    "the agent a second time"
                )
            with self._alone(RandomNumbers(self._setting.device, 0)):
                if self._streaming is None:
                    self._start()
                self.reset()
            self._owner, self._numbers = owner, RandomNumbers(self._setting.device, seed)

    def end(self, owner: object) -> None:
        """Take the engine back; from anybody else but its owner nothing is taken."""
        with GENERATORS:
            if self._owner is owner:
                self._owner = self._numbers = None

    def close(self) -> None:
        """End streaming and let go of the models. A second call does nothing."""
        with GENERATORS:  # memory that is given back would break another engine's capture of a graph
            self._stop()
            self.lm_gen = self._mimi = self._owner = self._numbers = None
            if self._setting.on_gpu:
                import torch

                torch.cuda.empty_cache()

    @contextmanager
    def turn(self, owner: object) -> Iterator[None]:
        """Compute for a session, with its own random numbers. An exception inside ends the session's streaming."""
        with GENERATORS:  # a session that another thread closes meanwhile is closed before the turn or after it
            if self._owner is not owner or self._numbers is None:
                raise AgentError(f"agent {self.agent}: the session is closed; open another one")
            if self._streaming is None:
                raise AgentError(f"agent {self.agent}: the session broke in an earlier step; open another one")
            with self._alone(self._numbers):
                yield

    @contextmanager
    def _alone(self, numbers: RandomNumbers) -> Iterator[None]:
        import torch

        with GENERATORS, ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            stack.enter_context(numbers.in_place())
            if not self._setting.on_gpu or not self._setting.compiled:
                stack.enter_context(self._package.compiling.no_compile())
            if not self._setting.graphs:
                stack.enter_context(self._package.compiling.no_cuda_graph())
            if self._setting.on_gpu:
                stack.enter_context(torch.cuda.device(self._setting.device))
                stack.enter_context(torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True))
            try:
                yield
            except BaseException:
                self._stop()
                raise

    # Inside a turn ----------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Bring the models into their first state."""
        self.lm_gen.reset_streaming()
        self._mimi.reset_streaming()

    def reset_codec(self) -> None:
        """Bring the codec alone into its first state."""
        self._mimi.reset_streaming()

    def encode(self, frame: Signal) -> Any:
        """Return the codes of a frame."""
        import torch

        audio = torch.from_numpy(np.array(frame, np.float32)).to(self._setting.device)
        return self._mimi.encode(audio[None, None])

    def codes(self, values: tuple[int, ...]) -> Any:
        """Return codes as a tensor."""
        import torch

        return torch.tensor(values, dtype=torch.long, device=self._setting.device)[None, :, None]

    def step(self, codes: Any, instead: Any = None) -> Any | None:
        """Let the language model take the user's codes; return its tokens, text first, or None while it has none.

        ``instead`` are codes that stand in place of those it would generate.
        """
        return self.lm_gen.step(codes) if instead is None else self.lm_gen.step(codes, instead)

    def play_prompt(self) -> None:
        """Let NVIDIA's package play the prompt that it was given; then the codec, which it may have used, is as new."""
        self.lm_gen.step_system_prompts(self._mimi)
        self.reset_codec()

    def decode(self, tokens: Any) -> Signal:
        """Return the audio of the model's frame."""
        audio = self._mimi.decode(tokens[:, 1 : 1 + self.codebooks])[0, 0].float().cpu().numpy()
        if audio.shape != (FRAME,):
            raise AgentError(f"agent {self.agent}: the codec returned {audio.shape[0]} samples for a frame of {FRAME}")
        if not np.isfinite(audio).all():
            raise AgentError(f"agent {self.agent}: the codec returned NaN or infinite samples; are these its weights?")
        return np.array(audio, np.float32)

    # Streaming --------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        stack = ExitStack()
        try:
            stack.enter_context(self.lm_gen.streaming(1))
            stack.enter_context(self._mimi.streaming(1))
        except BaseException:
            stack.close()
            raise
        self._streaming = stack
        if self._setting.on_gpu:
            for _ in range(WARM_UP):
                tokens = self.step(self.encode(np.zeros(FRAME, np.float32)))
                if tokens is not None:
                    self.decode(tokens)

    def _stop(self) -> None:
        stack, self._streaming = self._streaming, None
        if stack is not None:
            stack.close()
