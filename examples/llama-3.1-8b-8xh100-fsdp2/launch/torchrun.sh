#!/usr/bin/env bash
# Starts train.py on 8 GPUs; arguments go to it. NPROC changes the number of processes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

processes="${NPROC:-8}"
# torchrun gives each process one thread unless told otherwise; an optimizer on the CPU needs its share.
threads="$(($(nproc) / processes))"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-$((threads > 0 ? threads : 1))}"

exec torchrun --standalone --nproc-per-node "$processes" train.py "$@"
