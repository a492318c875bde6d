#!/usr/bin/env bash
# Starts train.py on 8 GPUs; arguments go to it. NPROC changes the number of processes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

exec deepspeed --num_gpus "${NPROC:-8}" --no_local_rank train.py "$@"
