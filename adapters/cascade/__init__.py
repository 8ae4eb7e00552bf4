"""``cascade``: a spoken agent on the CPU, of a voice activity model, a recogniser, rules and a synthesiser.

Each frame is heard, then decided on, then answered with a frame of its own: the agent listens while it speaks. It reads
its system prompt and nothing else about a case (:mod:`adapters.cascade.prompt`). It is a baseline with real errors;
``docs/agents.md`` says what it cannot do.

Conventions
-----------
* 24 kHz in and out, frames of 80 ms. Every emission is exactly a frame; what is decided at the end of a frame is heard
  from there on.
* All state that changes is inside the session. The agent keeps the loaded models, the decoders that are not in use, and
  the sentences it has synthesised.
* Equal prompt, seed and frames give equal bytes. With a text model (``llm``) that holds as far as the model's server
  answers alike.
* No heavy package is imported before a session is opened.
"""

from __future__ import annotations

import random

from adapters.cascade.hearing import Hearing
from adapters.cascade.policy import Policy, Say, Stop
from adapters.cascade.prompt import read_prompt
from adapters.cascade.recognise import Recogniser, Recognition, load_recognition
from adapters.cascade.voice import Mouth, Speech, Voice
from adapters.cascade.words import SHORTEST_SOUND, Kind, RuleWriter, Writer
from adapters.local import check_heard
from dsbeval.agent import Agent, Capabilities, Emission, Interaction, Session
from dsbeval.audio import RATE, Signal
from dsbeval.errors import AgentError

FRAME = 1920


class Cascade(Agent):
    """The agent.

    Parameters
    ----------
    voice : str
        A voice of the synthesiser, with or without a pace: ``heart``, ``m2``, ``f2@0.9``.
    asr : str
        ``pocketsphinx``, or ``whisper:DIR`` with the folder of a CTranslate2 Whisper model (needs faster-whisper).
    llm : str
        Base address of an OpenAI-compatible service that writes the words: ``http://host:port/v1``. Empty: the rules
        write them.
    llm_model : str
        The model's name there.
    llm_timeout : float
        Seconds after which an answer of the service is an error.
    llm_key_env : str
        Name of the environment variable that holds the service's key. Empty: none is sent.
    """

    name = "cascade"

    def __init__(
        self,
        voice: str = "heart",
        asr: str = "pocketsphinx",
        llm: str = "",
        llm_model: str = "",
        llm_timeout: float = 20.0,
        llm_key_env: str = "",
    ) -> None:
        self._voice_name = str(voice)
        self._asr = str(asr)
        self._writer: Writer = RuleWriter()
        if llm:
            from adapters.cascade.chat import ChatWriter

            self._writer = ChatWriter(str(llm), str(llm_model), llm_timeout, str(llm_key_env))
        elif llm_model:
            raise AgentError("agent cascade: llm_model is given without llm; add --model-arg llm=http://host:port/v1")
        self._recognition: Recognition | None = None
        self._voice: Voice | None = None

    @property
    def capabilities(self) -> Capabilities:
        """80 ms frames on the logical clock."""
        return Capabilities(Interaction.FRAME_SYNCHRONOUS, input_rate=RATE, output_rate=RATE, frame=FRAME)

    def open(self, prompt: str, seed: int) -> Session:
        """Return a session in a fresh state."""
        if self._recognition is None or self._voice is None:
            from dsbeval.speech.engines import load_engine

            self._recognition = load_recognition(self._asr)
            self._voice = Voice(load_engine("hibari"), self._voice_name)
        return CascadeSession(self._recognition, self._voice, self._writer, prompt, seed)

    def close(self) -> None:
        """Free the models."""
        self._recognition = self._voice = None


class CascadeSession(Session):
    """One conversation."""

    def __init__(self, recognition: Recognition, voice: Voice, writer: Writer, prompt: str, seed: int) -> None:
        self._recognition = recognition
        self._recogniser: Recogniser | None = recognition.lend()
        self._hearing = Hearing(self._recogniser)
        self._mouth = Mouth()
        self._voice = voice
        self._seed = seed
        self._floor = read_prompt(prompt)
        self._policy = Policy(self._floor, prompt, writer, self._hearing, random.Random(seed))

    def step(self, heard: Signal) -> Emission:
        """Hear one frame and return one."""
        if self._recogniser is None:
            raise AgentError("agent cascade: the session is closed; open another one")
        check_heard("cascade", heard, FRAME, RATE)
        act = self._policy.decide(self._hearing.push(heard), self._mouth.speaking, self._mouth.said_s)
        if isinstance(act, Say):
            self._mouth.start(self._speech(act))
        elif act is Stop.NOW:
            self._mouth.stop()
        elif act is Stop.SENTENCE:
            self._mouth.finish_sentence()
        audio, text = self._mouth.frame(FRAME)
        return Emission(audio, text, flush=act is Stop.NOW)

    def finish(self) -> Emission:
        """Say what is begun to its end: that the user side has ended is no reason to stop in the middle of a word."""
        audio, text = self._mouth.frame(self._mouth.left)
        return Emission(audio, text)

    def _speech(self, act: Say) -> Speech:
        speech = self._voice.speak(act.text, self._seed, act.longest_s)
        if act.kind is Kind.BACKCHANNEL and act.longest_s is not None and speech.seconds > act.longest_s:
            return self._voice.speak(SHORTEST_SOUND, self._seed)
        return speech

    def close(self) -> None:
        """Give the recogniser back."""
        if self._recogniser is not None:
            self._recognition.give_back(self._recogniser)
            self._recogniser = None
