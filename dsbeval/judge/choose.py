"""A judge by its name on the command line."""

from __future__ import annotations

from collections.abc import Callable

from dsbeval.errors import OptionError, near
from dsbeval.judge.contract import Judge
from dsbeval.judge.cost import Price

FORMS = "none, offline, anthropic:MODEL or openai:MODEL"
DEFAULT = "offline"


def make_judge(
    spec: str,
    base_url: str | None = None,
    *,
    price: Price | None = None,
    timeout_s: float = 90.0,
    sleep: Callable[[float], None] | None = None,
) -> Judge | None:
    """Return the judge that ``spec`` names, or None for ``none``.

    Call it before anything is recorded: a missing key or SDK, or a name that is none, is one clear line here
    (:class:`~dsbeval.judge.contract.JudgeError` or :class:`~dsbeval.errors.OptionError`). Nothing is sent.
    """
    provider, colon, model = spec.partition(":")
    if provider in ("none", "offline"):
        if colon:
            raise OptionError(f"--judge: {provider} takes no model; give {provider} alone")
        if base_url is not None:
            raise OptionError(
                f"--judge-base-url: {provider} asks no server; give it with openai:MODEL or anthropic:MODEL"
            )
        return _offline() if provider == "offline" else None
    if provider not in ("openai", "anthropic"):
        hint = near(provider, ("none", "offline", "openai", "anthropic"))
        raise OptionError(f"--judge: {spec!r} is not {FORMS}; {hint}")
    if not model.strip():
        raise OptionError(f"--judge: {spec!r} names no model; give {provider}:MODEL")
    from dsbeval.judge.providers.anthropic import Anthropic
    from dsbeval.judge.providers.base import Settings
    from dsbeval.judge.providers.openai import OpenAI

    settings = Settings(base_url=base_url, price=price, timeout_s=timeout_s, sleep=sleep)
    return (OpenAI if provider == "openai" else Anthropic)(model.strip(), settings)


def _offline() -> Judge:
    from dsbeval.judge.offline import OfflineJudge

    return OfflineJudge()
