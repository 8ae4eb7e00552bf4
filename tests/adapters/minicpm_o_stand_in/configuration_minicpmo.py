"""The configuration of the stand-in."""

from typing import Any

from transformers import PretrainedConfig


class StandInConfig(PretrainedConfig):  # type: ignore[misc]
    """Has the three switches of MiniCPM-o's."""

    model_type = "minicpmo"

    def __init__(self, init_vision: bool = True, init_audio: bool = True, init_tts: bool = True, **kwargs: Any) -> None:
        self.init_vision, self.init_audio, self.init_tts = init_vision, init_audio, init_tts
        super().__init__(**kwargs)
