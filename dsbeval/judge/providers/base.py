"""What the services share: the ladder of attempts, the parameters that a model refuses, keys, and what an error means.

Conventions
-----------
* The SDK's own repeats are off. A question gets four attempts, 2, 4 and 6 s apart, as published; a service that names a
  time (``retry-after``) is not asked before it. One that asks for more than ten minutes is not waited for.
* A reply that is refused, cut, not JSON or out of range uses up an attempt, like a 429, a 5xx, a timeout or a broken
  connection. A reply that was cut is asked for again with twice the tokens.
* 401, 402, 403, 404 and a used-up quota say that nothing can be asked: :class:`JudgeError` at once. Another 4xx is about
  the one question: :class:`Unjudged` at once.
* A parameter that a model refuses is left out from then on, which uses up no attempt; the judgement says what was sent.
* A key comes from the environment, and is blanked out of everything that comes back. A server of one's own is sent
  ``DSBEVAL_JUDGE_API_KEY`` or nothing, so that the key of a paid service reaches no other host.
"""

from __future__ import annotations

import email.utils
import importlib
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar
from urllib.parse import urlsplit

from dsbeval.errors import OptionError
from dsbeval.judge.answers import read_answer
from dsbeval.judge.contract import Attempt, JudgeError, Judgement, Question, Stopped, Tokens, Unjudged
from dsbeval.judge.cost import Price, known_price
from dsbeval.judge.prompts import VERSION, Prompt, clean, prompt_hash, render

BACKOFF_S = (2.0, 4.0, 6.0)
ATTEMPTS = len(BACKOFF_S) + 1
LONGEST_WAIT_S = 600.0
OWN_KEY = "DSBEVAL_JUDGE_API_KEY"

_REPEATABLE = frozenset({408, 409, 425, 429})


@dataclass(frozen=True, slots=True)
class Settings:
    """How a service is asked. ``sleep`` stands in for waiting, in tests."""

    base_url: str | None = None
    price: Price | None = None
    timeout_s: float = 90.0
    max_tokens: int = 900
    sleep: Callable[[float], None] | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said. ``problem`` says why it is no answer: refused, withheld, cut."""

    text: str
    tokens: Tokens
    problem: str | None = None
    cut: bool = False


class _NoReply(Exception):  # noqa: N818 - never leaves this package
    """Nothing came that could be read. ``again``: another attempt may help, not before ``wait_s`` where that is given."""

    def __init__(self, problem: str, *, again: bool, wait_s: float | None = None) -> None:
        super().__init__(problem)
        self.problem, self.again, self.wait_s = problem, again, wait_s


class Service:
    """A language model behind an SDK, as a :class:`~dsbeval.judge.contract.Judge`."""

    provider: str
    client_class: ClassVar[str]
    official: ClassVar[str]
    key_env: ClassVar[str]
    address_hint: ClassVar[str]
    optional: ClassVar[dict[str, str]]
    """Parameters that a model may refuse, by the words in which the service names them."""

    def __init__(self, model: str, settings: Settings) -> None:
        self.model = model
        self._settings = settings
        if settings.base_url is not None:
            check_base_url(settings.base_url)
        self._sdk = self._import()
        self._key = self._find_key()
        self._client: Any = getattr(self._sdk, self.client_class)(
            api_key=self._key or "none",  # given even where none is needed: the SDK would look for one of its own
            base_url=settings.base_url,
            timeout=settings.timeout_s,
            max_retries=0,
        )
        self._refused: set[str] = set()
        self._stop = threading.Event()
        self.price = settings.price
        if self.price is None and self.address == self.official:
            self.price = known_price(self.provider, model)

    @property
    def address(self) -> str:
        """Where requests go, without credentials or query."""
        url = urlsplit(str(self._client.base_url))
        return f"{url.scheme}://{url.hostname}{f':{url.port}' if url.port else ''}{url.path.rstrip('/')}"

    @property
    def id(self) -> str:
        """``provider:model``, and where it is when it is not at the service's own address."""
        own = f"{self.provider}:{self.model}"
        return own if self.address == self.official else f"{own}@{self.address.partition('://')[2]}"

    def stop(self) -> None:
        """Make waiting attempts end at once."""
        self._stop.set()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def ask(self, question: Question) -> Judgement:
        """Answer a question."""
        prompt, limit = render(question), self._settings.max_tokens
        failed: list[Attempt] = []
        tokens, heard = Tokens(), False
        for number in range(ATTEMPTS):
            began = time.perf_counter()
            wait_s = BACKOFF_S[number] if number < len(BACKOFF_S) else 0.0
            try:
                reply, sent = self._request(prompt, question, limit)
            except _NoReply as error:
                failed.append(Attempt(error.problem))
                if not error.again:
                    break
                wait_s = wait_s if error.wait_s is None else error.wait_s
            else:
                latency_s, heard = round(time.perf_counter() - began, 3), True
                tokens += reply.tokens
                answer, problem = (None, reply.problem) if reply.problem else read_answer(question, reply.text)
                if answer is not None:
                    return Judgement(
                        kind=question.kind,
                        answer=answer,
                        raw=reply.text,
                        provider=self.provider,
                        model=self.model,
                        prompt_hash=prompt_hash(question),
                        prompt_version=VERSION,
                        tokens=tokens,
                        latency_s=latency_s,
                        attempts=number + 1,
                        failed=tuple(failed),
                        sent=sent,
                        cost_usd=self._cost(tokens),
                    )
                failed.append(Attempt(str(problem), reply.text))
                limit *= 2 if reply.cut else 1
            if number + 1 < ATTEMPTS:
                self._wait(wait_s)
        raise Unjudged(tuple(failed), tokens=tokens, cost_usd=self._cost(tokens), unreachable=not heard)

    def scrub(self, text: str) -> str:
        """Return a text without the key."""
        return text.replace(self._key, "[key]") if self._key else text

    # Of a service

    def request(self, prompt: Prompt, question: Question, limit: int) -> dict[str, Any]:
        """Return the parameters of a request, by the names that the service gives them."""
        raise NotImplementedError

    def create(self, sent: Mapping[str, Any]) -> Any:
        """Send a request through the SDK and return its answer."""
        raise NotImplementedError

    def read(self, answer: Any, limit: int) -> Reply:
        """Return what an answer holds. Whatever it raises means that it is not the service's protocol."""
        raise NotImplementedError

    def shown(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters that a judgement keeps."""
        raise NotImplementedError

    # One request

    def _request(self, prompt: Prompt, question: Question, limit: int) -> tuple[Reply, dict[str, Any]]:
        while True:
            if self._stop.is_set():
                raise Stopped("stopped before the question was asked")
            wanted = self.request(prompt, question, limit)
            sent = {name: value for name, value in wanted.items() if name not in self._refused}
            try:
                return self._read(self.create(sent), limit), self.shown(sent)
            except (self._sdk.BadRequestError, self._sdk.UnprocessableEntityError) as error:
                if not self._refuse(error, sent):
                    raise _NoReply(f"HTTP {error.status_code}: {self._brief(error)}", again=False) from None
            except self._sdk.APITimeoutError:
                raise _NoReply(f"no answer within {self._settings.timeout_s:g} s", again=True) from None
            except self._sdk.APIStatusError as error:
                raise self._status(error) from None
            except self._sdk.APIConnectionError as error:
                raise _NoReply(f"the connection failed: {self._cause(error)}", again=True) from None
            except (self._sdk.APIError, ValueError):
                raise self._strange() from None

    def _read(self, answer: Any, limit: int) -> Reply:
        try:
            reply = self.read(answer, limit)
        except (AttributeError, TypeError, IndexError, KeyError):
            raise self._strange() from None
        problem = " ".join(clean(self.scrub(reply.problem)).split()) if reply.problem else None
        return Reply(clean(self.scrub(reply.text)), reply.tokens, problem, reply.cut)

    def _refuse(self, error: Any, sent: Mapping[str, Any]) -> bool:
        """Leave out the parameter that an error names; return whether there was one."""
        named = str(getattr(error, "param", None) or error)
        for word, name in self.optional.items():
            if name in sent and re.search(rf"(?<![a-z_]){re.escape(word)}(?![a-z_])", named):
                self.leave_out(name, sent)
                return True
        return False

    def leave_out(self, name: str, sent: Mapping[str, Any]) -> None:  # noqa: ARG002
        """Never send a parameter again."""
        self._refused.add(name)

    def _status(self, error: Any) -> Exception:
        status, said = error.status_code, f"HTTP {error.status_code}: {self._brief(error)}"
        if status in (401, 402, 403, 404) or getattr(error, "code", None) == "insufficient_quota":
            mend = {
                401: f"check the key in {self._key_name()}",
                403: "check what the key may use",
                404: f"check the model and --judge-base-url ({self.address_hint})",
            }.get(status, "add credit, or use another judge")
            return JudgeError(f"--judge: {self.id}: {said}; {mend}")
        if status not in _REPEATABLE and status < 500:
            return _NoReply(said, again=False)
        wait_s = retry_after(error.response.headers)
        if wait_s is not None and wait_s > LONGEST_WAIT_S:
            return _NoReply(f"{said} (asks to wait {wait_s:.0f} s; judge again later)", again=False)
        return _NoReply(said, again=True, wait_s=wait_s)

    def _strange(self) -> _NoReply:
        return _NoReply("the service's answer is not of its protocol; check --judge-base-url", again=True)

    def _brief(self, error: Any) -> str:
        """Return the service's own words in one short line."""
        body = error.body
        inner = body.get("error", body) if isinstance(body, dict) else None
        words = inner.get("message") if isinstance(inner, dict) else inner
        line = " ".join(self.scrub(str(words or "no reason given")).split())
        return line if len(line) <= 200 else line[:197] + "..."

    def _cause(self, error: BaseException) -> str:
        cause = error.__cause__
        words = f"{type(cause).__name__} {cause}" if cause is not None else str(error)
        return " ".join(self.scrub(words).split())

    def _wait(self, seconds: float) -> None:
        if self._settings.sleep is not None:
            self._settings.sleep(seconds)
        else:
            self._stop.wait(seconds)
        if self._stop.is_set():
            raise Stopped("stopped while it waited to ask again")

    def _cost(self, tokens: Tokens) -> float | None:
        return None if self.price is None else round(self.price.cost(tokens), 8)

    # Set-up

    def _import(self) -> ModuleType:
        try:
            return importlib.import_module(self.provider)
        except ImportError:
            raise JudgeError(
                f"--judge: the SDK of {self.provider} is not installed; install it: pip install {self.provider}"
            ) from None

    def _key_name(self) -> str:
        return OWN_KEY if self._settings.base_url is not None else self.key_env

    def _find_key(self) -> str | None:
        key = os.environ.get(self._key_name(), "").strip()
        if not key and self._settings.base_url is None:
            raise JudgeError(
                f"--judge: {self.provider} needs a key; set the environment variable {self.key_env}, "
                "or name a server of your own with --judge-base-url"
            )
        return key or None


def check_base_url(base_url: str, option: str = "--judge-base-url", key_place: str = OWN_KEY) -> None:
    """Raise :class:`OptionError` for an address that cannot be used, or that holds a secret which would end up in logs."""
    try:
        url = urlsplit(base_url)
        usable = url.scheme in ("http", "https") and bool(url.hostname) and (url.port is None or url.port > 0)
    except ValueError:
        usable = False
    if not usable:
        raise OptionError(f"{option}: is not an address such as http://127.0.0.1:8000/v1")
    if url.username is not None or url.password is not None or url.query or url.fragment:
        raise OptionError(f"{option}: must not hold credentials or a query; put the key into {key_place}")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a service asks to wait, or None. It gives seconds, milliseconds or a date."""
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) / scale)
        except (KeyError, ValueError):
            continue
    try:
        return max(0.0, email.utils.parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time())
    except (KeyError, ValueError):
        return None
