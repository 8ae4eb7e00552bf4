"""What a service has counted: sessions, responses, tokens; and what they cost where prices were given."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from dsbeval.agent import Usage
from dsbeval.errors import OptionError
from dsbeval.usage import COST, UNCOUNTED

Price = Mapping[str, float]


class Meter:
    """The counters of an agent. Both sides of a conversation may count at once.

    ``price`` is US dollars a million of each kind of token, or a minute.
    """

    def __init__(self, of: Mapping[str, str], price: Price | None) -> None:
        self._of, self._price = dict(of), price
        self._counts: dict[str, float] = {}
        self._cost = 0.0
        self._lock = threading.Lock()

    def count(self, dollars: float = 0.0, **what: float) -> None:
        """Add to some counters, and to the cost."""
        with self._lock:
            self._cost += dollars
            for name, value in what.items():
                self._counts[name] = self._counts.get(name, 0) + value

    def response(self, usage: Any) -> dict[str, int]:
        """Count a response by the usage that the service states, and return its tokens; empty where it states none."""
        tokens = tokens_of(usage)
        stated = {*tokens} >= {"text_in", "audio_in", "text_out", "audio_out"}
        priced = self._price if stated and self._price else {}
        dollars = sum(tokens.get(kind, 0) * price for kind, price in priced.items()) / 1e6
        self.count(dollars, responses=1, **tokens, **({} if stated else {UNCOUNTED: 1}))
        return tokens

    def time(self, seconds: float) -> None:
        """Count billed time."""
        self.count((self._price or {}).get("minute", 0.0) * seconds / 60, billed_s=seconds)

    def usage(self) -> Usage:
        """Return the counters."""
        with self._lock:
            counts = dict(self._counts)
            if self._price is not None:
                counts[COST] = self._cost
        return Usage(self._of, counts)


def tokens_of(usage: Any) -> dict[str, int]:
    """Return the tokens of a response's ``usage``: in and out, by kind; cached ones are not among ``text_in`` and ``audio_in``.

    A kind that the service does not state is left out.
    """
    if usage is None:
        return {}
    told = usage if isinstance(usage, Mapping) else usage.to_dict()
    inward = told.get("input_token_details") or {}
    outward = told.get("output_token_details") or {}
    out = {"input_tokens": told.get("input_tokens"), "output_tokens": told.get("output_tokens")}
    cached = inward.get("cached_tokens_details")
    if cached is None and not inward.get("cached_tokens"):
        cached = {}
    for kind in ("text", "audio"):
        out[f"{kind}_out"] = outward.get(f"{kind}_tokens")
        whole = inward.get(f"{kind}_tokens")
        if whole is not None and cached is not None:
            out[f"{kind}_cached"] = cached.get(f"{kind}_tokens") or 0
            out[f"{kind}_in"] = whole - out[f"{kind}_cached"]
    return {name: int(value) for name, value in out.items() if value is not None}


def read_price(given: object, kinds: Sequence[str]) -> Price | None:
    """Return the prices of a ``price`` argument. Raises :class:`OptionError`, naming what is missing."""
    if given is None:
        return None
    wanted = "{" + ", ".join(f"{kind}: 1.0" for kind in kinds) + "}"
    if not isinstance(given, Mapping) or set(given) != set(kinds):
        odd = sorted(set(kinds) ^ set(given)) if isinstance(given, Mapping) else [repr(given)]
        raise OptionError(f"--model-arg price: needs exactly {wanted}, in US dollars; see {', '.join(map(str, odd))}")
    for kind, value in given.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
            raise OptionError(f"--model-arg price: {kind} is {value!r}; give US dollars, 0 or more")
    return {str(kind): float(value) for kind, value in given.items()}
