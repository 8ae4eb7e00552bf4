"""Where a service is, which key it gets, and what its refusals mean."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from adapters._wire import PASSING_CLOSES
from dsbeval.errors import AgentError, OptionError, SessionLostError

OFFICIAL = "https://api.openai.com/v1"
NEEDS = "pip install 'openai[realtime]>=3.57'"

# What a service says of itself and not of the request: the case may be had again.
_PASSING_TYPES = frozenset({"server_error", "rate_limit_error", "overloaded_error"})
_PASSING_CODES = frozenset(
    {
        "rate_limit_exceeded",
        "session_limit_reached",
        "session_expired",
        "server_error",
        "internal_error",
        "server_overloaded",
        "overloaded",
    }
)
_TRY_AGAIN = re.compile(
    r"try again in\s+(?:(\d+)\s*m(?:in\w*)?(?![a-z]))?\s*(?:(\d+(?:\.\d+)?)\s*s(?:ec\w*)?\b)?\s*(?:(\d+)\s*ms\b)?",
    re.IGNORECASE,
)
_PASSING_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504, 529})


@dataclass(frozen=True)
class Address:
    """A service and its key. ``shown`` holds neither the key nor a query."""

    url: str
    key: str = field(repr=False, default="")
    key_env: str = ""
    azure: bool = False
    api_version: str = ""

    @property
    def shown(self) -> str:
        """The address as it may be printed."""
        url = urlsplit(self.url)
        return f"{url.hostname}{f':{url.port}' if url.port else ''}{url.path.rstrip('/')}"

    @functools.cached_property
    def client(self) -> Any:
        """The SDK's client, which makes the connections of all sessions. Its environment variables have no part in it."""
        import openai

        websocket = "ws" + self.url.removeprefix("http")
        if self.azure and self.api_version:
            return openai.AsyncAzureOpenAI(
                api_key=self.key,
                api_version=self.api_version,
                azure_endpoint=self.url,
                websocket_base_url=f"{websocket}/openai",
            )
        if self.azure:
            return openai.AsyncOpenAI(
                api_key=self.key,
                base_url=f"{self.url}/openai/v1",
                websocket_base_url=f"{websocket}/openai/v1",
                default_headers={"api-key": self.key},
            )
        return openai.AsyncOpenAI(api_key=self.key or "none", base_url=self.url, websocket_base_url=websocket)

    # What went wrong, in one line

    def scrub(self, text: object) -> str:
        """Return a text as one line without the key."""
        line = " ".join(str(text).split())
        return line.replace(self.key, "[key]") if self.key else line

    def refusal(self, error: Mapping[str, Any], reset_s: float | None = None) -> AgentError:
        """Return what an ``error`` object of the service is for us, in the service's words.

        ``reset_s``: when a limit that has been reached ends, where the service has said so apart from the error.
        """
        message = self.scrub(error.get("message") or "no reason given")
        named = [str(error[name]) for name in ("code", "param") if error.get(name)]
        line = f"{self.shown}: {message}" + (f" ({', '.join(named)})" if named else "")
        passing = error.get("code") in _PASSING_CODES or error.get("type") in _PASSING_TYPES
        if not passing:
            return AgentError(line)
        limited = "rate_limit" in f"{error.get('code')} {error.get('type')}"
        return SessionLostError(line, (asked_wait(message) or reset_s) if limited else None)

    def explain(self, error: BaseException, doing: str) -> AgentError:
        """Return what an exception of the connection is for us. ``doing`` completes the sentence where it took too long."""
        from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

        if isinstance(error, AgentError):
            return error
        if isinstance(error, InvalidStatus):
            return self._status(error)
        if isinstance(error, ConnectionClosed):
            return self._closed(error)
        if isinstance(error, TimeoutError):
            return AgentError(f"{self.shown}: {doing}; check the address, or raise --model-arg timeout")
        if isinstance(error, InvalidHandshake):
            return AgentError(
                f"{self.shown}: is not a websocket of this protocol ({self.scrub(error)}); check --model-arg base_url"
            )
        if isinstance(error, OSError):
            return AgentError(
                f"{self.shown}: cannot be reached ({self.scrub(error)}); start the service or check the address"
            )
        if isinstance(error, ValueError):
            return AgentError(f"{self.shown}: sent something that is not JSON ({self.scrub(error)})")
        return AgentError(f"{self.shown}: {type(error).__name__}: {self.scrub(error)}")

    def _status(self, error: Any) -> AgentError:
        from dsbeval.judge.providers.base import retry_after

        response = error.response
        said = self.scrub(bytes(response.body or b"").decode(errors="replace"))[:200]
        line = f"{self.shown}: HTTP {response.status_code}" + (f": {said}" if said else "")
        if response.status_code in _PASSING_STATUS:
            return SessionLostError(
                line, retry_after({key.lower(): value for key, value in response.headers.raw_items()})
            )
        mend = {
            401: f"check the key in {self.key_env or 'key_env'}",
            403: "check what the key may use",
            404: "check --model-arg model and base_url (it usually ends in /v1)",
        }.get(response.status_code)
        return AgentError(f"{line}; {mend}" if mend else line)

    def _closed(self, error: Any) -> AgentError:
        close = error.rcvd or error.sent
        code = close.code if close else 1006
        reason = self.scrub(close.reason) if close and close.reason else "no reason given"
        line = f"{self.shown}: the connection was closed, code {code}: {reason}"
        return SessionLostError(line) if code in PASSING_CLOSES else AgentError(line)


def asked_wait(message: str) -> float | None:
    """Return the seconds after which a message says to try again (``in 1m2.5s``, ``in 300ms``); None where it says nothing."""
    found = _TRY_AGAIN.search(message)
    if found is None or not any(found.groups()):
        return None
    minutes, seconds, thousandths = (float(part or 0) for part in found.groups())
    return 60 * minutes + seconds + thousandths / 1000


def find_address(base_url: str, azure_endpoint: str, api_version: str, key_env: str) -> Address:
    """Return the address that the arguments of an agent name, with its key.

    Raises :class:`OptionError` for arguments that do not go together, :class:`AgentError` for a missing key or package.
    """
    if base_url and azure_endpoint:
        raise OptionError("--model-arg base_url and azure_endpoint: name one of them")
    if api_version and not azure_endpoint:
        raise OptionError("--model-arg api_version: belongs to azure_endpoint; name that too")
    _check_packages()
    if azure_endpoint:
        url = _checked("azure_endpoint", azure_endpoint)
        variable = key_env or "AZURE_OPENAI_API_KEY"
        return Address(url, _key(variable), variable, azure=True, api_version=api_version)
    if base_url:
        return Address(_checked("base_url", base_url), _key(key_env) if key_env else "", key_env)
    variable = key_env or "OPENAI_API_KEY"
    return Address(OFFICIAL, _key(variable), variable)


def _key(variable: str) -> str:
    key = os.environ.get(variable, "").strip()
    if not key:
        raise AgentError(
            f"there is no key: set the environment variable {variable}, or name a server of your own with --model-arg base_url"
        )
    return key


def _checked(name: str, address: str) -> str:
    """Return an address as http or https; websocket schemes are the same to the SDK."""
    try:
        url = urlsplit(address)
        usable = url.scheme in ("http", "https", "ws", "wss") and bool(url.hostname) and url.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise OptionError(f"--model-arg {name}: {address!r} is not an address such as http://127.0.0.1:8765/v1")
    if url.username is not None or url.password is not None or url.query or url.fragment:
        raise OptionError(f"--model-arg {name}: must not hold credentials or a query; give the key with key_env")
    scheme = {"ws": "http", "wss": "https"}.get(url.scheme, url.scheme)
    return f"{scheme}://{url.netloc}{url.path.rstrip('/')}"


def _check_packages() -> None:
    try:
        import openai  # noqa: F401
        import websockets  # noqa: F401
    except ImportError as error:
        raise AgentError(f"the package {error.name} is not installed; {NEEDS}") from None
