"""Messages as Anthropic answers them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from tests.servers.wire import Answer, Seen, WireServer, missing

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_VERSIONS = ("2023-06-01", "2026-10-21")
_SAMPLING = ("temperature", "top_p", "top_k")


class AnthropicServer(WireServer):
    """``POST /v1/messages``. ``refuses`` are parameters that its models do not take."""

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
        return self.origin

    def refuse(self, seen: Seen) -> Answer | None:
        if seen.path.partition("?")[0] != "/v1/messages":
            return self.error(404, "Not found")
        if seen.key is None or (self._key is not None and seen.key != self._key):
            return self.error(401, f"invalid x-api-key {seen.key}")
        version = seen.headers.get("anthropic-version")
        if version not in _VERSIONS:
            return self.error(400, f"anthropic-version: {version!r} is not a valid version")
        try:
            body = seen.body
        except json.JSONDecodeError:
            return self.error(400, "The request body is not valid JSON")
        absent = missing(body, ("model", "max_tokens", "messages"))
        if absent is not None:
            return self.error(400, f"{absent}: Field required")
        for name in _SAMPLING:
            if name in body and version != _VERSIONS[0]:
                return self.error(400, f"{name}: Extra inputs are not permitted")
        for name in self._refuses:
            if name in body:
                return self.error(400, f"`{name}` is deprecated for this model.")
        return None

    def reply(self, text: str, seen: Seen) -> Answer:
        return message(seen.model, text)

    def error(self, status: int, message: str, **more: Any) -> Answer:
        inner = {"type": _TYPES.get(status, "api_error"), "message": message}
        body = {"type": "error", "error": inner, "request_id": "req_1"}
        return Answer(status, body, dict(more.get("headers", {})))


def message(
    model: str, text: str, *, stop_reason: str = "end_turn", explanation: str | None = None, thought: str | None = None
) -> Answer:
    """Return a message. ``thought`` puts a thinking block before the text."""
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    if thought is not None:
        content.insert(0, {"type": "thinking", "thinking": thought, "signature": "sig"})
    body: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 10},
    }
    if explanation is not None:
        body["stop_details"] = {"type": "refusal", "category": "general_harms", "explanation": explanation}
    return Answer(body=body)
