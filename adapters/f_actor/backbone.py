"""The backbone of F-Actor, loaded from the released layout, and one dialogue on it, a frame at a time.

Conventions
-----------
* A Llama with an embedding table for each of eight audio streams, one linear head over all of them, and a projection of a
  speaker vector. Streams 0 to 3 are the model's own voice, 4 to 7 its partner's. Audio ids 0 to 4031 are codes, 4032 marks
  the delay, 4033 the end.
* A step is one frame: eight audio ids and one text id, embedded, added up, and passed through the Llama once. Its last
  hidden state gives the next frame. The first :data:`DELAY` steps hold delay ids, so step t carries audio frame t-2, and
  the text of step t belongs to audio frame t.
* The partner is forced: what the model thinks its partner will say is thrown away, and the partner's real codes stand in
  the frame that the next one is sampled after. Own frame f is therefore sampled after the partner's frames up to f-1.
* Sampling, own generator for each dialogue: temperature, then top-k (ties kept), then top-p, as the model's own code has it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapters.f_actor.codec import BOOKS, Codes
from adapters.kyutai.options import choose_dtype
from adapters.local import load_package, loaded
from dsbeval.errors import AgentError

AGENT = "f_actor"
STREAMS = 2 * BOOKS
DELAY = 2
SPEAKER = 192
MAX_PROMPT = 4096
PADS = ("[SILENCE_PAD]", "[UTTERANCE_PAD]", "[WORD_PAD]")
MARKS = ("[BC]", "[INTER]")
COUNTED = tuple(f"[INTERRUPT{n}]" for n in range(1, 21)) + tuple(f"[BC{n}]" for n in range(1, 41))

WEIGHTS = ("model.safetensors", "model.safetensors.index.json")


@dataclass(frozen=True, slots=True)
class Sampling:
    """How ids are drawn; a temperature of 0 takes the likeliest."""

    temperature: float
    top_k: int
    top_p: float


class Backbone:
    """The loaded model. It keeps nothing of a dialogue.

    Raises :class:`AgentError` when a weight is missing or of another shape: left alone it would be random.
    """

    def __init__(self, folder: Path, device: str, dtype: str) -> None:
        best = folder / "best_model"
        folder = best if best.is_dir() else folder
        self.torch = load_package(AGENT, "torch", "torch")
        transformers = load_package(AGENT, "transformers", "transformers")
        self.device = device
        self.dtype = choose_dtype(AGENT, dtype, self.device)
        self.tokenizer = loaded(
            AGENT, folder, lambda: transformers.AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        )
        self.llama = loaded(AGENT, folder, lambda: self._llama(folder, transformers.LlamaForCausalLM))
        self._heads(folder)
        self._text_ids(folder)

    def _llama(self, folder: Path, cls: Any) -> Any:
        llama, found = cls.from_pretrained(str(folder), local_files_only=True, output_loading_info=True)
        if missing := sorted(found["missing_keys"]):
            raise AgentError(f"agent {AGENT}: {folder} lacks the weight {missing[0]} ({len(missing)} are missing)")
        return llama.to(device=self.device, dtype=self.dtype).eval()

    def _heads(self, folder: Path) -> None:
        nn, hidden = self.torch.nn, self.llama.config.hidden_size
        weights = _read(folder, ("dsu_head.", "audio_embeds.", "speaker_embed_proj."))
        try:
            rows, width = weights["dsu_head.weight"].shape
            self.entries = rows // STREAMS - 2
            self.head = _filled(nn.Linear(width, rows), weights, "dsu_head")
            self.embeds = [
                _filled(nn.Embedding(self.entries + 2, hidden), weights, f"audio_embeds.{i}") for i in range(STREAMS)
            ]
            self.speaker = _filled(nn.Linear(SPEAKER, hidden), weights, "speaker_embed_proj")
        except KeyError as error:
            raise AgentError(
                f"agent {AGENT}: {folder} lacks the weight {error.args[0]}; it is not an F-Actor checkpoint with audio "
                "heads (transformers alone leaves them out when it saves a model)"
            ) from None
        except RuntimeError as error:
            raise AgentError(f"agent {AGENT}: {folder}: {' '.join(str(error).split())}") from None
        if width != hidden or rows % STREAMS:
            raise AgentError(f"agent {AGENT}: {folder}: dsu_head has shape ({rows}, {width}), hidden size is {hidden}")
        for module in (self.head, self.speaker, *self.embeds):
            module.to(device=self.device, dtype=self.dtype).eval()
        self.delay_id, self.end_id = self.entries, self.entries + 1

    def _text_ids(self, folder: Path) -> None:
        """Look the text stream's own tokens up by name: their ids are wherever training put them."""
        vocabulary = self.tokenizer.get_vocab()
        if missing := [name for name in (*PADS, *MARKS) if name not in vocabulary]:
            raise AgentError(f"agent {AGENT}: {folder}: the tokenizer has no {missing[0]}; it is not F-Actor's")
        size = self.llama.get_input_embeddings().num_embeddings
        if (largest := max(vocabulary.values())) >= size:
            raise AgentError(
                f"agent {AGENT}: {folder}: the tokenizer has id {largest}, and the model embeds {size}; they do not "
                "belong together"
            )
        names = [*PADS, *MARKS, *(name for name in COUNTED if name in vocabulary), *self.tokenizer.all_special_tokens]
        self.marks = {name: int(vocabulary[name]) for name in names if name in vocabulary}
        """The text stream's own tokens, and the tokenizer's: none of them is a word."""

    def prompt_ids(self, text: str) -> list[int]:
        """Return the ids of a prompt. Raises :class:`AgentError` when it is too long: its end is what starts the model."""
        ids: list[int] = self.tokenizer(text).input_ids
        if len(ids) > MAX_PROMPT:
            raise AgentError(
                f"agent {AGENT}: the prompt has {len(ids)} tokens; the model takes {MAX_PROMPT}: shorten the system prompt"
            )
        return ids


def _read(folder: Path, prefixes: tuple[str, ...]) -> dict[str, Any]:
    """Return the tensors whose names begin so, from one file or from the shards that the index names."""
    safetensors = load_package(AGENT, "safetensors", "safetensors")
    index = folder / WEIGHTS[1]
    shards = {folder / WEIGHTS[0]}
    if index.is_file():
        places = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        shards = {folder / shard for name, shard in places.items() if name.startswith(prefixes)}
    out: dict[str, Any] = {}
    for shard in sorted(shards):
        with safetensors.safe_open(str(shard), framework="pt") as file:
            out |= {key: file.get_tensor(key) for key in file.keys() if key.startswith(prefixes)}  # noqa: SIM118
    return out


def _filled(module: Any, weights: dict[str, Any], name: str) -> Any:
    module.load_state_dict({key: weights[f"{name}.{key}"] for key in module.state_dict()})
    return module


class Dialogue:
    """One dialogue: its cache, its generator, and the last hidden state.

    Parameters
    ----------
    backbone : Backbone
    prompt : list of int
    speaker : array, shape (192,)
    sampling : Sampling
    seed : int
    closed : sequence of int
        Audio ids that the model may not say of itself.
    """

    def __init__(
        self,
        backbone: Backbone,
        prompt: list[int],
        speaker: NDArray[np.float32],
        sampling: Sampling,
        seed: int,
        closed: Sequence[int] = (),
    ) -> None:
        self._model, self._sampling, self._closed = backbone, sampling, list(closed)
        torch = self._torch = backbone.torch
        self._cache = load_package(AGENT, "transformers", "transformers").DynamicCache()
        self._random = torch.Generator(backbone.device).manual_seed(seed)
        self.steps = 0
        with torch.inference_mode():
            vector = torch.from_numpy(speaker).to(backbone.device, backbone.dtype)
            ids = torch.tensor(prompt, device=backbone.device)
            text = backbone.llama.get_input_embeddings()(ids)
            self._last = self._forward(torch.cat([backbone.speaker(vector)[None], text]))
        self.delayed = [self._delay() for _ in range(DELAY)]
        """The text ids of the steps before the first audio frame."""

    def _delay(self) -> int:
        text = self._draw_text()
        self._go_on([self._model.delay_id] * STREAMS, text)
        return text

    def sample(self) -> tuple[Codes, int, bool]:
        """Return the model's own next frame, shape ``(4,)``, the text id of its step, and whether it ends the dialogue."""
        with self._torch.inference_mode():
            logits = self._model.head(self._last).view(STREAMS, -1)[:BOOKS]
            logits[:, self._closed] = -self._torch.inf
        own: Codes = np.asarray(self._draw(logits), np.int64)
        return own, self._draw_text(), bool((own == self._model.end_id).any())

    def hear(self, own: Codes, text: int, partner: Codes) -> None:
        """Go on by a frame in which both have spoken."""
        self._go_on([*own.tolist(), *partner.tolist()], text)

    def _draw_text(self) -> int:
        with self._torch.inference_mode():
            logits = self._model.llama.lm_head(self._last)[None]
        return self._draw(logits)[0]

    def _go_on(self, audio: list[int], text: int) -> None:
        torch, model = self._torch, self._model
        with torch.inference_mode():
            ids = torch.tensor([*audio, text], device=model.device)
            row = sum(embed(ids[i]) for i, embed in enumerate(model.embeds))
            self._last = self._forward((row + model.llama.get_input_embeddings()(ids[-1]))[None])
        self.steps += 1

    def _forward(self, rows: Any) -> Any:
        out = self._model.llama.model(inputs_embeds=rows[None], past_key_values=self._cache, use_cache=True)
        return out.last_hidden_state[0, -1]

    def _draw(self, logits: Any) -> list[int]:
        """Draw one id from each row of logits, shape (rows, ids)."""
        torch = self._torch
        with torch.inference_mode():
            logits = logits.float()
            if bool(torch.isnan(logits).any()):
                raise AgentError(
                    f"agent {AGENT}: the model's logits are NaN at step {self.steps}; check weights and dtype"
                )
            if self._sampling.temperature == 0:
                return [int(i) for i in logits.argmax(-1)]
            drawn = torch.multinomial(probabilities(torch, logits, self._sampling), 1, generator=self._random)
            return [int(i) for i in drawn[:, 0]]


def probabilities(torch: Any, logits: Any, sampling: Sampling) -> Any:
    """Return what is drawn from: tempered, the top k (and ties), of these the top p, made to sum to one."""
    odds = torch.softmax(logits / sampling.temperature, -1)
    if 0 < sampling.top_k < odds.shape[-1]:
        least = torch.topk(odds, sampling.top_k, dim=-1).values[..., -1:]
        odds = torch.where(odds < least, 0.0, odds)
    if sampling.top_p < 1.0:
        ordered, places = torch.sort(odds, descending=True, dim=-1)
        # An id is dropped when those before it already make up top_p, so at least one is left.
        before = torch.cumsum(ordered, -1) - ordered
        odds = torch.zeros_like(odds).scatter(-1, places, torch.where(before > sampling.top_p, 0.0, ordered))
    return odds / odds.sum(-1, keepdim=True)
