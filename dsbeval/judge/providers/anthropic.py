"""Messages: Anthropic itself, or any server that speaks its protocol.

Temperature has left the newest version of this API and the signatures of its SDK. The version that has it is asked for by its
header, and the parameter travels in the body. A model that refuses it is asked in the SDK's own version, without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from dsbeval.judge.contract import Question, Tokens
from dsbeval.judge.prompts import Prompt
from dsbeval.judge.providers.base import Reply, Service
from dsbeval.judge.schema import on_wire

WITH_TEMPERATURE = "2023-06-01"


class Anthropic(Service):
    """Structured output by ``output_config``, else by the prompt alone. Takes no seed."""

    provider = "anthropic"
    client_class = "Anthropic"
    official = "https://api.anthropic.com"
    key_env = "ANTHROPIC_API_KEY"
    address_hint = "an address of this protocol has no /v1"
    optional: ClassVar[dict[str, str]] = {
        "temperature": "temperature",
        "output_config": "output_config",
        "output_format": "output_config",
    }

    def request(self, prompt: Prompt, question: Question, limit: int) -> dict[str, Any]:
        """Return the parameters."""
        return {
            "model": self.model,
            "system": prompt.system,
            "messages": [{"role": "user", "content": prompt.user}],
            "max_tokens": limit,
            "temperature": 0,
            "output_config": {"format": {"type": "json_schema", "schema": on_wire(question.schema)}},
        }

    def create(self, sent: Mapping[str, Any]) -> Any:
        """Send it, with what SDKs do not all know by name in the body."""
        body = {name: sent[name] for name in ("temperature", "output_config") if name in sent}
        rest = {name: value for name, value in sent.items() if name not in body}
        headers = {"anthropic-version": WITH_TEMPERATURE} if "temperature" in body else None
        return self._client.messages.create(**rest, extra_body=body, extra_headers=headers)

    def read(self, answer: Any, limit: int) -> Reply:
        """Return the text blocks of the message."""
        usage = answer.usage
        cached = (usage.cache_creation_input_tokens or 0) + (usage.cache_read_input_tokens or 0)
        tokens = Tokens(usage.input_tokens + cached, usage.output_tokens)
        text = "".join(block.text for block in answer.content if block.type == "text")
        if answer.stop_reason == "refusal":
            details = getattr(answer, "stop_details", None)
            why = getattr(details, "explanation", None) or text or "no reason given"
            return Reply(text or why, tokens, f"refused: {why}")
        if answer.stop_reason == "max_tokens":
            return Reply(text, tokens, f"the reply was cut at {limit} tokens", cut=True)
        return Reply(text, tokens)

    def shown(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Return temperature and format as they were sent; None: left out."""
        return {
            "temperature": sent.get("temperature"),
            "seed": None,
            "format": "json_schema" if "output_config" in sent else None,
        }
