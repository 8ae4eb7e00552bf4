"""Errors that a user can mend. Each message is one line: where, what is wrong, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DsbevalError(Exception):
    """Base of every error that is reported as one clear line, without a traceback."""


class PackError(DsbevalError):
    """The data of a pack is wrong; the message names file, entry, field and what is allowed."""


class AudioError(DsbevalError):
    """A signal or an audio file is not what it must be (rate, shape, type, finite values)."""


class AgentError(DsbevalError):
    """An agent cannot be loaded, or broke its contract while it ran."""


class HopelessError(AgentError):
    """The agent will be in no later case what it was not in this one: the run stops, with one error and not with one a case."""


class ModelsError(DsbevalError):
    """What is said about models is wrong: a needs.toml, a models.toml; or an environment is not what a model needs."""


class SessionLostError(AgentError):
    """A service broke a conversation off, or could not take it on: it may be had again, but only from its beginning.

    ``wait_s``: the service asks to be left alone for so long; None where it does not say.
    """

    def __init__(self, message: str, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class RunError(DsbevalError):
    """A run folder is missing something, or is not what the command needs."""


class UnjudgedError(DsbevalError):
    """A judge was asked for and has not given an answer that can be used; the case has no score."""


class OptionError(DsbevalError):
    """A command-line option has a value that is not allowed."""


def near(name: str, known: Iterable[str]) -> str:
    """Return a hint that names the nearest known names, for the end of an error message."""
    names = sorted(known)
    hits = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if hits:
        return "did you mean " + " or ".join(hits) + "?"
    return "known: " + ", ".join(names)
