#!/usr/bin/env bash
# Starts train.py on 4 GPUs; arguments go to it. NPROC changes the number of processes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

exec deepspeed --num_gpus "${NPROC:-4}" --no_local_rank train.py "$@"
