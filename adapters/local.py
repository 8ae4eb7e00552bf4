"""What adapters of local models share: weights, devices, packages, exact frames, whole answers, random numbers."""

from __future__ import annotations

import importlib
import math
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import numpy as np

from dsbeval.audio import Signal, check_signal
from dsbeval.checkpoints import resolve
from dsbeval.errors import AgentError, DsbevalError

T = TypeVar("T")


def weights_folder(
    agent: str, checkpoint: str | None, hub_id: str, patterns: tuple[str, ...], needed: tuple[str, ...]
) -> Path:
    """Return the folder that ``--checkpoint`` names; ``needed`` are the files without which it is none of this agent's.

    Raises :class:`AgentError`, or :class:`~dsbeval.checkpoints.CheckpointError` with the command that gets the weights.
    """
    if not checkpoint:
        raise AgentError(f"agent {agent}: no --checkpoint is given; give {hub_id}, or a folder with its files")
    found = resolve(str(checkpoint), patterns)
    if not found.path.is_dir():
        raise AgentError(f"agent {agent}: --checkpoint {found.path} is a file; give the folder that it is in")
    missing = [name for name in needed if not (found.path / name).is_file()]
    if missing:
        raise AgentError(
            f"agent {agent}: --checkpoint {found.path} holds no {', no '.join(missing)}; get the whole of it with: "
            f"hf download {hub_id} --local-dir DIR, and give --checkpoint DIR"
        )
    return found.path


def load_package(agent: str, module: str, package: str) -> Any:
    """Import a module of the model's environment. Raises :class:`AgentError` that names the package."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module == error.name or module.startswith(f"{error.name}.")):
            raise  # it is there, and lacks something of its own
        raise AgentError(
            f"agent {agent}: the package {package} is not installed; install adapters/{agent}/requirements.txt"
        ) from None


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the warnings of other people's packages from the run's own: at import they say nothing that a reader can mend."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def loaded(agent: str, place: Path, make: Callable[[], T]) -> T:
    """Return what ``make`` builds from a file or a folder. What does not fit becomes one line that names it."""
    import torch

    try:
        with quiet():
            return make()
    except DsbevalError:
        raise
    except torch.cuda.OutOfMemoryError as error:
        raise AgentError(
            f"agent {agent}: {place}: the device has not enough memory for it ({_short(error)})"
        ) from error
    except Exception as error:  # whatever the packages of a model say of a file that they cannot take
        raise AgentError(
            f"agent {agent}: {place}: cannot be loaded ({type(error).__name__}: {_short(error)})"
        ) from error


def _short(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 240 else text[:240] + " ..."


def check_number(
    agent: str,
    name: str,
    value: object,
    *,
    least: float,
    most: float = math.inf,
    whole: bool = False,
    above: bool = False,
) -> None:
    """Raise :class:`AgentError` unless an argument is a (``whole``) number from ``least`` (or ``above`` it) to ``most``."""
    fits = (
        not isinstance(value, bool)
        and isinstance(value, int if whole else int | float)
        and math.isfinite(value)
        and (least < value if above else least <= value)
        and value <= most
    )
    if not fits:
        needed = f"a {'whole ' if whole else ''}number {'above' if above else 'from'} {least:g}"
        needed += " on" if most == math.inf and not above else "" if most == math.inf else f" to {most:g}"
        raise AgentError(f"agent {agent}: --model-arg {name}={value!r}: {needed} is needed")


def load_object(agent: str, argument: str, place: str) -> Any:
    """Return what ``package.module:name`` names. Raises :class:`AgentError` that names the argument."""
    module, _, name = place.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise AgentError(f"agent {agent}: {argument} is {place!r}: {error}; give package.module:name") from None


def check_heard(agent: str, heard: Signal, frame: int, rate: int) -> None:
    """Raise unless ``heard`` is one frame of finite float32 samples."""
    check_signal(heard, f"agent {agent}: heard")
    if heard.size != frame:
        raise AgentError(f"agent {agent}: heard {heard.size} samples; a frame is {frame} at {rate} Hz")


def as_signal(tensor: Any) -> Signal:
    """Return a tensor of one channel, of any rank, as a float32 array that nothing else writes to."""
    array: Signal = np.array(tensor.detach().float().cpu().numpy().reshape(-1), np.float32)
    return array


# Turns of models that answer in text and speech


_MARK = re.compile(r"<\|[^|<>]*\|>|<(?:/)?(?:think|unit)>")


def plain(text: str) -> str:
    """Return a text without the marks of its model, such as ``<|im_end|>``."""
    return _MARK.sub("", text)


def check_answer(agent: str, text: str, audio: Signal, rate: int) -> None:
    """Raise :class:`AgentError` for an answer in words alone, or one in speech alone of more than a second.

    Either would be scored as something that the model did not do: as silence, or as having said nothing in words.
    """
    if text.strip() and not audio.size:
        raise AgentError(
            f"agent {agent}: an answer of {len(text)} characters came without audio; check its synthesiser"
        )
    if audio.size > rate and not text.strip():
        raise AgentError(
            f"agent {agent}: {audio.size / rate:.1f} s of audio came without text; check how the text is decoded"
        )


GENERATORS = threading.RLock()
"""Held by whoever puts the random numbers of one session into torch's generators, which all threads share."""


class Draws:
    """The random numbers of one session of a model that draws from torch's global generators.

    Inside the block the generators of the CPU and of every GPU are this session's, and nobody else who uses this class
    draws; outside they are as they were. So sessions do not depend on each other, whichever thread steps which.
    """

    def __init__(self, torch: Any, seed: int) -> None:
        self._torch, self._seed = torch, seed
        self._own: tuple[Any, list[Any]] | None = None
        self._outer: tuple[Any, list[Any]] | None = None

    def __enter__(self) -> None:
        GENERATORS.acquire()
        self._outer = self._states()
        if self._own is None:
            self._torch.manual_seed(self._seed)  # of every GPU too
        else:
            self._set(self._own)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._own = self._states()
        assert self._outer is not None
        self._set(self._outer)
        GENERATORS.release()

    def _states(self) -> tuple[Any, list[Any]]:
        cuda = self._torch.cuda
        return self._torch.get_rng_state(), cuda.get_rng_state_all() if cuda.is_initialized() else []

    def _set(self, states: tuple[Any, list[Any]]) -> None:
        cpu, gpus = states
        self._torch.set_rng_state(cpu)
        if gpus:
            self._torch.cuda.set_rng_state_all(gpus)


class OneAtATime:
    """Lets one session of a model be open at a time: its conversation is kept inside the model."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._open = False

    def take(self) -> None:
        """Begin a session. Raises :class:`AgentError` when one is open."""
        if self._open:
            raise AgentError(
                f"agent {self._agent}: another session is open, and the model holds one conversation; close it first, or "
                "load the agent twice"
            )
        self._open = True

    def give_back(self) -> None:
        """End it."""
        self._open = False
