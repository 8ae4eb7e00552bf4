"""The realtime client against a server that we did not write: the protocol layer of speech-to-speech 1.1.0, if it is installed.

``pip install --no-deps speech-to-speech==1.1.0`` is enough: its models are not needed.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from adapters.gpt_realtime import GptRealtime
from dsbeval.audio import RATE
from dsbeval.conformance import CHECKS
from dsbeval.errors import DsbevalError
from tests.adapters.realtime_talk import Talked, answered, at_once, said, talk

PEER = Path(__file__).with_name("speech_to_speech_peer.py")
FIRST_S = {"raw": 4, "client": 18}
"""Raw playback hears the first answer to its end; of the long one, which nobody waits for, only the beginning is heard."""
SECOND_S = 1
CLIENTS = 4
"""How many the peer serves at a time without falling behind on a busy machine."""
WORDS = "This is an answer of another make, which goes on for a while."

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("speech_to_speech") is None,
    reason="speech-to-speech is not installed: pip install --no-deps speech-to-speech==1.1.0",
)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    command = [sys.executable, str(PEER), str(2 * CLIENTS)]  # one is not free at once
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as peer:
        try:
            assert peer.stdout is not None
            port = peer.stdout.readline().strip()
            assert port.isdigit(), "the peer did not start"
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            peer.kill()  # it would wait for its clients


Outcome = Talked | str | None


@pytest.fixture(scope="module")
def outcomes(address: str) -> dict[str, Outcome]:
    """Two conversations in which the user comes in, and then every check of the conformance suite, some at a time."""

    def conversation(playback: str) -> Callable[[], Outcome]:
        agent = GptRealtime(base_url=address, silence_ms=300, playback=playback)
        prompt = str(FIRST_S[playback])
        return lambda: talk(agent, [(0.0, said("ack"))], answered(2), prompt=prompt, comes_in=said("ack"))

    def check(name: str) -> Callable[[], Outcome]:
        def fault() -> Outcome:
            try:
                CHECKS[name](GptRealtime(base_url=address))
            except DsbevalError as error:
                return str(error)
            return None

        return fault

    talks = at_once({playback: conversation(playback) for playback in ("raw", "client")})
    return {**talks, **at_once({name: check(name) for name in CHECKS}, CLIENTS)}


@pytest.mark.parametrize("name", CHECKS)
def test_the_conformance_suite_is_passed(outcomes: dict[str, Outcome], name: str) -> None:
    assert outcomes[name] is None


def heard_s(talked: Talked) -> float:
    """Return the seconds of sound on the agent's channel."""
    return np.count_nonzero(talked.model) / RATE


def test_raw_playback_hears_both_answers_to_their_ends(outcomes: dict[str, Outcome]) -> None:
    raw = outcomes["raw"]
    assert isinstance(raw, Talked)
    assert raw.error is None
    assert [response["status"] for response in raw.facts["responses"]] == ["completed"] * 2
    assert raw.text == WORDS * 2
    assert heard_s(raw) == pytest.approx(FIRST_S["raw"] + SECOND_S, abs=0.02)
    assert raw.facts["spelling"] == "ga"
    assert raw.facts["confirmed"]["audio"]["input"]["turn_detection"]["silence_duration_ms"] == 300


def test_client_playback_drops_what_was_not_heard_of_the_first(outcomes: dict[str, Outcome]) -> None:
    client = outcomes["client"]
    assert isinstance(client, Talked)
    assert client.error is None
    (cut,) = client.facts["truncated"]
    assert 0 < cut["audio_end_ms"] < 1000 * FIRST_S["client"]
    assert cut["unheard_ms"] > 0
    # What sounds is what the service was told of the first answer, and the whole of the second.
    assert heard_s(client) == pytest.approx(cut["audio_end_ms"] / 1000 + SECOND_S, abs=0.02)
    # Its transcript came in one piece; what was heard of it are words from its beginning.
    assert client.text.endswith(WORDS)
    kept = client.text.removesuffix(WORDS)
    assert kept
    assert WORDS.startswith(kept)
