"""A recording in the layout of the official release, made into one that this suite can score.

What is there: ``{id}.stereo.wav`` (user, agent), ``{id}.rec.json`` with at least ``turn2_onset_s`` and ``transcript``,
and, where the release's own lists lie beside the recordings or one folder above, ``scripts.jsonl`` and
``manifest.jsonl``.

Where turn 2 and its window lie is found in this order, and never guessed:

1. the user's channel holds the pack's own turn 2 at ``turn2_onset_s``: the pack's segments, to the sample;
2. ``scripts.jsonl`` has the conversation: segments by its durations from ``turn2_onset_s`` on, checked against the
   user's channel (its silences are silent there, its speech is not), the window by the probe's rule;
3. otherwise the case is refused by name.

Fields that are not understood are kept under ``release`` in rec.json.

Source: DSB-IFEval (arXiv 2609.03423), recorded grid; what is not published is read leniently.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dsbeval.audio import RATE, Signal, read_resampled
from dsbeval.errors import RunError
from dsbeval.ifeval.episode import case_facts, placed_segments, window_facts
from dsbeval.ifeval.pack import Case, Pack
from dsbeval.ifeval.schema import Slot
from dsbeval.ifeval.windows import scored_window
from dsbeval.recording import Recording, TimedText, audio_path
from dsbeval.replay.user import LIKE, locate, unlike
from dsbeval.spans import Span, to_samples
from dsbeval.speech.assemble import PlacedSegment, UserTurn, user_turns

SCRIPTS, MANIFEST = "scripts.jsonl", "manifest.jsonl"
LISTS = (SCRIPTS, MANIFEST)
QUIET = 1e-3
"""Power in a silence of the user's channel, over that of its speech, above which it is none (-30 dB)."""
_UNDERSTOOD = frozenset(
    {"test_case_id", "conversation_id", "turn1_onset_s", "turn2_onset_s", "transcript", "tokens", "words", "prompt",
     "agent", "model", "seed", "barge_in_forced", "sample_rate", "audio"}
)  # fmt: skip


class Release:
    """The recordings of a folder, with the lists of the release where they are found."""

    def __init__(self, folder: Path, places: Sequence[Path]) -> None:
        self._folder = folder
        self._places = places

    def _found(self, name: str) -> Path | None:
        return next((place / name for place in self._places if (place / name).is_file()), None)

    @property
    def files(self) -> list[Path]:
        """The lists that were found."""
        return [path for name in LISTS if (path := self._found(name)) is not None]

    @functools.cached_property
    def _scripts(self) -> dict[str, dict[str, Any]]:
        return _by_key(self._found(SCRIPTS), "conversation_id")

    @functools.cached_property
    def _manifest(self) -> dict[str, dict[str, Any]]:
        return _by_key(self._found(MANIFEST), "test_case_id")

    def recording(self, pack: Pack, case: Case, data: Mapping[str, Any]) -> Recording:
        """Return the recording of a case; ``data`` is its rec.json.

        Raises :class:`RunError` or :class:`~dsbeval.errors.AudioError` for one that cannot be scored as this case.
        """
        listed = self._manifest.get(case.id, {})
        if listed.get("expected_action", case.action.value) != case.action.value:
            wanted = listed["expected_action"]
            raise RunError(f"{case.id}: {MANIFEST} expects {wanted}, this pack {case.action.value}; they are two cases")
        stereo, rate = read_resampled(self._audio(case.id), channels=2)
        user, model = (np.ascontiguousarray(stereo[:, k]) for k in (0, 1))
        onset1, onset2 = _onset(case.id, data, "turn1_onset_s", 0.0), _onset(case.id, data, "turn2_onset_s")
        placed = self._turns(pack, case, user, onset1, onset2, listed)
        rule = pack.probes[case.probe].at(case.level)
        window = scored_window(rule, placed.turn2, placed.onset2)
        text, timed = _text(data, window.start)
        prompt = data.get("prompt")
        meta = {
            **case_facts(pack, case),
            "readback_target": placed.target,
            "prompt": pack.prompt(case) if prompt is None else str(prompt),
            **({"prompt_assumed": True} if prompt is None else {}),
            "prompt_taken": None,
            "agent": str(data.get("agent") or data.get("model") or "recorded"),
            "capabilities": {"text": text is not None},
            "protocol": {},
            "seed": data.get("seed"),
            "acoustics": None,
            "turn1_onset_s": round(placed.onset1 / RATE, 3),
            "turn2_onset_s": round(placed.onset2 / RATE, 3),
            "barge_in": pack.probes[case.probe].barge_in_after_s is not None,
            "barge_in_forced": bool(data.get("barge_in_forced", False)),
            "window": window_facts(window),
            "user": placed_segments(placed.turn1, placed.onset1, 1) + placed_segments(placed.turn2, placed.onset2, 2),
            "user_audio": placed.source,
            **({"text_times": False} if text and not timed else {}),
            **({"resampled_from": rate} if rate != RATE else {}),
            "release": {key: value for key, value in data.items() if key not in _UNDERSTOOD},
        }
        return Recording(user, model, text or (), (), meta)

    def _audio(self, name: str) -> Path:
        wav = audio_path(self._folder, name)
        flac = audio_path(self._folder, name, "flac")
        return flac if flac.exists() and not wav.exists() else wav

    def _turns(
        self, pack: Pack, case: Case, user: Signal, onset1: int, onset2: int, listed: Mapping[str, Any]
    ) -> _Placed:
        turn1, turn2 = user_turns(pack, case.audio_key)
        found, least = locate(user, turn2, onset2)
        if least >= LIKE:
            return _Placed(turn1, locate(user, turn1, onset1)[0], turn2, found, pack.readback_target(case), "pack")
        entry = next((self._scripts[k] for k in (case.id, case.conversation_id) if k in self._scripts), None)
        if entry is None:
            error = unlike(case.id, f"turn 2 is like it by {max(least, 0.0):.2f} of 1 at {onset2 / RATE:.3f} s")
            raise RunError(f"{error}, or put the release's {SCRIPTS} beside the recordings")
        probe = pack.probes[case.probe]
        turn2 = _scripted(case.id, entry["segments"], probe.at(case.level).turn2)
        _check_silences(case.id, user, turn2, onset2)
        target = ""
        if probe.readback == "target":
            given = entry.get("readback_target") or listed.get("verifier", {}).get("params", {}).get("readback_target")
            if not given:
                raise RunError(f"{case.id}: {SCRIPTS} has no readback_target; give the words that are to be read back")
            target = str(given)
        elif probe.readback is not None:
            target = " ".join(turn2.segments[k - 1].text for k in probe.readback)
        said = PlacedSegment("speech", "turn1", Span(0, max(0, onset2 - onset1)), str(entry.get("turn1", "")), ())
        return _Placed(UserTurn(user[onset1:onset2], (said,)), onset1, turn2, onset2, target, SCRIPTS)


@dataclass(frozen=True, eq=False, slots=True)
class _Placed:
    """The two turns of a user, where they lie in the session, what is to be read back, and who says all that."""

    turn1: UserTurn
    onset1: int
    turn2: UserTurn
    onset2: int
    target: str
    source: str


def _by_key(path: Path | None, key: str) -> dict[str, dict[str, Any]]:
    out: dict[str, dict[str, Any]] = {}
    if path is None:
        return out
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            out[str(entry[key])] = entry
        except (ValueError, KeyError, TypeError) as error:
            raise RunError(f"{path}: line {number}: is not an object with a {key} ({error}); mend the list") from None
    return out


def _onset(case: str, data: Mapping[str, Any], field: str, default: float | None = None) -> int:
    value = data.get(field, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        raise RunError(f"{case}.rec.json: {field}: is {value!r}; seconds from the start of the recording are needed")
    return round(value * RATE)


def _scripted(case: str, segments: Sequence[Mapping[str, Any]], slots: Sequence[Slot]) -> UserTurn:
    """Return turn 2 as a script has it. Raises :class:`RunError` where it is not built as the probe is."""
    if len(segments) != len(slots):
        raise RunError(f"{case}: {SCRIPTS} has {len(segments)} segments in turn 2; the probe has {len(slots)}")
    placed: list[PlacedSegment] = []
    for index, (segment, slot) in enumerate(zip(segments, slots, strict=True), start=1):
        kind, seconds = segment["type"], float(segment["duration_s"])
        fits = kind == "speech" if slot.silence is None else kind == "silence" and abs(seconds - slot.silence) < 0.002
        if not fits:
            wanted = f"speech ({slot.part})" if slot.silence is None else f"a silence of {slot.silence:g} s"
            raise RunError(
                f"{case}: {SCRIPTS}: segment {index} is {kind} of {seconds:g} s; the probe has {wanted} there"
            )
        start = placed[-1].span.end if placed else 0
        span = Span(start, start + to_samples(seconds, RATE))
        placed.append(PlacedSegment(kind, slot.part, span, str(segment.get("text") or ""), ()))
    return UserTurn(np.zeros(placed[-1].span.end, np.float32), tuple(placed))


def _check_silences(case: str, user: Signal, turn: UserTurn, onset: int) -> None:
    """Raise :class:`RunError` where the user's channel is not silent where the script says so, or nowhere speaks."""

    def power(kind: str, inset: int) -> list[float]:
        spans = [segment.span for segment in turn.segments if segment.kind == kind]
        parts = [user[onset + span.start + inset : onset + span.end - inset] for span in spans]
        return [float(np.mean(part**2)) if part.size else 0.0 for part in parts]

    spoken = power("speech", 0)
    if min(spoken) <= 0 or max(power("silence", to_samples(0.05, RATE)), default=0.0) > QUIET * max(spoken):
        raise RunError(
            f"{case}: the user's channel does not have the speech and the silences of {SCRIPTS} from "
            f"{onset / RATE:.3f} s on; these are not the recordings of that list"
        )


def _text(data: Mapping[str, Any], window: int) -> tuple[tuple[TimedText, ...] | None, bool]:
    """Return what the agent said, and whether its times are known; None where the recording says nothing of words.

    A transcript without times counts wholly as said from the window on, as published.
    """
    transcript = data.get("transcript")
    pieces = next((data[key] for key in ("tokens", "words") if isinstance(data.get(key), list)), transcript)
    if isinstance(pieces, list) and (timed := _timed(pieces)) is not None:
        return timed, True
    if transcript is None:
        return None, False
    said = transcript if isinstance(transcript, str) else " ".join(_words(transcript))
    return ((TimedText(window, said),) if said.strip() else ()), False


def _timed(pieces: Iterable[Any]) -> tuple[TimedText, ...] | None:
    out: list[TimedText] = []
    for piece in pieces:
        at = (
            next((piece[key] for key in ("t", "start", "start_s") if key in piece), None)
            if isinstance(piece, dict)
            else None
        )
        if not isinstance(at, (int, float)):
            return None
        word = piece.get("text")
        out.append(TimedText(round(at * RATE), f" {piece['word']}" if word is None else str(word)))
    return tuple(sorted(out, key=lambda token: token.sample))


def _words(transcript: Any) -> list[str]:
    if not isinstance(transcript, list):
        return [str(transcript)]
    return [
        str(piece.get("text", piece.get("word", ""))) if isinstance(piece, dict) else str(piece) for piece in transcript
    ]
