"""Chat completions: OpenAI itself, or any server that speaks its protocol (vLLM, llama.cpp, Ollama)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from dsbeval.judge.contract import Question, Tokens
from dsbeval.judge.prompts import Prompt
from dsbeval.judge.providers.base import Reply, Service
from dsbeval.judge.schema import on_wire


class OpenAI(Service):
    """Structured output by ``response_format``: a schema, else JSON mode, else none, as far as the server goes."""

    provider = "openai"
    client_class = "OpenAI"
    official = "https://api.openai.com/v1"
    key_env = "OPENAI_API_KEY"
    address_hint = "an address of this protocol usually ends in /v1"
    optional: ClassVar[dict[str, str]] = {
        "temperature": "temperature",
        "seed": "seed",
        "max_tokens": "max_tokens",
        "max_completion_tokens": "max_completion_tokens",
        "response_format": "response_format",
        "json_schema": "response_format",
        "json_object": "response_format",
    }

    _formats = ("json_schema", "json_object", None)
    _format = 0

    def request(self, prompt: Prompt, question: Question, limit: int) -> dict[str, Any]:
        """Return the parameters; the token limit has a new name at the service, and often only the old one elsewhere."""
        own = self._settings.base_url is not None
        old_name = own != bool({"max_tokens", "max_completion_tokens"} & self._refused)
        request: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}],
            "temperature": 0,
            "seed": question.seed,
            "max_tokens" if old_name else "max_completion_tokens": limit,
        }
        match self._formats[self._format]:
            case "json_schema":
                schema = {"name": question.kind.value, "schema": on_wire(question.schema), "strict": True}
                request["response_format"] = {"type": "json_schema", "json_schema": schema}
            case "json_object":
                request["response_format"] = {"type": "json_object"}
        return request

    def leave_out(self, name: str, sent: Mapping[str, Any]) -> None:
        """Go down one step of structured output, or leave the parameter out."""
        if name == "response_format":
            step = self._formats.index(sent["response_format"]["type"])
            self._format = max(self._format, step + 1)  # eight threads may learn it at once
        else:
            super().leave_out(name, sent)

    def create(self, sent: Mapping[str, Any]) -> Any:
        """Send it."""
        return self._client.chat.completions.create(**sent)

    def read(self, answer: Any, limit: int) -> Reply:
        """Return the message of the first choice."""
        choice = answer.choices[0]
        usage = answer.usage
        tokens = Tokens(usage.prompt_tokens or 0, usage.completion_tokens or 0) if usage else Tokens()
        text = choice.message.content or ""
        if choice.message.refusal:
            return Reply(choice.message.refusal, tokens, f"refused: {choice.message.refusal}")
        if choice.finish_reason == "content_filter":
            return Reply(text, tokens, "refused: the service's content filter withheld the reply")
        if choice.finish_reason == "length":
            return Reply(text, tokens, f"the reply was cut at {limit} tokens", cut=True)
        return Reply(text, tokens)

    def shown(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Return temperature, seed and format as they were sent; None: left out."""
        form = sent.get("response_format")
        return {
            "temperature": sent.get("temperature"),
            "seed": sent.get("seed"),
            "format": form["type"] if form else None,
        }
