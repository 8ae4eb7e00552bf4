"""``personaplex``: NVIDIA's PersonaPlex-7B, a Moshi that takes a role as text and a voice.

It runs on the released ``moshi`` package, for which its weights are converted as they are loaded
(:mod:`adapters.personaplex.convert`), or on NVIDIA's fork in an environment of its own; which of the two is installed
decides. Both are installed under one name and cannot be together.

Conventions
-----------
* Frames, and on the released package the alignment, are those of :mod:`adapters.kyutai`; on the fork see
  :mod:`adapters.personaplex.fork`. Both place the model's frames at the same samples of a recording.
* The prompt is played before the first frame and is not in the recording: voice, spacer, text, spacer
  (:mod:`adapters.personaplex.prompt`). An empty prompt leaves the text out and nothing else.
* Sampling is that of the published runs: audio and text at temperature 0.8, top-k 250 and 25. The fork's own script has
  0.7 for the text.
* It looks back on 3000 frames, 240 s, and its prompt is among them.
"""

from __future__ import annotations

import functools
from typing import Any

from adapters.kyutai import weights
from adapters.kyutai.engine import FRAME, FRAME_S, RATE, Engine, Setting
from adapters.kyutai.options import Sampling, choose_device, choose_dtype
from adapters.kyutai.package import find_package
from adapters.local import loaded
from adapters.personaplex.convert import check_whole, language_model
from adapters.personaplex.fork import ForkSession
from adapters.personaplex.prompt import SPACER, wrapped
from adapters.personaplex.released import Forcing, ReleasedSession
from adapters.personaplex.voices import load_voice
from dsbeval.agent import Agent, Capabilities, Interaction, Session
from dsbeval.checkpoints import resolve
from dsbeval.errors import AgentError

PUBLISHED = Sampling(temperature=0.8, text_temperature=0.8, top_k=250, text_top_k=25)
VOICE = "NATF2"


class PersonaPlex(Agent):
    """The agent.

    Parameters
    ----------
    checkpoint : str
        A folder with the released files, or the hub id ``nvidia/personaplex-7b-v1``, whose licence must be accepted there.
    device : str
        ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
    voice : str
        A voice of the release (NATF0 to 3, NATM0 to 3, VARF0 to 4, VARM0 to 4), a ``.pt`` file, an audio file, or ``none``.
    dtype : str
        ``auto`` (bfloat16 on a GPU, float32 on a CPU), ``bfloat16``, ``float16`` or ``float32``.
    temperature, text_temperature, top_k, text_top_k : number
        Sampling of the audio and the text tokens; a temperature of 0 takes the likeliest.
    cuda_graphs, compile_kernels : bool
        Whether a GPU may be driven by captured graphs, and whether the package may compile its small kernels there.
    """

    name = "personaplex"
    checkpoint_files = (*weights.FILES, "*.pt", "voices.tgz")

    def __init__(
        self,
        checkpoint: str | None = None,
        device: str = "auto",
        voice: str = VOICE,
        dtype: str = "auto",
        temperature: float | None = None,
        text_temperature: float | None = None,
        top_k: int | None = None,
        text_top_k: int | None = None,
        cuda_graphs: bool = True,
        compile_kernels: bool = True,
    ) -> None:
        if checkpoint is None:
            raise AgentError(
                "agent personaplex: no checkpoint; give --checkpoint nvidia/personaplex-7b-v1, or a folder with such files"
            )
        self.sampling = PUBLISHED.given(
            self.name,
            temperature=temperature,
            text_temperature=text_temperature,
            top_k=top_k,
            text_top_k=text_top_k,
        )
        self.package = find_package(self.name, fork=True)
        setting = Setting(choose_device(self.name, device), bool(cuda_graphs), bool(compile_kernels))
        number = choose_dtype(self.name, dtype, setting.device)
        found = resolve(str(checkpoint), self.checkpoint_files)
        folder = weights.find_files(self.name, found, self.package)
        self._voice = load_voice(self.name, str(voice), found)
        self._tokenizer = weights.load_tokenizer(folder)
        forked = self.package.kind == "fork"
        self._forcing = Forcing()
        if forked:
            mimi, lm, generator = self._with_fork(folder, setting, number)
        else:
            mimi, lm, generator = self._with_released(folder, setting, number)
        weights.check_models(folder, lm, mimi, self._tokenizer)
        self._limit = int(lm.context)
        lm_gen = generator(**self.sampling.for_generator())
        self.engine = Engine(self.name, self.package, lm_gen, mimi, setting)
        self._capabilities = Capabilities(
            Interaction.FRAME_SYNCHRONOUS,
            input_rate=RATE,
            output_rate=RATE,
            frame=FRAME,
            voice=True,
            output_delay=0 if forked else FRAME,
            context_s=self._limit * FRAME_S,
        )

    @property
    def capabilities(self) -> Capabilities:
        """80 ms frames on the logical clock."""
        return self._capabilities

    def open(self, prompt: str, seed: int) -> Session:
        """Return a session in a fresh state, its prompt played."""
        text = wrapped(prompt)
        tokens = [int(token) for token in self._tokenizer.encode(text)] if text else []
        if self.package.kind == "fork":
            return ForkSession(self.engine, self._tokenizer, seed, self._voice, tokens, self._limit)
        return ReleasedSession(self.engine, self._tokenizer, seed, self._forcing, self._voice, tokens, self._limit)

    def close(self) -> None:
        """Free the device."""
        self.engine.close()

    def _with_released(self, folder: weights.Folder, setting: Setting, dtype: Any) -> tuple[Any, Any, Any]:
        models, loaders = self.package.models, self.package.loaders
        lm = loaded(self.name, folder.lm, lambda: language_model(folder, self.package, setting.device, dtype))
        mimi = loaded(
            self.name,
            folder.mimi,
            lambda: loaders.get_mimi(
                folder.mimi, weights.codec_settings(folder), device=setting.device, num_codebooks=int(lm.dep_q)
            ),
        )
        hooks = {"on_text_hook": self._forcing.on_text, "on_audio_hook": self._forcing.on_audio}
        return mimi, lm, functools.partial(models.LMGen, lm, **hooks)

    def _with_fork(self, folder: weights.Folder, setting: Setting, dtype: Any) -> tuple[Any, Any, Any]:
        models, loaders = self.package.models, self.package.loaders
        mimi = loaded(self.name, folder.mimi, lambda: loaders.get_mimi(folder.mimi, setting.device))
        lm = loaded(self.name, folder.lm, lambda: loaders.get_moshi_lm(folder.lm, device=setting.device, dtype=dtype))
        check_whole(lm, folder.lm)
        options = {"device": setting.device, "sample_rate": RATE, "frame_rate": RATE / FRAME}
        return mimi, lm, functools.partial(models.LMGen, lm, audio_silence_frame_cnt=SPACER, **options)
