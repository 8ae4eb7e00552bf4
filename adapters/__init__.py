"""One module an agent. A name is bound to its class here, so that looking a name up imports nothing."""

AGENTS: dict[str, str] = {
    "cascade": "adapters.cascade:Cascade",
    "gpt_realtime": "adapters.gpt_realtime:GptRealtime",
    "gpt_live": "adapters.gpt_live:GptLive",
    "f_actor": "adapters.f_actor:FActor",
    "moshi": "adapters.moshi:Moshi",
    "minicpm_o": "adapters.minicpm_o:MiniCPMo",
    "fun_audio_chat": "adapters.fun_audio_chat:FunAudioChat",
    "personaplex": "adapters.personaplex:PersonaPlex",
    "oracle": "adapters.controls:Oracle",
    "contrarian": "adapters.controls:Contrarian",
    "silent": "adapters.controls:Silent",
    "turn_based": "adapters.controls:TurnBased",
    "babbler": "adapters.controls:Babbler",
    "echo": "adapters.controls:Echo",
    "achiever": "adapters.dyadic_controls:Achiever",
    "forfeiter": "adapters.dyadic_controls:Forfeiter",
    "recorded": "adapters.recorded:Recorded",
    "lychee_fd": "adapters.lychee_fd:LycheeFD",
    "raon": "adapters.raon:Raon",
    "websocket": "adapters.websocket:WebSocketAgent",
}
