"""What the agents on Kyutai's models share: the package, the weights, the codec and the language model as one engine, text.

Conventions
-----------
* 24 kHz in and out, frames of 1920 samples (80 ms). One frame in, one frame out.
* Alignment, of moshi 0.2.13 with the delays 0 for text and the first codebook and 1 for the others: the call that takes
  the codes of user frame t returns the model's frame t. Of that, text and the first codebook were decided with the user's
  frames up to t-1, the other codebooks with the first codebook of frame t besides. So the model's frame t can be
  heard from the end of the user's frame t on: ``output_delay`` is one frame.
* The first call of a session reads start tokens in place of what it is given and returns nothing. The first frame's codes are
  therefore given twice: N frames in give N frames out and all of them are heard, each once.
* Steps of all engines of a process are made one after the other: the package keeps its graph capture in a module variable,
  and the random numbers are the device's, so each session puts its own in place and takes them out again.
* Nothing heavy is imported before an agent is built.

Sources: kyutai-labs/moshi (``models/lm.py``, ``run_inference.py``), read and run; see docs/models-frame-synchronous.md.
"""
