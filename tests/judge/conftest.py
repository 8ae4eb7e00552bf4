"""What every test of judging starts from: no settings of the machine's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.judge.servers import clear_environment


@pytest.fixture(scope="session")
def no_certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder: the servers here speak plain HTTP, and a client reads every certificate of the machine when it opens."""
    return tmp_path_factory.mktemp("no-certificates")


@pytest.fixture(autouse=True)
def _no_ambient_settings(monkeypatch: pytest.MonkeyPatch, no_certificates: Path) -> None:
    clear_environment(monkeypatch)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(no_certificates))
