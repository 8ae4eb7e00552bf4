"""Chat completions as OpenAI and the servers compatible with it answer them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from tests.servers.wire import Answer, Seen, WireServer, missing


class OpenAIServer(WireServer):
    """``POST /v1/chat/completions``. ``refuses`` are parameters that its models do not take."""

    def __init__(
        self,
        plan: Iterable[Answer | str] | Callable[[Seen], Answer | str] = (),
        *,
        refuses: Iterable[str] = (),
        key: str | None = None,
    ) -> None:
        super().__init__(plan)
        self._refuses, self._key = tuple(refuses), key

    @property
    def base_url(self) -> str:
        return f"{self.origin}/v1"

    def refuse(self, seen: Seen) -> Answer | None:
        if seen.path != "/v1/chat/completions":
            return self.error(404, f"Invalid URL (POST {seen.path})")
        if seen.key is None:
            return self.error(401, "You didn't provide an API key.")
        if self._key is not None and seen.key != self._key:
            return self.error(401, f"Incorrect API key provided: {seen.key}.", code="invalid_api_key")
        try:
            body = seen.body
        except json.JSONDecodeError:
            return self.error(400, "We could not parse the JSON body of your request.")
        absent = missing(body, ("model", "messages"))
        if absent is not None:
            return self.error(400, f"Missing required parameter: '{absent}'.", param=absent)
        for name in self._refuses:
            if name in body:
                message = f"Unsupported parameter: '{name}' is not supported with this model."
                return self.error(400, message, param=name, code="unsupported_parameter")
        wants_json = body.get("response_format", {}).get("type") == "json_object"
        if wants_json and "json" not in json.dumps(body["messages"]).lower():
            message = "'messages' must contain the word 'json' in some form, to use 'response_format' of 'json_object'."
            return self.error(400, message, param="messages")
        return None

    def reply(self, text: str, seen: Seen) -> Answer:
        return completion(seen.model, text)

    def error(self, status: int, message: str, **more: Any) -> Answer:
        headers = more.pop("headers", {})
        inner = {"message": message, "type": "invalid_request_error", "param": None, "code": None, **more}
        return Answer(status, {"error": inner}, headers)


def completion(model: str, text: str | None, *, finish_reason: str = "stop", refusal: str | None = None) -> Answer:
    """Return a chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": refusal, "annotations": []}
    return Answer(
        body={
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_760_000_000,
            "model": model,
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
        }
    )
