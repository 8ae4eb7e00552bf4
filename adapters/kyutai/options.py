"""The options that the agents share: device, number format, sampling."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from adapters.local import check_number
from dsbeval.errors import AgentError

DTYPES = ("bfloat16", "float16", "float32")


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn. A temperature of 0 takes the likeliest."""

    temperature: float
    text_temperature: float
    top_k: int
    text_top_k: int

    def given(self, agent: str, **options: float | None) -> Sampling:
        """Return it with the options that are given. Raises :class:`AgentError` for a value that cannot be."""
        values: dict[str, Any] = {**asdict(self), **{k: v for k, v in options.items() if v is not None}}
        for name, value in values.items():
            whole = name.endswith("top_k")
            check_number(agent, name, value, least=int(whole), whole=whole)
        return Sampling(**values)

    def for_generator(self) -> dict[str, Any]:
        """Return it under the names of ``LMGen``."""
        return {
            "use_sampling": True,
            "temp": self.temperature,
            "temp_text": self.text_temperature,
            "top_k": self.top_k,
            "top_k_text": self.text_top_k,
        }


def choose_device(agent: str, device: str) -> str:
    """Return the device that is asked for: ``auto`` is the first GPU there is, else the CPU."""
    import torch

    name = str(device)
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        kind = torch.device(name).type
    except RuntimeError:
        kind = ""
    if kind not in ("cpu", "cuda"):
        raise AgentError(f"agent {agent}: --model-arg device={name}: give auto, cpu, cuda or cuda:N")
    if kind == "cuda" and not torch.cuda.is_available():
        raise AgentError(f"agent {agent}: --model-arg device={name}: torch sees no GPU here; give cpu or auto")
    if kind == "cuda" and (torch.device(name).index or 0) >= torch.cuda.device_count():
        raise AgentError(f"agent {agent}: --model-arg device={name}: torch sees {torch.cuda.device_count()} GPUs here")
    return name


def choose_dtype(agent: str, dtype: str, device: str) -> Any:
    """Return the number format: ``auto`` is bfloat16 on a GPU, as published, and float32 on a CPU."""
    import torch

    if dtype == "auto":
        return torch.bfloat16 if device.startswith("cuda") else torch.float32
    if dtype not in DTYPES:
        raise AgentError(f"agent {agent}: --model-arg dtype={dtype}: give auto or one of {', '.join(DTYPES)}")
    return getattr(torch, dtype)
