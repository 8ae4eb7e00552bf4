"""The services that write and criticise: OpenAI chat completions and Anthropic messages, through their own SDKs.

Conventions
-----------
* An SDK is imported when a provider is opened. A missing SDK or key is an :class:`AuthorError` before anything is
  asked.
* A key is read from an environment variable. With a base URL none is sent unless ``key_env`` names it, so that the key
  of a paid service does not reach another host by accident. The key is blanked out of everything that comes back.
* The SDK repeats a request that was limited, failed on the server or timed out, as the service's ``retry-after`` says.
  What still fails then is an :class:`AuthorError`: it says nothing about the script, so it is not one of its tries.
* A model that refuses a parameter (a temperature, JSON mode) is asked again without it, and :class:`Reply` says what
  was really sent. Services drop parameters from one model to the next; a fixed list would be out of date within months.
* Temperature has left the newest version of the Anthropic API and the signatures of its SDK. The version that has
  it is asked for by its header, and the parameter travels in the body.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType, TracebackType
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

from dsbeval.replies import whole
from dsbeval.speech.author import AuthorError

ANTHROPIC_VERSION = "2023-06-01"
"""The version of the Anthropic API that takes a temperature."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back. ``problem`` says why the text is no answer: a refusal, a cut, nothing at all."""

    text: str
    temperature: float | None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """How a service is reached. ``max_retries`` counts the SDK's own repeats of one request."""

    base_url: str | None = None
    key_env: str | None = None
    timeout_s: float = 120.0
    max_retries: int = 4


class Provider:
    """One service, opened: ask it, close it."""

    name: ClassVar[str]
    key_env: ClassVar[str]
    default_model: ClassVar[str]
    default_fallback: ClassVar[str]
    client_class: ClassVar[str]
    optional: ClassVar[tuple[str, ...]] = ()
    """Parameters that a model may refuse and that are then left out."""
    instead: ClassVar[dict[str, str]] = {}
    """Parameters that some servers know by another name."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._sdk = self._import()
        self._key = self._find_key()
        self._client: Any = getattr(self._sdk, self.client_class)(
            api_key=self._key or "none",  # given, even where none is needed: the SDK would look for one of its own
            base_url=settings.base_url,
            timeout=settings.timeout_s,
            max_retries=settings.max_retries,
        )
        self._refused: set[tuple[str, str]] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def ask(
        self, system: str, user: str, *, model: str, temperature: float, max_tokens: int, schema: dict[str, Any]
    ) -> Reply:
        """Ask for one JSON object. Raises :class:`AuthorError` when the service gives no answer at all."""
        raise NotImplementedError

    def scrub(self, text: str) -> str:
        """Return ``text`` without the key, and without what no file can hold."""
        return whole(text.replace(self._key, "[key]") if self._key else text)

    @property
    def address(self) -> str:
        """Where requests go, without credentials or query."""
        url = urlsplit(str(self._client.base_url))
        return f"{url.scheme}://{url.hostname}{f':{url.port}' if url.port else ''}{url.path.rstrip('/')}"

    def _import(self) -> ModuleType:
        try:
            return importlib.import_module(self.name)
        except ImportError:
            raise AuthorError(
                f"--provider: the SDK of {self.name} is not installed; install it: pip install {self.name}"
            ) from None

    def _find_key(self) -> str | None:
        name = self._settings.key_env or (None if self._settings.base_url else self.key_env)
        if name is None:
            return None
        key = os.environ.get(name, "").strip()
        if not key:
            raise AuthorError(
                f"--provider: {self.name} needs a key; set the environment variable {name}, "
                "or name a server of your own with --base-url"
            )
        return key

    def _post(self, create: Callable[..., Any], model: str, request: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Send a request; return the answer and the parameters that were sent in the end."""
        while True:
            sent = {name: value for name, value in request.items() if (model, name) not in self._refused}
            for name, other in self.instead.items():
                if name in request and name not in sent:
                    sent[other] = request[name]
            try:
                return create(model=model, **self._on_wire(sent)), sent
            except (self._sdk.BadRequestError, self._sdk.UnprocessableEntityError) as error:
                named = str(getattr(error, "param", None) or error)
                refused = next((name for name in self.optional if name in sent and _names(named, name)), None)
                if refused is None:
                    raise self._failed(f"HTTP {error.status_code}: {self._brief(error)}; check --model") from None
                self._refused.add((model, refused))
            except self._sdk.APITimeoutError:
                limit = f"{self._settings.timeout_s:g} s"
                raise self._failed(f"no answer within {limit}; raise --timeout or run again later") from None
            except self._sdk.APIStatusError as error:
                mend = {
                    401: "check the key",
                    403: "check the key and what it may use",
                    404: "check --model and --base-url (an OpenAI-compatible one usually ends in /v1)",
                    429: "run the same command again later, it goes on where it stopped",
                }.get(error.status_code, "run the same command again, it goes on where it stopped")
                raise self._failed(f"HTTP {error.status_code}: {self._brief(error)}; {mend}") from None
            except self._sdk.APIConnectionError:
                raise self._failed("cannot be reached; is the server running, and is --base-url right?") from None
            except (self._sdk.APIError, ValueError):
                raise self._failed("answers with something that is not its protocol; check --base-url") from None

    def _on_wire(self, sent: dict[str, Any]) -> dict[str, Any]:
        return sent

    def _failed(self, what: str) -> AuthorError:
        return AuthorError(f"{self.name} at {self.address}: {what}")

    def _brief(self, error: Any) -> str:
        """Return the service's own words in one short line."""
        body = error.body
        inner = body.get("error", body) if isinstance(body, dict) else None
        words = inner.get("message") if isinstance(inner, dict) else inner
        line = " ".join(self.scrub(str(words or "no reason given")).split())
        return line if len(line) <= 200 else line[:197] + "..."


class OpenAI(Provider):
    """Chat completions: the service itself, or any server that speaks its protocol (llama.cpp, vLLM, Ollama)."""

    name = "openai"
    key_env = "OPENAI_API_KEY"
    default_model = "gpt-6.1-sol"
    default_fallback = "gpt-6-luna"
    client_class = "OpenAI"
    optional = ("temperature", "response_format", "max_tokens")
    instead: ClassVar[dict[str, str]] = {"max_tokens": "max_completion_tokens"}

    def ask(
        self, system: str, user: str, *, model: str, temperature: float, max_tokens: int, schema: dict[str, Any]
    ) -> Reply:
        """Ask for one JSON object, in JSON mode as published: the schema is checked here, not by the service."""
        del schema
        request = {
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
            "temperature": temperature,
            "response_format": {"type": "json_object"},
            # The service wants the new name, servers of one's own often know only the old one.
            ("max_tokens" if self._settings.base_url else "max_completion_tokens"): max_tokens,
        }
        answer, sent = self._post(self._client.chat.completions.create, model, request)
        choices = getattr(answer, "choices", None)
        if not choices:
            raise self._failed("answers with no chat completion; check --base-url")
        choice = choices[0]
        text = self.scrub(choice.message.content or "")
        problem = None
        if choice.message.refusal:
            problem = f"the model refused: {self.scrub(choice.message.refusal)}"
        elif choice.finish_reason == "content_filter":
            problem = "the service's content filter withheld the reply"
        elif choice.finish_reason == "length":
            problem = f"the reply was cut at {max_tokens} tokens; be shorter"
        return Reply(text, sent.get("temperature"), problem)


class Anthropic(Provider):
    """Messages: the service itself, or any server that speaks its protocol."""

    name = "anthropic"
    key_env = "ANTHROPIC_API_KEY"
    default_model = "claude-sonnet-4-6"
    default_fallback = "claude-haiku-4-5"
    client_class = "Anthropic"
    optional = ("temperature", "output_config")

    def ask(
        self, system: str, user: str, *, model: str, temperature: float, max_tokens: int, schema: dict[str, Any]
    ) -> Reply:
        """Ask for one JSON object."""
        request = {
            "system": system,
            "messages": [{"role": "user", "content": user}],
            "max_tokens": max_tokens,
            "temperature": temperature,
            "output_config": {"format": {"type": "json_schema", "schema": schema}},
        }
        answer, sent = self._post(self._client.messages.create, model, request)
        blocks = getattr(answer, "content", None)
        if not isinstance(blocks, list):
            raise self._failed("answers with no message; check --base-url (without /v1)")
        text = self.scrub("".join(block.text for block in blocks if block.type == "text"))
        problem = None
        if answer.stop_reason == "refusal":
            details = getattr(answer, "stop_details", None)
            why = getattr(details, "explanation", None) or text or "no reason given"
            problem = f"the model refused: {self.scrub(why)}"
        elif answer.stop_reason == "max_tokens":
            problem = f"the reply was cut at {max_tokens} tokens; be shorter"
        return Reply(text, sent.get("temperature"), problem)

    def _on_wire(self, sent: dict[str, Any]) -> dict[str, Any]:
        # In the body and not by name: the newest SDKs have no such arguments, older ones do not know all of them.
        body = {name: sent[name] for name in self.optional if name in sent}
        rest = {name: value for name, value in sent.items() if name not in body}
        version = {"anthropic-version": ANTHROPIC_VERSION} if "temperature" in sent else None
        return {**rest, "extra_body": body, "extra_headers": version}


PROVIDERS: dict[str, type[Provider]] = {cls.name: cls for cls in (OpenAI, Anthropic)}


def _names(fault: str, parameter: str) -> bool:
    return re.search(rf"(?<![a-z_]){re.escape(parameter)}(?![a-z_])", fault) is not None
