"""Constants by the names of the model's own; the sentence is another."""

DEFAULT_S2M_PROMPT = "STAND-IN SENTENCE THAT MAKES IT SPEAK."
AUDIO_TEMPLATE = "<|audio_bos|><|AUDIO|><|audio_eos|>"
DEFAULT_SP_GEN_KWARGS = {
    "text_greedy": False,
    "only_crq_sampling": True,
    "disable_speech": False,
    "force_text_abos": True,
}
DEFAULT_S2M_GEN_KWARGS = {"do_sample": True, "temperature": 0.8, "max_new_tokens": 512}
