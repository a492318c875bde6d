#!/usr/bin/env bash
# Run this on each of the 2 nodes, with HEAD=<name of one of them>; arguments go to train.py.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

processes="${NPROC:-8}"
# torchrun gives each process one thread unless told otherwise; an optimizer on the CPU needs its share.
threads="$(($(nproc) / processes))"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-$((threads > 0 ? threads : 1))}"

exec torchrun --nnodes "${NNODES:-2}" --nproc-per-node "$processes" \
  --rdzv-backend c10d --rdzv-id "${JOB:-train}" --rdzv-endpoint "${HEAD:?name of the first node}:${PORT:-29500}" \
  train.py "$@"
