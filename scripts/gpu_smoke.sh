#!/bin/sh
# Everything that needs a GPU and no weights and no network, in under ten minutes: random weights at the released sizes, frame time against
# 80 ms, two instances in a lockstep conversation on one device, and the tests that are marked gpu.
#
#   scripts/gpu_smoke.sh                          on a machine with a GPU of 48 GiB or more, and 36 GB of free disk
#   scripts/gpu_smoke.sh --work /scratch          where the random weights are written (default: the system's temporary folder)
#   scripts/gpu_smoke.sh --models moshi           one of the models
#   scripts/gpu_smoke.sh --tiny --cpu             tiny weights on the CPU: the same steps, to try the script itself
#   PYTHON=envs/moshi/bin/python scripts/gpu_smoke.sh
#
# Exit status: 0 when every step passed, 1 when one failed, 124 when it took more than ten minutes.
set -eu
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-.venv/bin/python}
export HF_HUB_OFFLINE=1 DSBEVAL_OFFLINE=1
exec timeout --foreground 600 "$PYTHON" -m scripts.gpu_smoke "$@"
