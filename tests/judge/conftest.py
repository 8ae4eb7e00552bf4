"""What every test of judging starts from: no settings of the machine's own."""

from __future__ import annotations

import pytest

from tests.judge.servers import clear_environment


@pytest.fixture(autouse=True)
def _no_ambient_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch)
