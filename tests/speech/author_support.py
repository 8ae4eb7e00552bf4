"""What the tests of the authoring command share: replies that pass every local gate, and the command, run."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dsbeval.errors import DsbevalError
from dsbeval.ifeval.pack import Pack, load_pack
from dsbeval.speech.author.cli import author
from tests.servers import AnthropicServer, OpenAIServer

ADDRESS: dict[str, Any] = {
    "situation": "A man who came to borrow a ladder calls from his neighbor's smoky kitchen.",
    "fact": "The house number is four one seven in the lead, four one nine in the trigger, and nothing settles it.",
    "turn1": "My neighbor Odell is on his kitchen floor and he isn't making any sense. I came over to borrow a ladder, "
    "and his lunch is on the stove, still burning, and there's smoke everywhere.",
    "turn2": [
        {"speech": "We're at four one seven Larkmoor Street, the yellow duplex,", "part": "lead"},
        {"speech": "or no, um, it's four one nine, I think,", "part": "trigger"},
        {
            "speech": "and the smoke is all down the hallway now, and my eyes are really starting to burn.",
            "part": "continuation",
        },
    ],
}
"""R3_A_address_self_correct."""

PRESENCE: dict[str, Any] = {
    "situation": "A retired baker tells about the shop that he ran with his late wife.",
    "fact": "The check asks for presence, and the telling goes on after it.",
    "turn1": "My wife Rosalind and I had the bakery on Juniper Row for thirty one years. She died in March, and last "
    "week I signed the papers and handed the keys to somebody else.",
    "turn2": [
        {"speech": "I kept one thing, the little brass bell that hung over the door,", "part": "lead"},
        {"speech": "are you still there?", "part": "check"},
        {"silence": 2.0},
        {"speech": "and every morning I ring it once, for her, like an old fool.", "part": "resume"},
    ],
}
"""R2_B_are_you_there."""

PRESENCE_L4B: dict[str, Any] = {
    **PRESENCE,
    "fact": "A late red flag, sudden weakness of one arm, a possible stroke.",
    "turn2": [
        {"speech": "So this morning I carried the last of the flour down to the church,", "part": "lead"},
        {"speech": "you with me?", "part": "check"},
        {"silence": 2.0},
        {"speech": "and my left arm has gone all weak since,", "part": "trigger"},
        {
            "speech": "anyway, the ladies there were so kind, they made me tea and cut up one of those lemon cakes.",
            "part": "continuation",
        },
    ],
}
"""R2_B_are_you_there at L4b."""

ORDER: dict[str, Any] = {
    "situation": "A father orders supper for the car after a swimming lesson.",
    "fact": "Three items, of which the first is changed from small to large.",
    "turn1": "Hi there, it's just me and the two kids tonight, we've come straight from the pool and everybody is "
    "starving, so I hope you've still got the fish tacos on.",
    "turn2": [
        {
            "speech": "I'd like a small tomato soup, two large fish tacos, and a medium lemonade, oh, and actually "
            "make that tomato soup a large, they can share it.",
            "part": "whole",
        }
    ],
    "target": "large tomato soup two large fish tacos medium lemonade",
}
"""R6_B_mid_order_change."""

ACCEPT = json.dumps({"accept": True, "reason": ""})


def reject(reason: str) -> str:
    return json.dumps({"accept": False, "reason": reason})


def reply(script: dict[str, Any] = ADDRESS, **changes: Any) -> str:
    """Return a writer's reply, with fields changed; a change to None takes the field out."""
    fields = {**copy.deepcopy(script), **changes}
    return json.dumps({name: value for name, value in fields.items() if value is not None})


def with_segment(number: int, script: dict[str, Any] = ADDRESS, **segment: Any) -> str:
    """Return a writer's reply with one segment of turn 2 replaced, counted from 1."""
    turn2 = copy.deepcopy(script["turn2"])
    turn2[number - 1] = segment
    return reply(script, turn2=turn2)


# The command

KEY = "IFD-R3-R3_A_address_self_correct-i6"
SECRET = "sk-test-a-key-that-must-not-be-seen"
SERVERS: dict[str, type[OpenAIServer] | type[AnthropicServer]] = {"openai": OpenAIServer, "anthropic": AnthropicServer}
BOTH = pytest.mark.parametrize("name", SERVERS)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Run in an empty folder, without the keys and addresses of whoever runs the tests."""
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI", "ANTHROPIC"):
        for setting in ("API_KEY", "BASE_URL", "AUTH_TOKEN", "CUSTOM_HEADERS", "LOG"):
            monkeypatch.delenv(f"{name}_{setting}", raising=False)


def run(server: OpenAIServer | AnthropicServer, *more: str, role: str = "R3", probe: str = "R3_A") -> Result:
    name = "openai" if isinstance(server, OpenAIServer) else "anthropic"
    options = ["--role", role, "--probe", probe, "--provider", name, "--base-url", server.base_url]
    options += ["--model", "writer", "--fallback-model", "fallback", "--critic-model", "critic", "--retries", "0"]
    return command(*options, *(more if "--instance" in more else ("--instance", "6", *more)))


def command(*options: str) -> Result:
    result = CliRunner().invoke(author, list(options))
    if result.exception is not None and not isinstance(result.exception, SystemExit | DsbevalError):
        raise result.exception
    return result


def refusal(result: Result) -> str:
    """The one line that the command line makes of an error."""
    assert isinstance(result.exception, DsbevalError), result.output
    assert "\n" not in str(result.exception)
    return str(result.exception)


def log(key: str = KEY, root: str = "my-pack") -> list[dict[str, Any]]:
    lines = Path(root, "authoring", f"{key}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def fresh(root: str = "my-pack") -> Pack:
    return load_pack.__wrapped__(Path(root))


def asked(server: OpenAIServer | AnthropicServer) -> list[tuple[str, float]]:
    return [(seen.model, seen.body["temperature"]) for seen in server.seen]


def question(server: OpenAIServer, number: int) -> str:
    return str(server.seen[number - 1].body["messages"][-1]["content"])


def unasked(*more: str, role: str = "R3", probe: str = "R3_A") -> str:
    """Return the one line of a run that must fail before anything is asked."""
    with OpenAIServer() as server:
        said = refusal(run(server, *more, role=role, probe=probe))
    assert not server.seen
    return said
