"""Each check of the conformance suite rejects an agent that breaks it."""

from __future__ import annotations

import numpy as np
import pytest

from dsbeval.agent import Agent, Capabilities, Emission, Interaction, Session, TextToken
from dsbeval.audio import Signal
from dsbeval.conformance import CHECKS
from dsbeval.errors import AgentError, DsbevalError


class Faulty(Agent):
    """An agent with one fault by name."""

    def __init__(self, fault: str) -> None:
        self.name = fault
        self.fault = fault
        self.opened = 0

    @property
    def capabilities(self) -> Capabilities:
        frame = 480 + 480 * (self.opened if self.fault == "changes" else 0)
        return Capabilities(Interaction.FRAME_SYNCHRONOUS, frame=frame, text=False)

    def open(self, prompt: str, seed: int) -> Session:
        self.opened += 1
        if self.fault == "prompt" and not prompt.isascii():
            raise RuntimeError("cannot encode")
        return FaultySession(self.fault, self.opened)


class FaultySession(Session):
    def __init__(self, fault: str, opened: int) -> None:
        self.fault, self.opened = fault, opened
        self.buffer = np.zeros(480, np.float32)
        self.closed = False

    def step(self, heard: Signal) -> Emission:
        match self.fault:
            case "writes":
                heard *= 2
            case "reuses":
                self.buffer += 1
                return Emission(self.buffer)
            case "leaks":
                return Emission(np.full(480, float(self.opened), np.float32))
            case "floods":
                return Emission(np.zeros(480 * 100, np.float32))
            case "float64":
                return Emission(heard.astype(np.float64))
            case "stereo":
                return Emission(np.stack([heard, heard]))
            case "nan":
                return Emission(np.full(480, np.nan, np.float32))
            case "rate":
                return Emission(heard, rate=16000)
            case "text":
                return Emission(text=(TextToken("hello"),))
        return Emission(heard)

    def cut_off(self) -> Emission:
        return Emission(text=(TextToken("hello"),)) if self.fault == "tells" else Emission()

    def close(self) -> None:
        if self.closed and self.fault == "closes":
            raise RuntimeError("already closed")
        self.closed = True


@pytest.mark.parametrize(
    ("fault", "check", "message"),
    [
        ("changes", "capabilities_are_constant", "changed by use"),
        ("floods", "every_frame_is_answered_within_the_contract", "output_rate"),
        ("float64", "every_frame_is_answered_within_the_contract", "return float32"),
        ("stereo", "every_frame_is_answered_within_the_contract", "return one channel"),
        ("nan", "every_frame_is_answered_within_the_contract", "NaN or infinite value at sample 0"),
        ("rate", "every_frame_is_answered_within_the_contract", "16000 Hz but capabilities.output_rate is 24000 Hz"),
        ("text", "every_frame_is_answered_within_the_contract", "declares text=False"),
        ("tells", "a_conversation_may_be_cut_off", "text=False is declared"),
        ("writes", "a_frame_is_heard_and_not_changed", "copy it first"),
        ("reuses", "an_emission_is_not_changed_later", "return a copy"),
        ("leaks", "an_unfinished_session_leaves_nothing_behind", "fresh state"),
        ("leaks", "equal_seeds_give_equal_bytes", "unlike output"),
    ],
)
def test_a_fault_is_named_in_one_line(fault: str, check: str, message: str) -> None:
    with pytest.raises(DsbevalError, match=message) as caught:
        CHECKS[check](Faulty(fault))
    assert "\n" not in str(caught.value)
    assert fault in str(caught.value)


@pytest.mark.parametrize(
    ("fault", "check"), [("closes", "close_may_be_called_again"), ("prompt", "any_prompt_is_taken")]
)
def test_an_exception_of_the_agent_comes_through(fault: str, check: str) -> None:
    with pytest.raises(RuntimeError):
        CHECKS[check](Faulty(fault))


def test_a_faultless_agent_passes_every_check() -> None:
    for check in CHECKS.values():
        check(Faulty("none"))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("frame", 0, "positive whole number"),
        ("input_rate", 44100.0, "positive whole number"),
        ("frame", 1763, "not a whole number of samples at 24000 Hz"),
    ],
)
def test_impossible_capabilities_are_refused(field: str, value: object, message: str) -> None:
    facts: dict[str, object] = {"input_rate": 22050, "frame": 1764, field: value}
    with pytest.raises(AgentError, match=message):
        Capabilities(Interaction.FRAME_SYNCHRONOUS, **facts)  # type: ignore[arg-type]


def test_a_frame_of_another_rate_has_its_length_on_the_session_clock() -> None:
    capabilities = Capabilities(Interaction.FRAME_SYNCHRONOUS, input_rate=22050, output_rate=22050, frame=1764)
    assert (capabilities.clock_frame, capabilities.clock_delay) == (1920, 1920)
