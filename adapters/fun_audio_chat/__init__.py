"""``fun_audio_chat``: Fun-Audio-Chat-8B with CosyVoice3, by the code of its repository; it answers a turn and keeps nothing.

Conventions
-----------
* 16 kHz in, 24 kHz out, turn-based: one answer to all that was heard, when the user's side has ended, as published;
  ``--model-arg turns=endpointed`` lets it answer each turn.
* The system prompt is the model's own sentence, without which it does not speak (read from its code, never written here),
  and the prompt after it.
* Its audio features end after 30 s, and its processor drops what is beyond without a word. A longer input goes in as several
  pieces, cut where it is quietest (``long_input=split``), or is an error (``refuse``).
* Text greedy, speech sampled, 2,048 new tokens, as published.
* A step of the model is a text token and 200 ms of speech: a word is placed at its step.
* The repository finds its parts by relative paths and top-level names (``utils``): it is put on the path, and is the working
  folder while it loads. Run it in a process of its own.
* No heavy package is imported before a session is opened.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from adapters.kyutai.options import choose_device, choose_dtype
from adapters.local import (
    Draws,
    as_signal,
    check_answer,
    check_heard,
    load_package,
    plain,
    weights_folder,
)
from dsbeval.agent import NO_AUDIO, NOTHING, Agent, Capabilities, Emission, Interaction, Session, TextToken
from dsbeval.audio import Signal, resample
from dsbeval.errors import AgentError, near

AGENT = "fun_audio_chat"
HUB_ID = "FunAudioLLM/Fun-Audio-Chat-8B"
REPOSITORY = "https://github.com/FunAudioLLM/Fun-Audio-Chat"
VOCODER = "pretrained_models/Fun-CosyVoice3-0.5B-2512"
IN_RATE, OUT_RATE, FRAME = 16_000, 24_000, 1280
CODES = 6561
STEP_S = 0.2
LONGEST_S = 30.0
SEARCH_S, CELL_S = 5.0, 0.1
LONG_INPUTS = ("split", "refuse")


class FunAudioChat(Agent):
    """The agent.

    Parameters
    ----------
    checkpoint : str or None
        ``FunAudioLLM/Fun-Audio-Chat-8B``, or a folder with its weights.
    code : str
        Clone of the model's repository, with its submodules, and CosyVoice3 in ``pretrained_models``.
    device : str
        ``auto``, ``cpu``, ``cuda``, ``cuda:N``.
    shards : int
        GPUs that the model is spread over, of those that are visible.
    dtype : str
        A dtype of torch.
    max_new_tokens : int
    text_greedy : bool
    long_input : str
        ``split`` or ``refuse``: what is done with more than 30 s.
    """

    name = AGENT
    checkpoint_files = ("*.json", "*.safetensors", "*.txt", "*.jinja")

    def __init__(
        self,
        checkpoint: str | None = None,
        code: str = "",
        device: str = "auto",
        shards: int = 1,
        dtype: str = "bfloat16",
        max_new_tokens: int = 2048,
        text_greedy: bool = True,
        long_input: str = "split",
    ) -> None:
        self._folder = weights_folder(AGENT, checkpoint, HUB_ID, self.checkpoint_files, ("config.json",))
        self._code = _code(code)
        if long_input not in LONG_INPUTS:
            raise AgentError(f"agent {AGENT}: long_input is {long_input!r}; {near(str(long_input), LONG_INPUTS)}")
        if type(shards) is not int or shards < 1:  # True is no number of GPUs
            raise AgentError(f"agent {AGENT}: shards is {shards!r}; give the number of GPUs to spread the model over")
        self._device, self._dtype, self._shards = str(device), str(dtype), shards
        self._settings = {
            "max_new_tokens": int(max_new_tokens),
            "text_greedy": bool(text_greedy),
            "long_input": long_input,
        }
        self._loaded: Model | None = None

    @property
    def capabilities(self) -> Capabilities:
        """Turn-based."""
        return Capabilities(Interaction.TURN_BASED, input_rate=IN_RATE, output_rate=OUT_RATE, frame=FRAME)

    def open(self, prompt: str, seed: int) -> Session:
        """Return a session in a fresh state; the first one loads the models."""
        if self._loaded is None:
            self._loaded = self._load()
        return FunAudioChatSession(self._loaded, prompt, seed, self._settings)

    def _load(self) -> Model:
        torch = load_package(AGENT, "torch", "torch")
        transformers = load_package(AGENT, "transformers", "transformers==4.52.3")
        spread, device = self._placed(torch)
        with _in(self._code):
            _register(_import("funaudiochat.register", self._code))
            constants = _import("utils.constant", self._code)
            synthesis = _import("utils.cosyvoice_detokenizer", self._code)
            vocoder = synthesis.get_audio_detokenizer()
        folder = str(self._folder)
        config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
        processor = transformers.AutoProcessor.from_pretrained(folder, local_files_only=True)
        model = transformers.AutoModelForSeq2SeqLM.from_pretrained(
            folder,
            config=config,
            local_files_only=True,
            torch_dtype=choose_dtype(AGENT, self._dtype, device or "cuda"),
            **spread,
        ).eval()
        return Model(torch, model.to(device) if device else model, processor, constants, synthesis, vocoder)

    def _placed(self, torch: Any) -> tuple[dict[str, Any], str]:
        """Return how the model is spread over GPUs, over no other than asked for, or else the one device that it goes to."""
        if self._shards == 1:
            return {}, choose_device(AGENT, self._device)
        gpus = int(torch.cuda.device_count())
        if self._shards > gpus:
            raise AgentError(
                f"agent {AGENT}: shards={self._shards}, and {gpus} GPU(s) are visible; give at most so many"
            )
        room = {i: torch.cuda.mem_get_info(i)[0] for i in range(self._shards)}
        # The synthesiser lives on the first one; balanced leaves room beside it.
        return {"device_map": "balanced_low_0", "max_memory": room}, ""

    def close(self) -> None:
        """Free the models."""
        self._loaded = None


def _code(code: str) -> Path:
    folder = Path(code).expanduser() if code else None
    how = f"give --model-arg code=DIR with a clone of {REPOSITORY} and its submodules"
    if folder is None:
        raise AgentError(f"agent {AGENT}: the model's code is not on PyPI; {how}")
    for part in ("funaudiochat/register.py", "utils/constant.py", "utils/cosyvoice_detokenizer.py"):
        if not (folder / part).is_file():
            raise AgentError(f"agent {AGENT}: code: {folder} has no {part}; {how}")
    if not (folder / VOCODER).is_dir():  # looked for on the network otherwise
        raise AgentError(
            f"agent {AGENT}: code: {folder} has no {VOCODER}; get it with: hf download "
            f"FunAudioLLM/{Path(VOCODER).name} --local-dir {folder / VOCODER}"
        )
    return folder.resolve()


def _register(module: Any) -> None:
    """Make the model's classes known to transformers, once a process: a second time is an error there."""
    if not getattr(module, "_dsbeval_registered", False):
        module.register_funaudiochat()
        module._dsbeval_registered = True


@contextlib.contextmanager
def _in(folder: Path) -> Iterator[None]:
    """Make a folder the working folder, and the first place where modules are looked for."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    with contextlib.chdir(folder):
        yield


def _import(name: str, code: Path) -> Any:
    """Import a module of the clone. Raises :class:`AgentError` when another package has taken its name, or it lacks one."""
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise AgentError(
            f"agent {AGENT}: {name} of {code} needs the package {error.name}, which is not installed; install "
            f"adapters/{AGENT}/requirements.txt"
        ) from None
    if not Path(str(module.__file__)).resolve().is_relative_to(code):
        raise AgentError(
            f"agent {AGENT}: {name} was imported from {module.__file__}, not from {code}; run this model in a process of "
            "its own"
        )
    return module


class Model:
    """The loaded model, its processor and its synthesiser. They keep nothing from one answer to the next."""

    def __init__(self, torch: Any, model: Any, processor: Any, constants: Any, synthesis: Any, vocoder: Any) -> None:
        self.torch, self._model, self._processor = torch, model, processor
        self._constants, self._synthesis, self._vocoder = constants, synthesis, vocoder
        self._rate = int(vocoder.sample_rate)
        if self._rate <= 0:
            raise AgentError(f"agent {AGENT}: its synthesiser says that it works at {self._rate} Hz")

    def system(self, prompt: str) -> str:
        """Return the system prompt: the sentence that makes it speak, then the prompt."""
        return " ".join(part for part in (self._constants.DEFAULT_S2M_PROMPT, prompt.strip()) if part)

    def answer(
        self, prompt: str, pieces: list[Signal], settings: dict[str, Any]
    ) -> tuple[Signal, tuple[TextToken, ...]]:
        """Return the answer to one user turn, at 24 kHz, and its words with their times."""
        conversation = [
            {"role": "system", "content": self.system(prompt)},
            {"role": "user", "content": self._constants.AUDIO_TEMPLATE * len(pieces)},
        ]
        text = self._processor.apply_chat_template(conversation, add_generation_prompt=True, tokenize=False)
        inputs = self._processor(text=text, audio=pieces, return_tensors="pt", return_token_type_ids=False)
        inputs = inputs.to(self._model.device)
        self._model.sp_gen_kwargs.update(
            self._constants.DEFAULT_SP_GEN_KWARGS | {"text_greedy": settings["text_greedy"]}
        )
        asked = self._constants.DEFAULT_S2M_GEN_KWARGS | {"max_new_tokens": settings["max_new_tokens"]}
        with self.torch.inference_mode():
            ids, codes = self._model.generate(**inputs, **asked)
        words = self._words(ids[0, inputs["input_ids"].shape[1] :].tolist())
        audio = self._speech([code for code in codes[0].tolist() if 0 <= code < CODES])
        check_answer(AGENT, "".join(word.text for word in words), audio, OUT_RATE)
        return audio, words

    def _words(self, ids: list[int]) -> tuple[TextToken, ...]:
        """Return the text, each piece at its step; a character of several ids at its last."""
        out: list[TextToken] = []
        held: list[int] = []
        for step, text_id in enumerate(ids):
            held.append(text_id)
            piece = self._processor.decode(held, skip_special_tokens=True)
            if piece.endswith("\ufffd") and len(held) < 4:
                continue
            held = []
            if said := plain(piece):
                out.append(TextToken(said, step * STEP_S))
        return tuple(out)

    def _speech(self, codes: list[int]) -> Signal:
        if not codes:
            return NO_AUDIO
        with self.torch.inference_mode():
            speech = self._synthesis.token2wav(
                self._vocoder, codes, embedding=None, token_hop_len=25 * 30, pre_lookahead_len=3
            )
        return resample(as_signal(speech), self._rate, OUT_RATE)


def pieces_of(audio: Signal, longest_s: float = LONGEST_S) -> list[Signal]:
    """Cut audio at 16 kHz into as few pieces as are no longer than that, each cut in the quietest 0.1 s of the 5 s before."""
    longest, search, cell = round(longest_s * IN_RATE), round(SEARCH_S * IN_RATE), round(CELL_S * IN_RATE)
    out: list[Signal] = []
    while audio.size > longest:
        window = audio[longest - search : longest].astype(np.float64)
        levels = np.square(window).reshape(-1, cell).sum(1)
        cut = longest - search + int(levels.argmin()) * cell + cell // 2
        out.append(audio[:cut])
        audio = audio[cut:]
    return [*out, audio]


class FunAudioChatSession(Session):
    """One conversation, that has one answer."""

    def __init__(self, model: Model, prompt: str, seed: int, settings: dict[str, Any]) -> None:
        self._model: Model | None = model
        self._draws = Draws(model.torch, seed)
        self._prompt, self._settings = prompt, settings
        self._heard: list[Signal] = []
        self._pieces = 0

    def step(self, heard: Signal) -> Emission:
        """Hear a frame."""
        if self._model is None:
            raise AgentError(f"agent {AGENT}: the session is closed; open another one")
        check_heard(AGENT, heard, FRAME, IN_RATE)
        self._heard.append(heard.copy())
        return NOTHING

    def finish(self) -> Emission:
        """Answer what was heard; nothing where that is nothing."""
        if self._model is None or not self._heard:
            return NOTHING
        audio = np.concatenate(self._heard)
        pieces = pieces_of(audio)
        if len(pieces) > 1 and self._settings["long_input"] == "refuse":
            raise AgentError(
                f"agent {AGENT}: {audio.size / IN_RATE:.1f} s were heard, and the model hears {LONGEST_S:.0f} s; give "
                "--model-arg long_input=split to let it hear several pieces"
            )
        self._pieces = len(pieces)
        with self._draws:
            speech, words = self._model.answer(self._prompt, pieces, self._settings)
        return Emission(speech, words, rate=OUT_RATE)

    def facts(self) -> dict[str, Any]:
        """Return how the model was run, and in how many pieces it heard the user."""
        return {"settings": self._settings, "pieces": self._pieces}

    def close(self) -> None:
        """Forget what was heard."""
        self._model, self._heard = None, []
