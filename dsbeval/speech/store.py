"""Stored speech segments: a manifest and one Ogg Opus file a segment.

A store is a folder::

    manifest.json        {"schema", "rate", "engines", "segments": {AUDIO_KEY: {NAME: {...}}}}
    <hash>.opus          24 kHz, one channel; named by the hash of what was asked for

Conventions
-----------
* A segment is found by audio key and name: ``t1`` is turn 1, ``s<k>`` the k-th segment of turn 2.
* Loading the manifest reads no audio. A decoded segment has exactly the samples that the manifest says, and is
  read-only.
* ``sha256`` is of the decoded segment as PCM16, ``file_sha256`` of the file. The second guards the data; the first can
  differ in the last bit under another Opus decoder (another processor), which changes nothing that is measured.
* Word times are integer samples from the segment's start.
"""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dsbeval.audio import RATE, Signal, atomic_write, read_audio, to_pcm16, write_audio
from dsbeval.errors import AudioError
from dsbeval.speech.engine import Utterance, WordTime

SCHEMA = 1
MANIFEST = "manifest.json"
RENDERING = "1"
"""What is done after the engine. Raise the number when level or encoding changes: every segment is then made again."""

_CACHED = 48  # decoded segments kept in memory: about 25 MB


@dataclass(frozen=True, slots=True)
class Request:
    """All that decides a segment's samples. ``spoken`` is the text with its pronunciation marks."""

    engine: str
    version: str
    voice: str
    seed: int
    spoken: str

    @property
    def file(self) -> str:
        """Name of the file that holds the answer to this request."""
        parts = (RENDERING, self.engine, self.version, self.voice, str(self.seed), self.spoken)
        return f"{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:20]}.opus"


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """What the manifest says of one segment."""

    file: str
    text: str
    engine: str
    version: str
    voice: str
    seed: int
    samples: int
    sha256: str
    file_sha256: str
    words: tuple[WordTime, ...]

    @property
    def seconds(self) -> float:
        """Duration."""
        return self.samples / RATE


def pcm_sha256(audio: Signal) -> str:
    """Return the SHA-256 of a signal as little-endian PCM16."""
    return hashlib.sha256(to_pcm16(audio).astype("<i2").tobytes()).hexdigest()


class AudioStore:
    """A folder of stored segments, opened for reading or for adding to.

    Parameters
    ----------
    root : Path
        The folder; it need not exist before something is saved.
    mend : str
        The command that makes what is missing, named in errors.
    """

    def __init__(self, root: Path, mend: str = "dsbeval speech build") -> None:
        self.root = root
        self.mend = mend
        self.engines: dict[str, dict[str, str]] = {}
        self._segments: dict[str, dict[str, StoredSegment]] = {}
        path = root / MANIFEST
        if path.exists():
            self._load(path)

    def _load(self, path: Path) -> None:
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data["schema"] != SCHEMA or data["rate"] != RATE:
                found = f"schema {data['schema']} at {data['rate']} Hz"
                raise AudioError(f"{path}: {found}; schema {SCHEMA} at {RATE} Hz is needed, run: {self.mend}")
            self.engines = {name: dict(facts) for name, facts in data["engines"].items()}
            self._segments = {
                key: {name: _entry(fields) for name, fields in named.items()} for key, named in data["segments"].items()
            }
        except (ValueError, KeyError, TypeError, AttributeError):
            raise AudioError(f"{path}: not a manifest of stored speech; make it again with: {self.mend}") from None

    # Reading

    def audio_keys(self) -> tuple[str, ...]:
        """Return the audio keys, sorted."""
        return tuple(sorted(self._segments))

    def names(self, key: str) -> tuple[str, ...]:
        """Return the names of a key's segments."""
        return tuple(self._segments.get(key, {}))

    def find(self, key: str, name: str) -> StoredSegment | None:
        """Return the entry, or None when there is none."""
        return self._segments.get(key, {}).get(name)

    def entry(self, key: str, name: str) -> StoredSegment:
        """Return the entry; raise :class:`AudioError` when there is none."""
        found = self.find(key, name)
        if found is None:
            raise AudioError(f"{self.root / MANIFEST}: no audio for {key} {name}; run: {self.mend}")
        return found

    def audio(self, key: str, name: str) -> Signal:
        """Return the decoded segment, read-only. Raises :class:`AudioError` when its file is missing or damaged."""
        entry = self.entry(key, name)
        return _cached(self.root / entry.file, entry.samples, entry.file_sha256, self.mend)

    def read(self, key: str, name: str) -> Signal:
        """Return what :meth:`audio` returns, from the file as it is now and not from memory."""
        entry = self.entry(key, name)
        return _decoded(self.root / entry.file, entry.samples, entry.file_sha256, self.mend)

    def utterance(self, key: str, name: str) -> Utterance:
        """Return the decoded segment with its word times."""
        return Utterance(self.audio(key, name), self.entry(key, name).words)

    def by_file(self) -> dict[str, StoredSegment]:
        """Return an entry of every file: the same words in the same voice share one."""
        return {entry.file: entry for named in self._segments.values() for entry in named.values()}

    # Writing

    def put(self, key: str, name: str, segment: StoredSegment) -> None:
        """Enter a segment whose file is in the folder."""
        self._segments.setdefault(key, {})[name] = segment

    def keep(self, wanted: dict[str, tuple[str, ...]]) -> int:
        """Forget entries that are not wanted and delete files that no entry names; return how many files went."""
        self._segments = {
            key: {name: self._segments[key][name] for name in names if name in self._segments.get(key, {})}
            for key, names in wanted.items()
            if key in self._segments
        }
        used = {entry.file for named in self._segments.values() for entry in named.values()}
        stale = [path for path in self.root.glob("*.opus") if path.name not in used]
        for path in stale:
            path.unlink()
        spoken_by = {entry.engine for named in self._segments.values() for entry in named.values()}
        self.engines = {name: facts for name, facts in self.engines.items() if name in spoken_by}
        return len(stale)

    def save(self) -> None:
        """Write the manifest: sorted, a segment a line, the same bytes for the same content."""
        lines = [
            f"{json.dumps(key)}: {{\n"
            + ",\n".join(f"  {json.dumps(n)}: {_dumped(named[n])}" for n in sorted(named, key=_order))
            + "\n}"
            for key, named in sorted(self._segments.items())
        ]
        engines = json.dumps(self.engines, sort_keys=True)
        head = f'{{"schema": {SCHEMA}, "rate": {RATE}, "engines": {engines},\n"segments": {{\n'
        with atomic_write(self.root / MANIFEST) as file:
            file.write((head + ",\n".join(lines) + "\n}}\n").encode())


def write_segment(root: Path, request: Request, text: str, utterance: Utterance) -> StoredSegment:
    """Encode an utterance into the folder and return its entry.

    Raises :class:`AudioError` when the codec changes its length.
    """
    path = root / request.file
    write_audio(path, utterance.audio)
    decoded = read_audio(path)
    if decoded.size != utterance.audio.size:
        lengths = f"{decoded.size} samples of {utterance.audio.size}"
        raise AudioError(f"{path}: Opus returns {lengths}; install soundfile >= 0.13 with the libsndfile in its wheel")
    return StoredSegment(
        file=request.file,
        text=text,
        engine=request.engine,
        version=request.version,
        voice=request.voice,
        seed=request.seed,
        samples=decoded.size,
        sha256=pcm_sha256(decoded),
        file_sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        words=utterance.words,
    )


def _decoded(path: Path, samples: int, file_sha256: str, mend: str) -> Signal:
    if path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() != file_sha256:
        raise AudioError(f"{path}: damaged, its SHA-256 is not the manifest's; delete the file and run: {mend}")
    try:
        audio = read_audio(path, channels=1)
    except AudioError as error:
        raise AudioError(f"{error}; run: {mend}") from None
    if audio.size != samples:
        raise AudioError(f"{path}: {audio.size} samples, the manifest says {samples}; delete the file and run: {mend}")
    audio = np.ascontiguousarray(audio)
    audio.flags.writeable = False
    return audio


_cached = functools.lru_cache(maxsize=_CACHED)(_decoded)


def _order(name: str) -> tuple[str, int, str]:
    digits = name[1:]
    return ((name[:1] != "t" and "s") or "", int(digits) if digits.isdigit() else 0, name)


def _entry(fields: dict[str, Any]) -> StoredSegment:
    if Path(fields["file"]).name != fields["file"]:
        raise ValueError("a file outside the store")
    words = tuple(WordTime(str(word), int(start), int(end)) for word, start, end in fields["words"])
    return StoredSegment(**{**fields, "words": words})


def _dumped(entry: StoredSegment) -> str:
    fields = asdict(entry)
    fields["words"] = [[word.word, word.start, word.end] for word in entry.words]
    return json.dumps(fields, ensure_ascii=False)
