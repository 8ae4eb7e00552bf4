"""Shared by all tests."""

# pytester restores sys.modules after each of its tests; a native module that was first imported inside one would be
# imported a second time by the next, and these abort on that.
import onnxruntime  # noqa: F401
import soundfile  # noqa: F401
import soxr  # noqa: F401
