"""Shared by all tests."""

import signal
from pathlib import Path

# pytester restores sys.modules after each of its tests; a native module that was first imported inside one would be
# imported a second time by the next, and these abort on that.
import numpy.fft  # noqa: F401
import onnxruntime  # noqa: F401
import pytest
import scipy.special  # noqa: F401
import soundfile  # noqa: F401
import soxr  # noqa: F401

# A job that a shell put into the background ignores interrupts, and so do its children: those that a test interrupts
# would never end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_HERE = Path(__file__).parent
_THOROUGH = frozenset(
    line
    for line in (_HERE / "thorough.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of ``thorough.txt``: ``-m "not thorough"`` leaves them out, by number and in sight."""
    for item in items:
        if item.path.is_relative_to(_HERE):
            name = f"{item.path.relative_to(_HERE).as_posix()}::{getattr(item, 'originalname', item.name)}"
            if name in _THOROUGH:
                item.add_marker(pytest.mark.thorough)
