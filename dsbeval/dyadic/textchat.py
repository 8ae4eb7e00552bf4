"""A text model behind an OpenAI-compatible service: who answers in a text pairing.

Conventions
-----------
* The name of the model is the service's; where it is and how it is asked are arguments (``--model-arg``, ``--partner-arg``):
  ``base_url``, ``key_env``, ``temperature``, ``most_tokens``, ``timeout_s``.
* Without a ``base_url`` it is the service of OpenAI itself, with the key in ``OPENAI_API_KEY``. A server of one's own is sent a
  key only where ``key_env`` names the variable that holds it: the key of a paid service reaches no other host.
* An address with credentials in it is refused: arguments are written into the run folder.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

from dsbeval.dyadic.textpair import Chat, Message
from dsbeval.errors import AgentError, OptionError
from dsbeval.judge.providers.base import check_base_url

KEY_ENV = "OPENAI_API_KEY"


class OpenAIChat:
    """A model behind an OpenAI-compatible service, by the ``openai`` package; close it after use.

    The SDK repeats what may be repeated. Raises :class:`OptionError` for an argument that is not one, :class:`AgentError` when
    the package or the key is missing, and when asked if the service fails, refuses, or cuts off an answer before its first word.

    Parameters
    ----------
    model : str
        Its name at the service.
    base_url : str or None
        The address of the service; by default OpenAI's own.
    key_env : str or None
        The environment variable that holds the key.
    temperature : float or None
        None leaves it to the service.
    most_tokens : int
        Of one answer.
    timeout_s : float
        Seconds after which one request has failed.
    option : str
        What names the model on the command line; errors name it.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        *,
        key_env: str | None = None,
        temperature: float | None = None,
        most_tokens: int = 200,
        timeout_s: float = 60.0,
        option: str = "--model",
    ) -> None:
        key = find_key(base_url, key_env, option)
        import openai  # only for who pairs text models

        self._openai, self._key = openai, key
        self._client = openai.OpenAI(api_key=key or "none", base_url=base_url, timeout=timeout_s)
        self._where = f"model {model} at {base_url or 'the OpenAI service'}"
        self._timeout_s, self._most_tokens = timeout_s, most_tokens
        # The service has a new name for the limit; servers that speak its protocol often know the old one only.
        limit = {"max_completion_tokens" if base_url is None else "max_tokens": most_tokens}
        sampling = {} if temperature is None else {"temperature": temperature}
        self._sent: dict[str, Any] = {"model": model, **limit, **sampling}

    def seeded(self, seed: int) -> Chat:
        """Return the model as it answers under a seed."""
        return functools.partial(self._answer, seed)

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self, seed: int, messages: Sequence[Message]) -> str:
        answer = self._create(seed, messages)
        if not getattr(answer, "choices", None):
            raise AgentError(f"{self._where} answered without a choice; it is no chat service")
        choice = answer.choices[0]
        text = choice.message.content or ""
        if choice.finish_reason == "content_filter" and not text:
            raise AgentError(f"{self._where}: the service's filter withheld the answer")
        if choice.finish_reason == "length" and not text.strip():
            raise AgentError(
                f"{self._where} used {self._most_tokens} tokens without a word; allow it more, or turn off its reasoning"
            )
        return str(text)

    def _create(self, seed: int, messages: Sequence[Message]) -> Any:
        openai = self._openai
        sent: dict[str, Any] = {**self._sent, "seed": seed, "messages": list(messages)}
        try:
            return self._client.chat.completions.create(**sent)
        except openai.APIStatusError as error:
            raise AgentError(f"{self._where} answered {error.status_code}: {self._told(error.message)}") from None
        except openai.APITimeoutError:
            raise AgentError(f"{self._where} did not answer within {self._timeout_s:g} s; allow it more") from None
        except openai.APIConnectionError as error:
            raise AgentError(f"{self._where} cannot be reached: {self._told(str(error))}; start the service") from None
        except openai.OpenAIError as error:
            raise AgentError(f"{self._where} failed: {self._told(str(error))}") from None

    def _told(self, message: str) -> str:
        """Return the service's words in one line, without the key."""
        return " ".join((message.replace(self._key, "[key]") if self._key else message).split())


# From the command line


def find_key(base_url: str | None, key_env: str | None, option: str = "--model") -> str:
    """Return the key of a service, empty where it needs none. Raises :class:`AgentError`, also where the SDK is missing."""
    if importlib.util.find_spec("openai") is None:
        raise AgentError("a text pairing needs the package openai; run: pip install openai")
    name = key_env or (KEY_ENV if base_url is None else "")
    key = os.environ.get(name, "").strip() if name else ""
    if name and not key:
        raise AgentError(
            f"{option}: there is no environment variable {name}; set it to the service's key"
            + ("" if key_env else f", or name a server of your own with {option}-arg base_url=http://host:port/v1")
        )
    return key


def check_text_model(args: Mapping[str, object], option: str = "--model") -> None:
    """Raise :class:`OptionError` or :class:`AgentError` for arguments that no text model takes; nothing heavy is imported."""
    accepted = [name for name in inspect.signature(OpenAIChat).parameters if name not in ("model", "option")]
    for name, value in args.items():
        if name not in accepted:
            raise OptionError(f"{option}-arg {name}: a text model does not take it; it takes {', '.join(accepted)}")
        kind, fits = _FITS[name]
        if not fits(value):
            raise OptionError(f"{option}-arg {name}: {value!r} is not {kind}")
    base_url, key_env = (None if args.get(name) is None else str(args[name]) for name in ("base_url", "key_env"))
    if base_url is not None:
        check_base_url(base_url, f"{option}-arg base_url", f"the environment variable that {option}-arg key_env names")
    find_key(base_url, key_env, option)


def load_text_model(name: str, args: Mapping[str, Any], option: str = "--model") -> OpenAIChat:
    """Return the text model that a command line names, with its arguments. Raises as :func:`check_text_model`."""
    check_text_model(args, option)
    return OpenAIChat(name, **args, option=option)


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_FITS: dict[str, tuple[str, Any]] = {
    "base_url": ("an address such as http://127.0.0.1:8000/v1", lambda value: isinstance(value, str)),
    "key_env": ("the name of an environment variable", lambda value: isinstance(value, str) and bool(value)),
    "temperature": ("a number of 0 or more", lambda value: _number(value) and value >= 0),
    "most_tokens": (
        "a number of tokens, 1 or more",
        lambda value: _number(value) and isinstance(value, int) and value >= 1,
    ),
    "timeout_s": ("a positive number of seconds", lambda value: _number(value) and value > 0),
}
"""What each argument must be, and whether a value is."""
