#!/usr/bin/env bash
# Starts train.py on 1 GPU; arguments go to it. NPROC changes the number of processes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

exec deepspeed --num_gpus "${NPROC:-1}" --no_local_rank train.py "$@"
