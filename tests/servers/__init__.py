"""Local servers that speak the HTTP protocols of model services, so that tests use the real SDKs and a real socket.

A server listens on 127.0.0.1 and a free port, keeps every request it saw, and answers what it was told to: a list of
answers, one a request, or a function of the request (for clients that ask in parallel). Requests that the real service
would refuse (path, method, key, JSON, required fields) are refused in its words before an answer is used.
"""

from tests.servers.anthropic_messages import AnthropicServer
from tests.servers.openai_chat import OpenAIServer
from tests.servers.wire import Answer, Seen

__all__ = ["Answer", "AnthropicServer", "OpenAIServer", "Seen"]
