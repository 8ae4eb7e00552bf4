"""Timings of an episode, one row an interaction, in one table.

Source: DSB-IFEval, "Running an episode". What the paper leaves open is chosen here and marked so:

* *frame_synchronous*: 3.0 s of padding between turns and 5.0 s at the end. A barge-in waits up to 12 s for the agent
  to speak (ours: longer than the longest silence that a role is told to keep).
* *turn_based*: one answer after the full input and 1.0 s of tail. The gap between the turns is ours, 1.5 s (the
  published sustained silence that ends a turn); such an agent cannot speak before its input ends, so a barge-in waits
  only 3.0 s.
* *server_vad*: up to 5.0 s for turn 1's response, 0.6 s of settled silence, 0.5 s tail after turn 2, up to 8.0 s for
  its response, 1.5 s of trailing silence. A response is followed for at most 30 s (ours).
* *chunked* is not in the paper; it is run like frame_synchronous.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from dsbeval.agent import Interaction


@dataclass(frozen=True, slots=True)
class Protocol:
    """Timings in seconds.

    Parameters
    ----------
    between_s : float or None
        Fixed padding between the turns; None: wait for the agent's reply to come and end.
    reply_wait_s, settle_s, reply_limit_s : float
        How long a reply may take to begin, the silence that ends it, the longest that is waited for.
    onset_timeout_s : float
        How long a barge-in waits for speech to come in on. It is delivered all the same, and the case is marked.
    tail_s : float
        Padding after turn 2.
    final_wait_s : float
        After the tail, how long a reply to turn 2 may take to begin; 0: the session ends with the tail.
    trailing_s : float
        Silence recorded after the last reply.
    """

    between_s: float | None
    onset_timeout_s: float
    tail_s: float
    reply_wait_s: float = 5.0
    settle_s: float = 1.5
    reply_limit_s: float = 30.0
    final_wait_s: float = 0.0
    trailing_s: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return the row as plain data, for recordings and fingerprints."""
        return asdict(self)


PROTOCOLS: dict[Interaction, Protocol] = {
    Interaction.FRAME_SYNCHRONOUS: Protocol(between_s=3.0, onset_timeout_s=12.0, tail_s=5.0),
    Interaction.CHUNKED: Protocol(between_s=3.0, onset_timeout_s=12.0, tail_s=5.0),
    Interaction.TURN_BASED: Protocol(between_s=1.5, onset_timeout_s=3.0, tail_s=0.0, trailing_s=1.0),
    Interaction.SERVER_VAD: Protocol(
        between_s=None, onset_timeout_s=5.0, tail_s=0.5, settle_s=0.6, final_wait_s=8.0, trailing_s=1.5
    ),
}
