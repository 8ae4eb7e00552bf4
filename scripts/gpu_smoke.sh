#!/bin/sh
# Everything that needs a GPU and no weights and no network, in under ten minutes: for Moshi, PersonaPlex and F-Actor random weights at the
# released sizes, frame time against 80 ms, equal seeds, two instances in a lockstep conversation on one device; then the tests that
# are marked gpu (tiny weights, bfloat16, CUDA graphs), but for those in which a process of its own compiles everything anew:
# pytest -m gpu tests/adapters
#
#   make setup                                    once, with the network
#   scripts/gpu_smoke.sh                          on a machine with a GPU of 48 GiB or more, 32 GiB of memory and 20 GB of free disk
#   scripts/gpu_smoke.sh --work /scratch          where the random weights are written (default: the system's temporary folder)
#   scripts/gpu_smoke.sh --models moshi           one of the models
#   scripts/gpu_smoke.sh --tiny --cpu             tiny weights on the CPU: the same steps, to try the script itself
#   PYTHON=other/bin/python scripts/gpu_smoke.sh  another interpreter, with dsbeval, its extra dev and moshi 0.2.13
#
# A line a step. Exit status: 0 when every step passed, 1 when one failed, 124 when it took more than ten minutes.
set -eu
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-.venv/bin/python}
command -v "$PYTHON" >/dev/null || { echo "$PYTHON: no such interpreter; run make setup, or give PYTHON=" >&2; exit 2; }
export HF_HUB_OFFLINE=1 DSBEVAL_OFFLINE=1
exec timeout --foreground 600 "$PYTHON" -m scripts.gpu_smoke "$@"
