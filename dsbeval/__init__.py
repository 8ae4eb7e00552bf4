"""Does a full-duplex voice agent hold, take and yield the floor as its role implies?

Everything runs on one timeline of samples. A case is *recorded* (:mod:`dsbeval.ifeval.episode`), the recording is
*measured* (:mod:`dsbeval.ifeval.scene`, with :mod:`dsbeval.vad`), a measurement is *judged*
(:mod:`dsbeval.ifeval.verifiers`) and verdicts are *aggregated* (:mod:`dsbeval.ifeval.metrics`). Each step reads only
what the step before has written to disk.
"""

__version__ = "0.1.0"
