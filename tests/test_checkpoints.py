"""Checkpoints: found here or in the hub's cache, hashed by what the agent reads, and never fetched offline."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dsbeval import checkpoints
from dsbeval.checkpoints import CheckpointError, describe, file_digest, resolve
from tests.weights import weights

PATTERNS = ("*.json", "*.safetensors")
COMMIT = "0123456789abcdef0123456789abcdef01234567"
WEIGHTS = weights(b"some")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "weights"
    root.mkdir()
    (root / "config.json").write_text("{}")
    (root / "model.safetensors").write_bytes(WEIGHTS)
    (root / "README.md").write_text("read me")
    return root


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty cache of the hub, in its own layout."""
    from huggingface_hub import constants

    root = tmp_path / "hub"
    root.mkdir()
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(root))
    return root


def cached(hub_cache: Path, repo: str, files: dict[str, bytes]) -> Path:
    """Put a snapshot into the hub's cache as the hub's client does, and return it."""
    root = hub_cache / f"models--{repo.replace('/', '--')}"
    snapshot = root / "snapshots" / COMMIT
    for place in (root / "blobs", root / "refs", snapshot):
        place.mkdir(parents=True)
    (root / "refs" / "main").write_text(COMMIT)
    for name, content in files.items():
        blob = root / "blobs" / hashlib.sha256(content).hexdigest()
        blob.write_bytes(content)
        (snapshot / name).symlink_to(os.path.relpath(blob, snapshot))
    return snapshot


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forbid sockets: whoever opens one fails."""
    import socket

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("the network was touched")

    for owner, name in ((socket.socket, "connect"), (socket.socket, "connect_ex"), (socket, "getaddrinfo")):
        monkeypatch.setattr(owner, name, refuse)
    monkeypatch.setenv("DSBEVAL_OFFLINE", "1")


def test_a_folder_is_hashed_by_the_files_that_are_read(folder: Path) -> None:
    found = resolve(str(folder), PATTERNS)
    assert found.files == ("config.json", "model.safetensors")
    assert found.file("*.safetensors") == folder / "model.safetensors"
    before = found.sha256()
    (folder / "README.md").write_text("read me again")
    (folder / ".cache").mkdir()
    (folder / ".cache" / "x.json").write_text("1")
    folder.rename(folder.with_name("elsewhere"))
    moved = resolve(str(folder.with_name("elsewhere")), PATTERNS)
    assert moved.sha256() == before
    (moved.path / "model.safetensors").write_bytes(weights(b"other"))
    assert moved.sha256() != before
    (moved.path / "model.safetensors").rename(moved.path / "other.safetensors")
    assert resolve(str(moved.path), PATTERNS).sha256() != before


def test_a_file_has_its_own_hash(folder: Path) -> None:
    path = folder / "model.safetensors"
    found = resolve(str(path), PATTERNS)
    assert found.sha256() == hashlib.sha256(WEIGHTS).hexdigest()
    assert found.file("model.safetensors") == path


def test_what_is_missing_is_named(folder: Path) -> None:
    with pytest.raises(CheckpointError, match=r"weights holds no tokenizer\.model or \*\.spm$"):
        resolve(str(folder), PATTERNS).file("tokenizer.model", "*.spm")


@pytest.mark.parametrize("spec", ["./nowhere", "nowhere", "a/b/c", "org/name@", "org/na me"])
def test_what_is_neither_here_nor_an_id_is_one_line(spec: str) -> None:
    with pytest.raises(CheckpointError, match="no such file or folder, and no id on the hub") as caught:
        resolve(spec, PATTERNS)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("no_network")
def test_offline_the_cache_is_read_and_the_network_is_not_touched(hub_cache: Path) -> None:
    snapshot = cached(hub_cache, "org/name", {"model.safetensors": WEIGHTS, "config.json": b"{}", "README.md": b"-"})
    found = resolve("org/name", PATTERNS)
    assert (found.path, found.repo, found.revision) == (snapshot, "org/name", COMMIT)
    assert found.files == ("config.json", "model.safetensors")
    assert describe("org/name", PATTERNS)["revision"] == COMMIT
    assert resolve(f"org/name@{COMMIT}", PATTERNS).sha256() == found.sha256()
    with pytest.raises(CheckpointError, match=r"holds no voices/\*; get it with: hf download org/name"):
        found.file("voices/*")


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(
    ("spec", "command"),
    [("org/other", "hf download org/other "), ("org/other@v2", "hf download org/other --revision v2 ")],
)
def test_offline_what_is_not_cached_says_how_to_get_it(hub_cache: Path, spec: str, command: str) -> None:
    with pytest.raises(
        CheckpointError, match=f"{spec} is not in the hub's cache here and this run is offline"
    ) as caught:
        resolve(spec, PATTERNS)
    assert command in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("no_network")
def test_a_snapshot_without_the_files_says_how_to_get_them(hub_cache: Path) -> None:
    cached(hub_cache, "org/name", {"README.md": b"-"})
    with pytest.raises(
        CheckpointError, match="none of its files is in the hub's cache here; get it with: hf download org/name"
    ):
        resolve("org/name", PATTERNS)


def test_equal_content_is_equal_wherever_it_lies(
    folder: Path, hub_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    cached(hub_cache, "org/name", {"model.safetensors": WEIGHTS, "config.json": b"{}"})
    assert resolve("org/name", PATTERNS).sha256() == resolve(str(folder), PATTERNS).sha256()


def test_a_blob_is_known_by_its_name(hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = cached(hub_cache, "org/name", {"model.safetensors": WEIGHTS})
    monkeypatch.setattr(checkpoints, "_computed", lambda path: pytest.fail(f"{path} was read"))
    assert file_digest(snapshot / "model.safetensors") == hashlib.sha256(WEIGHTS).hexdigest()


def test_the_hash_of_a_big_file_is_kept_until_the_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "CACHED_FROM", 4)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    reads: list[Path] = []
    computed = checkpoints._computed

    def noted(path: Path) -> str:
        reads.append(path)
        return computed(path)

    monkeypatch.setattr(checkpoints, "_computed", noted)
    path = tmp_path / "model.safetensors"

    def write(content: bytes, age_s: float) -> str:
        path.write_bytes(content)
        then = time.time() - age_s
        os.utime(path, (then, then))
        return hashlib.sha256(content).hexdigest()

    first = write(WEIGHTS, 60)
    assert [file_digest(path), file_digest(path), len(reads)] == [first, first, 1]
    second = write(b"weighty", 30)  # of the same size
    assert [file_digest(path), file_digest(path), len(reads)] == [second, second, 2]
    third = write(b"weighed", 0)  # just written: it may be written again within the clock's tick
    assert [file_digest(path), file_digest(path), len(reads)] == [third, third, 4]
    (next((tmp_path / "cache" / "dsbeval" / "digests").iterdir())).write_text("{")
    write(b"weighty", 30)
    assert [file_digest(path), len(reads)] == [second, 5]


def test_an_agent_from_elsewhere_may_mean_anything_by_it(folder: Path) -> None:
    assert describe("step-12000", ()) == {"name": "step-12000", "sha256": None}
    assert describe("org/name", ()) == {"name": "org/name", "sha256": None}
    assert describe(str(folder), ())["sha256"] == resolve(str(folder), ("*",)).sha256()


REFUSED = {
    "gated": r"org/gated is gated: accept its licence at \S+org/gated, then: hf auth login && hf download org/gated",
    "missing": "org/missing@v9: neither a path here nor a repository that the hub shows",
    "revision": "org/revision has no revision 'v9' on the hub",
    "down": "org/down@v9 is not in the hub's cache here and the hub cannot be reached; get it with: hf download org/down",
}
HUB = """
import http.server, os, threading
ANSWERS = {
    "gated": (403, "GatedRepo"), "missing": (404, "RepoNotFound"), "revision": (404, "RevisionNotFound"), "down": (503, ""),
}
class Hub(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        status, code = next(answer for name, answer in ANSWERS.items() if f"/org/{name}" in self.path)
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()
    do_HEAD = do_GET
    def log_message(self, *args): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
threading.Thread(target=server.serve_forever, daemon=True).start()
os.environ["HF_ENDPOINT"] = f"http://127.0.0.1:{server.server_port}"
from dsbeval.checkpoints import CheckpointError, resolve
for name in ANSWERS:
    try:
        resolve(f"org/{name}@v9", ("*",))
    except CheckpointError as error:
        print(error)
"""


def test_what_the_hub_refuses_is_one_line(tmp_path: Path) -> None:
    """The real client, in a process of its own, against a server on this machine."""
    environment = {k: v for k, v in os.environ.items() if "OFFLINE" not in k and not k.lower().endswith("_proxy")}
    done = subprocess.run(
        [sys.executable, "-c", HUB], capture_output=True, text=True, check=True, timeout=60,
        env={**environment, "HF_HOME": str(tmp_path), "HF_HUB_DISABLE_TELEMETRY": "1"},
    )  # fmt: skip
    for line, message in zip(done.stdout.splitlines(), REFUSED.values(), strict=True):
        assert re.search(message, line), line
