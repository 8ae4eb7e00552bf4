"""A stand-in with the call names and signatures of MiniCPM-o 4.5. It speaks noise, and refuses a call out of order.

What each call was given is kept in ``calls``. ``fault`` names one thing that goes wrong.
"""

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from .configuration_minicpmo import StandInConfig

WORDS = ("Well", ", that", " is one way.<|tts_eos|>")


def noise(samples: int) -> Any:
    return 0.1 * torch.randn(1, samples)


class StandIn(PreTrainedModel):  # type: ignore[misc]
    """The model."""

    config_class = StandInConfig
    _supports_sdpa = True

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.weight = torch.nn.Linear(2, 2)
        self.calls: list[tuple[Any, ...]] = []
        self.fault = ""
        self.ready: list[str] = []
        self.session: str | None = None
        self.pieces = 0
        self.encoded = 0  # what the audio encoder keeps; only reset_session forgets it
        self.post_init()

    # Turn-based

    def init_tts(self, model_dir: str | None = None, enable_float16: bool = False, n_timesteps: int = 10) -> None:
        assert self.config.init_audio
        assert self.config.init_tts
        assert not self.config.init_vision
        self.calls.append(("init_tts", model_dir))
        self.ready = ["tts"]

    def reset_session(self, reset_token2wav_cache: bool = True) -> None:
        assert self.ready[:1] == ["tts"], "init_tts comes first"
        self.calls.append(("reset_session", reset_token2wav_cache))
        self.ready, self.session, self.pieces, self.encoded = ["tts", "reset"], None, 0, 0

    def init_token2wav_cache(self, prompt_speech_16k: Any) -> None:
        assert self.ready == ["tts", "reset"], "reset_session comes first"
        assert prompt_speech_16k.dtype == np.float32
        self.calls.append(("init_token2wav_cache", prompt_speech_16k.size))
        self.ready.append("voice")

    @staticmethod
    def get_sys_prompt(
        ref_audio: Any = None, mode: str = "default", language: str = "en", ref_audio_max_ms: int | None = None
    ) -> dict[str, Any]:
        assert (mode, language) == ("audio_assistant", "en")
        return {"role": "system", "content": ["Speak like this.", ref_audio, "Assist."]}

    def streaming_prefill(
        self,
        session_id: str,
        msgs: list[dict[str, Any]],
        omni_mode: bool = True,
        max_slice_nums: int | None = None,
        use_tts_template: bool = True,
        enable_thinking: bool = False,
        is_last_chunk: bool = False,
        **kwargs: Any,
    ) -> str:
        assert "voice" in self.ready, "init_token2wav_cache comes first"
        assert len(msgs) == 1
        assert not kwargs
        shown = [part if isinstance(part, str) else part.size for part in msgs[0]["content"]]
        self.calls.append(("prefill", msgs[0]["role"], shown, omni_mode, is_last_chunk))
        if self.session is None:
            assert msgs[0]["role"] == "system", "the system message comes first"
            self.session = session_id
        else:
            assert session_id == self.session, "another session"
            assert [part.size for part in msgs[0]["content"]] == [16_000], "a piece is a second"
            self.pieces += 1
        return ""

    def streaming_generate(
        self,
        session_id: str,
        bos_input: str | None = None,
        generate_audio: bool = True,
        audio_token_chunk_size: int = 25,
        tts_sampling_params: Any = None,
        max_new_tokens: int = 256,
        enable_thinking: bool = False,
        use_tts_template: bool = True,
        do_sample: bool = True,
        enable_speculative_snapshot: bool = False,
        **kwargs: Any,
    ) -> Iterator[tuple[Any, str]]:
        assert session_id == self.session
        assert self.calls[-1][0] == "prefill"
        assert self.calls[-1][-1] is True, "the last piece is marked"
        self.calls.append(
            ("generate", generate_audio, use_tts_template, enable_thinking, do_sample, max_new_tokens, kwargs)
        )
        for k, words in enumerate(WORDS):
            if self.fault == "raises" and k == 1:
                raise RuntimeError("CUDA out of memory")
            audio = noise(24_000 if k < 2 else 6_000 + 240 * self.pieces)
            audio = audio * float("nan") if self.fault == "nan" else audio
            yield audio[:, : 0 if self.fault == "mute" else None], "" if self.fault == "wordless" else words

    # Duplex

    def as_duplex(self, device: str | None = None, **kwargs: Any) -> Any:
        self.calls.append(("as_duplex", device, kwargs))
        self.ready = ["tts"]
        return DuplexStandIn(self)


class DuplexStandIn:
    """Listens while it hears something; a second of silence after that, it speaks for three seconds."""

    def __init__(self, model: StandIn) -> None:
        self.model, self.calls = model, model.calls
        self.fault = ""
        self.threads: set[str] = set()
        self.prepared = self.pending = False
        self.heard = 0.0
        self.said = -1

    def prepare(
        self, prefix_system_prompt: str | None = None, ref_audio: Any = None, prompt_wav_path: str | None = None
    ) -> None:
        assert ref_audio.dtype == np.float32
        self.calls.append(("prepare", prefix_system_prompt, ref_audio.size, prompt_wav_path))
        self.prepared, self.pending, self.said, self.heard = True, False, -1, 0.0
        self.opens = "You begin" in (prefix_system_prompt or "")

    def streaming_prefill(
        self, audio_waveform: Any = None, frame_list: Any = None, max_slice_nums: int = 1
    ) -> dict[str, Any]:
        assert self.prepared, "prepare comes first"
        assert not self.pending, "prefill and generate alternate"
        assert frame_list is None
        self.calls.append(("prefill", audio_waveform.size, str(audio_waveform.dtype), max_slice_nums))
        self.threads.add(threading.current_thread().name)
        if self.fault == "short":
            return {"success": False, "reason": "audio not enough"}
        before, self.heard = self.heard, float(np.abs(audio_waveform).max())
        if self.said < 0 and self.heard < 0.01 and (before >= 0.01 or self.opens):
            self.said, self.opens = 0, False
        self.pending = True
        self.model.encoded += 1
        return {"success": True, "reason": ""}

    def streaming_generate(
        self,
        prompt_wav_path: str | None = None,
        max_new_speak_tokens_per_chunk: int = 20,
        decode_mode: str = "sampling",
        temperature: float = 0.7,
        top_k: int = 20,
        top_p: float = 0.8,
        listen_prob_scale: float = 1.0,
        listen_top_k: int | None = None,
        text_repetition_penalty: float = 1.05,
        text_repetition_window_size: int = 512,
    ) -> dict[str, Any]:
        assert self.pending, "prefill comes first"
        self.pending = False
        sampling = (decode_mode, temperature, top_k, top_p, listen_prob_scale, max_new_speak_tokens_per_chunk)
        self.calls.append(("generate", prompt_wav_path, *sampling))
        if self.fault == "raises" and self.said == 1:
            raise RuntimeError("CUDA out of memory")
        listens = self.said < 0 or (self.fault == "interrupted" and self.said == 1)
        if listens:
            self.said = -1
            return {"is_listen": True, "text": "", "audio_waveform": np.zeros(24_000, np.float32), "end_of_turn": False}
        self.said += 1
        last = self.said == len(WORDS)
        seconds = 3 if self.fault == "interrupted" else 1
        audio: Any = (noise(24_000 * seconds)[0] * (1 + self.model.encoded / 100)).numpy()
        if self.fault == "nan":
            audio[7] = np.nan
        if self.fault == "mute" or (self.fault == "late" and self.said == 1):
            audio = None
        text = "" if self.fault == "wordless" else WORDS[self.said - 1]
        self.said = -1 if last else self.said
        return {"is_listen": False, "text": text, "audio_waveform": audio, "end_of_turn": last}
