"""The realtime client against a server that we did not write: the protocol layer of speech-to-speech 1.1.0, if it is installed.

``pip install --no-deps speech-to-speech==1.1.0`` is enough: its models are not needed.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from adapters.gpt_realtime import GptRealtime
from dsbeval.conformance import CHECKS
from dsbeval.errors import DsbevalError
from tests.adapters.realtime_talk import Talked, answered, at_once, said, talk

PEER = Path(__file__).with_name("speech_to_speech_peer.py")
ANSWER_S = 2.5
WORDS = "This is an answer of another make, which goes on for a while."

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("speech_to_speech") is None,
    reason="speech-to-speech is not installed: pip install --no-deps speech-to-speech==1.1.0",
)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    clients = len(CHECKS) + 2
    command = [sys.executable, str(PEER), str(ANSWER_S), str(clients)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as peer:
        try:
            assert peer.stdout is not None
            port = peer.stdout.readline().strip()
            assert port.isdigit(), "the peer did not start"
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            peer.terminate()


Outcome = Talked | str | None


@pytest.fixture(scope="module")
def outcomes(address: str) -> dict[str, Outcome]:
    """All at once: two conversations in which the user comes in, and every check of the conformance suite."""

    def conversation(playback: str) -> Callable[[], Outcome]:
        agent = GptRealtime(base_url=address, silence_ms=300, playback=playback)
        return lambda: talk(agent, [(0.0, said("ack")), (2.2, said("ack"))], answered(2))

    def check(name: str) -> Callable[[], Outcome]:
        def fault() -> Outcome:
            try:
                CHECKS[name](GptRealtime(base_url=address))
            except DsbevalError as error:
                return str(error)
            return None

        return fault

    work = {playback: conversation(playback) for playback in ("raw", "client")}
    return at_once({**work, **{name: check(name) for name in CHECKS}})


@pytest.mark.parametrize("name", CHECKS)
def test_the_conformance_suite_is_passed(outcomes: dict[str, Outcome], name: str) -> None:
    assert outcomes[name] is None


def test_raw_playback_hears_both_answers_to_their_ends(outcomes: dict[str, Outcome]) -> None:
    raw = outcomes["raw"]
    assert isinstance(raw, Talked)
    assert raw.error is None
    assert [response["status"] for response in raw.facts["responses"]] == ["completed"] * 2
    assert raw.text == WORDS * 2
    assert sum(end - start for start, end in raw.spoken) == pytest.approx(2 * ANSWER_S, abs=0.05)
    assert raw.facts["spelling"] == "ga"
    assert raw.facts["confirmed"]["audio"]["input"]["turn_detection"]["silence_duration_ms"] == 300


def test_client_playback_drops_what_was_not_heard_of_the_first(outcomes: dict[str, Outcome]) -> None:
    client = outcomes["client"]
    assert isinstance(client, Talked)
    assert client.error is None
    first, second = client.spoken
    (cut,) = client.facts["truncated"]
    heard = first[1] - first[0]
    assert heard < ANSWER_S
    assert cut["audio_end_ms"] == pytest.approx(1000 * heard, abs=2)
    assert second[1] - second[0] == pytest.approx(ANSWER_S, abs=0.05)
    # Its transcript came in one piece; what was heard of it are the words up to the cut.
    assert client.text.endswith(WORDS)
    kept = client.text.removesuffix(WORDS)
    assert WORDS.startswith(kept)
    assert len(kept) / len(WORDS) == pytest.approx(heard / ANSWER_S, abs=0.12)
