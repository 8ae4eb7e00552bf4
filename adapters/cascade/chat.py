"""A text model behind an OpenAI-compatible service writes the words; when they are said is still the policy's.

Nothing falls back: an answer that does not come, is an error or holds no words ends the case as an error.
"""

from __future__ import annotations

import json
import os
import random
import urllib.error
import urllib.request
from typing import Any

from adapters.cascade.words import Kind, Moment, RuleWriter
from dsbeval.errors import AgentError

MOST_TOKENS = 120

_NOTES: dict[Kind, str] = {
    Kind.GREETING: "Nobody has spoken yet. You speak first.",
    Kind.OPENING: "",
    Kind.ANSWER: "",
    Kind.QUESTION: "",
    Kind.READBACK: "Say back what the user has just dictated, exactly as it was given, and ask whether it is right.",
    Kind.INTERRUPTION: "The user is still talking. You come in now: one short sentence about what made you come in.",
    Kind.UNHEARD: "You did not understand the user's last words. Ask for them again in one short sentence.",
}
_MANNER = (
    "You are heard, not read: answer in one or two short sentences of plain words, without lists, symbols or stage "
    "directions. "
    "The user's words come from a speech recogniser and may be wrong."
)


class ChatWriter:
    """Asks ``{base}/chat/completions``. Listening sounds stay stock phrases: they cannot wait for a model.

    Raises :class:`AgentError` for a timeout, a refused or failed request, and an answer without words.
    """

    def __init__(self, base: str, model: str, timeout_s: object, key_env: str = "") -> None:
        if not base.startswith(("http://", "https://")):
            raise AgentError(
                f"agent cascade: llm is {base!r}; give the service's base address, as in http://127.0.0.1:8080/v1"
            )
        if not model:
            raise AgentError("agent cascade: llm needs the name of a model; add --model-arg llm_model=NAME")
        if not _positive(timeout_s):
            raise AgentError(f"agent cascade: llm_timeout is {timeout_s!r}; give a positive number of seconds")
        if key_env and key_env not in os.environ:
            raise AgentError(
                f"agent cascade: llm_key_env: there is no environment variable {key_env}; set it to the service's key"
            )
        self._address = f"{base.rstrip('/')}/chat/completions"
        self._model = model
        self._timeout_s = float(str(timeout_s))
        self._key_env = key_env
        self._stock = RuleWriter()

    def write(self, moment: Moment, chance: random.Random) -> str:
        """Return the model's answer."""
        if moment.kind not in _NOTES:
            return self._stock.write(moment, chance)
        system = "\n\n".join(part for part in (moment.prompt, _MANNER, _NOTES[moment.kind]) if part)
        messages = [{"role": "system", "content": system}]
        messages += ({"role": speaker, "content": text} for speaker, text in moment.history)
        messages.append({"role": "user", "content": moment.heard or "..."})
        words = self._ask(
            {
                "model": self._model,
                "messages": messages,
                "temperature": 0,
                "max_tokens": MOST_TOKENS,
                "seed": chance.getrandbits(31),
            }
        )
        if not any(character.isalnum() for character in words):
            raise AgentError(f"agent cascade: llm at {self._address} answered without words: {words!r}")
        return words

    def _ask(self, question: dict[str, Any]) -> str:
        headers = {"Content-Type": "application/json"}
        if self._key_env:
            headers["Authorization"] = f"Bearer {os.environ[self._key_env]}"
        request = urllib.request.Request(self._address, json.dumps(question).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=self._timeout_s) as answer:
                content = json.loads(answer.read())["choices"][0]["message"]["content"]
        except urllib.error.HTTPError as error:
            error.close()
            raise AgentError(
                f"agent cascade: llm at {self._address} answered {error.code} {error.reason}; check llm_model and "
                f"the key"
            ) from None
        except TimeoutError:
            raise AgentError(
                f"agent cascade: llm at {self._address} did not answer within {self._timeout_s:g} s; raise llm_timeout"
            ) from None
        except OSError as error:
            reason = getattr(error, "reason", error)
            raise AgentError(
                f"agent cascade: llm at {self._address} cannot be reached: {reason}; start the service"
            ) from None
        except (ValueError, LookupError, TypeError):
            raise AgentError(
                f"agent cascade: llm at {self._address} answered something that is not a chat completion"
            ) from None
        return content.strip() if isinstance(content, str) else ""


def _positive(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
