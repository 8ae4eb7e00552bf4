"""``minicpm_o``: MiniCPM-o 4.5 (openbmb/MiniCPM-o-4_5) by the code of its checkpoint, answering turns or in full duplex.

Conventions
-----------
* 16 kHz in, 24 kHz out. One conversation at a time: the model keeps it inside.
* ``mode=turns`` (default, as DSB-IFEval ran it): it hears one second after another, and answers once, when the user's side
  has ended; ``--model-arg turns=endpointed`` lets it answer each turn. Temperature 0.5, 4,096 new tokens, the system prompt
  appended to the model's own.
* ``mode=duplex`` (as DyaFDB ran it): one step is one second; each second it listens or speaks. It declares itself *chunked*, so
  in a dyad its seconds are worked on in a thread of their own and waited for where more than two are under way. The system prompt
  stands in a short frame that says that this is a live call.
* A reference voice is needed in both: the model has none of its own.
* No heavy package is imported before a session is opened. The weights' own code is run (``trust_remote_code``), from the
  folder that is given and never from the network.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from adapters.kyutai.options import choose_device, choose_dtype
from adapters.local import OneAtATime, check_heard, load_package, weights_folder
from dsbeval.agent import Agent, Capabilities, Interaction, Session
from dsbeval.audio import Signal, read_audio, resample
from dsbeval.errors import AgentError, near

if TYPE_CHECKING:
    from adapters.minicpm_o.duplex import Speaking

AGENT = "minicpm_o"
HUB_ID = "openbmb/MiniCPM-o-4_5"
IN_RATE, OUT_RATE = 16_000, 24_000
TURN_FRAME = 1280
MODES = ("turns", "duplex")
LONGEST_VOICE_S = 30.0
VOCODER = "assets/token2wav"
VOCODER_FILES = ("speech_tokenizer_v2_25hz.onnx", "campplus.onnx", "flow.yaml", "flow.pt", "hift.pt")
NEEDED = ("config.json", *(f"{VOCODER}/{name}" for name in VOCODER_FILES))
CALLS = {
    "turns": (
        "init_tts",
        "reset_session",
        "init_token2wav_cache",
        "get_sys_prompt",
        "streaming_prefill",
        "streaming_generate",
    ),
    "duplex": ("as_duplex", "reset_session"),
}


class MiniCPMo(Agent):
    """The agent.

    Parameters
    ----------
    checkpoint : str or None
        ``openbmb/MiniCPM-o-4_5``, or a folder with its weights, their code and the vocoder.
    device : str
        ``auto``, ``cuda``, ``cuda:N``; ``cpu`` only where it is named: the released vocoder has no CPU path.
    mode : str
        ``turns`` or ``duplex``.
    voice : str
        WAV of the voice to speak in, one channel, 30 s at most.
    dtype, attention : str
        A dtype of torch; ``sdpa`` or ``flash_attention_2``.
    framing : bool
        Whether the system prompt is put into the frame of a live call (duplex).
    temperature, top_p, top_k : number or None
        None: 0.5 for turns and 0.7 for duplex; 0.8; 100.
    max_new_tokens, length_penalty : number
        Of an answer (turns).
    listen_prob_scale, force_listen_count, speak_tokens : number
        Weight of the listen token, seconds of forced listening at the start, tokens a second of speech (duplex).
    flush : bool
        Whether what has not been played is dropped when it goes back to listening (duplex).
    """

    name = AGENT
    checkpoint_files = ("*.json", "*.py", "*.safetensors", "*.txt", "*.jinja", f"{VOCODER}/*")

    def __init__(
        self,
        checkpoint: str | None = None,
        device: str = "auto",
        mode: str = "turns",
        voice: str = "",
        dtype: str = "bfloat16",
        attention: str = "sdpa",
        framing: bool = True,
        temperature: float | None = None,
        top_p: float = 0.8,
        top_k: int = 100,
        max_new_tokens: int = 4096,
        length_penalty: float = 1.1,
        listen_prob_scale: float = 1.0,
        force_listen_count: int = 0,
        speak_tokens: int = 20,
        flush: bool = True,
    ) -> None:
        if mode not in MODES:
            raise AgentError(f"agent {AGENT}: mode is {mode!r}; {near(str(mode), MODES)}")
        self._folder = weights_folder(AGENT, checkpoint, HUB_ID, self.checkpoint_files, NEEDED)
        self._mode, self._device, self._dtype, self._attention = mode, str(device), str(dtype), str(attention)
        self._voice_path = Path(str(voice)).expanduser()
        self._voice = _voice(self._voice_path) if voice else None
        if self._voice is None:
            raise AgentError(
                f"agent {AGENT}: it has no voice of its own; give --model-arg voice=FILE.wav, 30 s at most"
            )
        self._framing, self._flush = bool(framing), bool(flush)
        heat = temperature if temperature is not None else 0.5 if mode == "turns" else 0.7
        self._sampling: dict[str, Any] = {"temperature": float(heat), "top_p": float(top_p), "top_k": int(top_k)}
        self._answer = {"max_new_tokens": int(max_new_tokens), "length_penalty": float(length_penalty)}
        self._chunk = {
            "max_new_speak_tokens_per_chunk": int(speak_tokens),
            "listen_prob_scale": float(listen_prob_scale),
        }
        self._force_listen = int(force_listen_count)
        self._one = OneAtATime(AGENT)
        self._loaded: tuple[Any, Any, Any] | None = None

    @property
    def capabilities(self) -> Capabilities:
        """Turn-based, or chunks of a second."""
        duplex = self._mode == "duplex"
        return Capabilities(
            Interaction.CHUNKED if duplex else Interaction.TURN_BASED,
            input_rate=IN_RATE,
            output_rate=OUT_RATE,
            frame=IN_RATE if duplex else TURN_FRAME,
            voice=True,
        )

    def open(self, prompt: str, seed: int) -> Session:
        """Return a session in a fresh state; the first one loads the model. Raises while another one is open."""
        from adapters.minicpm_o.duplex import DuplexSession
        from adapters.minicpm_o.turns import TurnSession

        torch, model, duplex = self._loaded = self._loaded or self._load()
        assert self._voice is not None
        self._one.take()
        try:
            if self._mode == "turns":
                settings = self._sampling | self._answer
                return TurnSession(torch, model, self._one, prompt, seed, self._voice, settings)
            return DuplexSession(torch, model, duplex, self._one, prompt, seed, self._speaking())
        except BaseException:
            self._one.give_back()
            raise

    def _speaking(self) -> Speaking:
        from adapters.minicpm_o.duplex import Speaking

        assert self._voice is not None
        return Speaking(self._voice, self._voice_path, self._sampling | self._chunk, self._framing, self._flush)

    def _load(self) -> tuple[Any, Any, Any]:
        torch = load_package(AGENT, "torch", "torch")
        transformers = load_package(AGENT, "transformers", "transformers==4.51.0")
        device = choose_device(AGENT, self._device)
        if device == "cpu" and self._device != "cpu":
            raise AgentError(f"agent {AGENT}: no GPU is visible, and its vocoder has no CPU path")
        model: Any = transformers.AutoModel.from_pretrained(
            str(self._folder),
            trust_remote_code=True,
            local_files_only=True,
            attn_implementation=self._attention,
            torch_dtype=choose_dtype(AGENT, self._dtype, device),
            init_vision=False,
            init_audio=True,
            init_tts=True,
        )
        if missing := [name for name in CALLS[self._mode] if not hasattr(model, name)]:
            raise AgentError(
                f"agent {AGENT}: the code of {self._folder} has no {missing[0]}; it is another version of the model: "
                f"give the folder of {HUB_ID}"
            )
        model = model.eval().to(device)
        if self._mode == "turns":
            model.init_tts(model_dir=str(self._folder / VOCODER))
            return torch, model, None
        return torch, model, model.as_duplex(device=device, force_listen_count=self._force_listen)

    def close(self) -> None:
        """Free the model."""
        self._loaded = None


def check_frame(heard: Signal, frame: int) -> None:
    """Raise unless ``heard`` is one frame."""
    check_heard(AGENT, heard, frame, IN_RATE)


def _voice(path: Path) -> Signal:
    """Return the reference voice at 16 kHz."""
    voice = read_audio(path, rate=None, channels=1)
    import soundfile

    rate = int(soundfile.info(path).samplerate)
    if voice.size > LONGEST_VOICE_S * rate:
        raise AgentError(
            f"agent {AGENT}: voice: {path} is {voice.size / rate:.1f} s long; the model takes {LONGEST_VOICE_S:.0f} s: cut it"
        )
    return resample(voice, rate, IN_RATE)
