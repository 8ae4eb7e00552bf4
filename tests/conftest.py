"""Shared by all tests."""

import signal

# pytester restores sys.modules after each of its tests; a native module that was first imported inside one would be
# imported a second time by the next, and these abort on that.
import numpy.fft  # noqa: F401
import onnxruntime  # noqa: F401
import scipy.special  # noqa: F401
import soundfile  # noqa: F401
import soxr  # noqa: F401

# A job that a shell put into the background ignores interrupts, and so do its children: those that a test interrupts
# would never end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
