"""What the two processes say to each other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dsbeval.agent import Emission, TextToken
from dsbeval.host.wire import HEADER, MAGIC, PROTOCOL, Kind, Message, WireError, pack, receive, unpack

signals = arrays(np.float32, st.integers(0, 50), elements=st.floats(-1, 1, width=32))
tokens = st.builds(TextToken, st.text(max_size=5), st.floats(allow_nan=False))
emissions = st.builds(
    Emission, signals, st.lists(tokens, max_size=3).map(tuple), st.booleans(), st.booleans(),
    st.none() | st.integers(1, 48_000), st.none() | st.floats(0, 1e9),
)  # fmt: skip


def reader(data: bytes) -> Callable[[int], bytearray]:
    rest = bytearray(data)

    def read(size: int) -> bytearray:
        assert size <= len(rest), "reads past the message"
        out = rest[:size]
        del rest[:size]
        return out

    return read


@settings(deadline=None, max_examples=60)
@given(emissions | st.lists(emissions, max_size=3).map(tuple))
def test_what_a_step_returns_keeps_all_its_fields(returned: Emission | tuple[Emission, ...]) -> None:
    data, signal = pack(returned)
    found = unpack(receive(reader(Message(Kind.ANSWER, 1, 2, data, signal).encode())))
    one, other = ((value,) if isinstance(value, Emission) else value for value in (returned, found))
    assert isinstance(found, Emission) == isinstance(returned, Emission)
    assert len(one) == len(other)
    for was, came in zip(one, other, strict=True):
        assert came.audio.dtype == np.float32
        assert came.audio.tobytes() == was.audio.tobytes()
        assert came.text == was.text
        assert (came.done, came.flush, came.rate, came.arrived) == (was.done, was.flush, was.rate, was.arrived)


@pytest.mark.parametrize("writeable", [True, False])
def test_a_message_arrives_as_it_was_sent(writeable: bool) -> None:
    signal = np.linspace(-1, 1, 33, dtype=np.float32)
    signal.flags.writeable = writeable
    sent = Message(Kind.OPEN, 7, 3, {"prompt": "Über 東京 🙂\ud800", "seed": 2**40}, signal)
    found = receive(reader(sent.encode()))
    assert (found.kind, found.call, found.session, found.data) == (sent.kind, sent.call, sent.session, sent.data)
    assert np.array_equal(found.signal, signal)
    assert found.signal.flags.writeable == writeable


def test_a_stamp_of_another_clock_is_moved_to_this_one() -> None:
    data, signal = pack(Emission(arrived=100.0))
    found = unpack(Message(Kind.ANSWER, data=data, signal=signal), clock_offset=-40.0)
    assert isinstance(found, Emission)
    assert found.arrived == 60.0


def head(
    kind: int = Kind.ANSWER, text: int = 0, samples: int = 0, version: int = PROTOCOL, magic: bytes = MAGIC
) -> bytes:
    return HEADER.pack(magic, version, kind, 0, 1, 0, text, samples)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"Downloading shards: 100%|####", r"no message \(b'Downloading "),
        (head(version=9), "protocol 9, and this is protocol 3"),
        (head(kind=99), "kind 99"),
        (head(text=1 << 30), "makes no sense"),
        (head(samples=0xFFFFFFFC), "makes no sense"),
        (head(samples=3), "makes no sense"),
        (head(text=4) + b"{...", "not JSON"),
        (head(text=2) + b"\xff\xfe", "not JSON"),
        (head(text=2) + b"[]", "a message that is a list"),
    ],
)
def test_what_is_no_message_is_named(data: bytes, message: str) -> None:
    with pytest.raises(WireError, match=message) as caught:
        receive(reader(data))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"one": True},
        {"one": True, "emissions": [{}]},
        {"one": True, "emissions": [{"samples": 2, "text": [["a"]]}]},
        {"one": True, "emissions": [{"samples": 1}]},
        {"one": True, "emissions": [{"samples": 3}]},
        {"one": True, "emissions": 3},
    ],
)
def test_an_answer_that_does_not_add_up_is_no_emission(data: dict[str, object]) -> None:
    with pytest.raises(WireError):
        unpack(Message(Kind.ANSWER, data=data, signal=np.zeros(2, np.float32)))
