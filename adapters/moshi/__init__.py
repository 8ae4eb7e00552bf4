"""``moshi``: Kyutai's Moshi on the released package. It takes no prompt: in a table it is the persona-blind control.

Conventions
-----------
* Frames, alignment and the first frame are those of :mod:`adapters.kyutai`: an emission is heard one frame after the frame
  that it answers began, and nothing of what the user says is lost.
* Sampling is as published (audio 0.8 of the 250 likeliest, text 0.7 of the 25 likeliest), unless config.json or an option says
  otherwise.
* Equal seeds and frames give equal tokens and equal audio, on the same kind of device.
* It looks back on as many frames as its attention cache holds: 3000, 240 s, in the released models. A longer session
  goes on, and its row says so.
"""

from __future__ import annotations

from typing import Any

from adapters.kyutai import weights
from adapters.kyutai.engine import FRAME, FRAME_S, RATE, Engine, Setting
from adapters.kyutai.options import Sampling, choose_device, choose_dtype
from adapters.kyutai.package import find_package
from adapters.kyutai.session import KyutaiSession
from adapters.local import loaded
from dsbeval.agent import Agent, Capabilities, Interaction, Session
from dsbeval.checkpoints import resolve
from dsbeval.errors import AgentError

PUBLISHED = Sampling(temperature=0.8, text_temperature=0.7, top_k=250, text_top_k=25)
_GENERATION = {"temp": "temperature", "temp_text": "text_temperature", "top_k": "top_k", "top_k_text": "text_top_k"}


class Moshi(Agent):
    """The agent.

    Parameters
    ----------
    checkpoint : str
        A folder in the released format, or a hub id: ``kyutai/moshiko-pytorch-bf16``, ``kyutai/moshika-pytorch-bf16``.
    device : str
        ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
    dtype : str
        ``auto`` (bfloat16 on a GPU, float32 on a CPU), ``bfloat16``, ``float16`` or ``float32``.
    temperature, text_temperature, top_k, text_top_k : number or None
        Sampling of the audio and the text tokens; a temperature of 0 takes the likeliest.
    cuda_graphs, compile_kernels : bool
        Whether a GPU may be driven by captured graphs, and whether the package may compile its small kernels there.
    """

    name = "moshi"
    checkpoint_files = weights.FILES

    def __init__(
        self,
        checkpoint: str | None = None,
        device: str = "auto",
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
                "agent moshi: no checkpoint; give --checkpoint kyutai/moshiko-pytorch-bf16 (or moshika), or a folder with "
                "such files"
            )
        given = {
            "temperature": temperature, "text_temperature": text_temperature, "top_k": top_k, "text_top_k": text_top_k
        }  # fmt: skip
        PUBLISHED.given(self.name, **given)
        package = find_package(self.name)
        setting = Setting(choose_device(self.name, device), bool(cuda_graphs), bool(compile_kernels))
        folder = weights.find_files(self.name, resolve(str(checkpoint), self.checkpoint_files), package)
        info = _info(folder, package.loaders)
        self._tokenizer = weights.load_tokenizer(folder)
        mimi = loaded(self.name, folder.mimi, lambda: info.get_mimi(setting.device))
        lm = loaded(
            self.name, folder.lm, lambda: info.get_moshi(setting.device, choose_dtype(self.name, dtype, setting.device))
        )
        weights.check_models(folder, lm, mimi, self._tokenizer)
        self.sampling = _own_sampling(folder, info).given(self.name, **given)
        lm_gen = package.models.LMGen(lm, **self.sampling.for_generator())
        self.engine = Engine(self.name, package, lm_gen, mimi, setting)
        self._capabilities = Capabilities(
            Interaction.FRAME_SYNCHRONOUS,
            input_rate=RATE,
            output_rate=RATE,
            frame=FRAME,
            prompt=False,
            output_delay=FRAME,
            context_s=lm.context * FRAME_S,
        )

    @property
    def capabilities(self) -> Capabilities:
        """80 ms frames on the logical clock; no prompt."""
        return self._capabilities

    def open(self, prompt: str, seed: int) -> Session:  # noqa: ARG002  it has no place for a prompt, and declares so
        """Return a session in a fresh state."""
        return MoshiSession(self.engine, self._tokenizer, seed)

    def close(self) -> None:
        """Free the device."""
        self.engine.close()


class MoshiSession(KyutaiSession):
    """One conversation."""

    _begun = False

    def advance(self, codes: Any) -> Any | None:
        """Take the codes of a frame; those of the first one twice, since the first call reads start tokens instead."""
        if not self._begun:
            self._begun = True
            if self.engine.step(codes) is not None:
                raise AgentError("agent moshi: the model answered before it had heard; its delays are not as declared")
        return self.engine.step(codes)


def _info(folder: weights.Folder, loaders: Any) -> Any:
    """Return the package's own description of the checkpoint, made of files that are all here."""
    if folder.config is None:
        return loaders.CheckpointInfo(folder.lm, folder.mimi, folder.tokenizer)
    kind = folder.config.get("model_type", "moshi")
    if kind != "moshi":
        raise AgentError(f"{folder.config_file}: model_type is {kind!r}; agent moshi plays 'moshi' alone")
    if folder.config.get("conditioners") or folder.config.get("fuser"):
        raise AgentError(f"{folder.config_file}: the model wants conditions, which agent moshi has none to give")
    return loaded(
        folder.agent,
        folder.config_file or folder.lm,
        lambda: loaders.CheckpointInfo.from_hf_repo(
            "", folder.lm, folder.mimi, folder.tokenizer, folder.config_file, folder.mimi_config, folder.lora
        ),
    )


def _own_sampling(folder: weights.Folder, info: Any) -> Sampling:
    """Return the published sampling with what config.json says of it."""
    own = {_GENERATION[key]: value for key, value in info.lm_gen_config.items() if key in _GENERATION}
    other = sorted(set(info.lm_gen_config) - set(_GENERATION))
    if other:
        raise AgentError(f"{folder.config_file}: lm_gen_config: agent moshi does not know {', '.join(other)}")
    return PUBLISHED.given("moshi", **own)
